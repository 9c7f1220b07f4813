// Deciding, telling and settling allocate nothing after warm-up, on memory counters.
#include <gtest/gtest.h>

#include "engine/booking_world.h"
#include "engine/counting_allocator.h"

namespace ration::testing {
namespace {

// Allocations of one whole admitted request, the second time its kind is seen.
std::uint64_t allocations_of(World& world, const RequestView& request) {
    const auto exchange = std::make_unique<Exchange>();
    std::uint64_t spent = 0;
    std::size_t told = 0;
    for (int round = 0; round < 3; ++round) {
        const std::uint64_t before = allocations.load();
        world.engine().begin(*exchange, request, world.now());
        const auto sink = [&](std::string_view name, std::string_view value) {
            told += name.size() + value.size();
        };
        if (exchange->decision.kind == Decision::Kind::admit) {
            world.engine().response_fields(*exchange, sink);
            world.engine().request_fields(*exchange, sink);
        }
        world.engine().finish(*exchange, {.kind = Ending::Kind::answered, .status = 200},
                              world.now());
        spent = allocations.load() - before;
    }
    EXPECT_GT(told, 0U);
    return spent;
}

TEST(Allocation, NoneForTheBookingPolicy) {
    BookingWorld world;
    const std::vector<Header> headers = {{"Host", "api.example"},
                                         {"Authorization", "Bearer pk_1"},
                                         {"Origin", "https://shop.example"},
                                         {"X-Forwarded-For", "198.51.100.9, 127.0.0.1"}};
    EXPECT_EQ(allocations_of(world, {.method = "POST",
                                     .target = "/v1/bookings/b_17/verify?x=%41",
                                     .headers = headers,
                                     .peer = {IpAddress::parse("127.0.0.1")},
                                     .id = "0123456789abcdef"}),
              0U);
}

TEST(Allocation, NoneWithAttributesDecodedKeysAndSlots) {
    World world(R"(
policy: p
routes:
  teams: ANY /teams/{id}/**
identify:
  attributes: {team: query.team}
  credentials: {token: {bearer: t_*}}
limits:
  - {name: own, per: [credential, method, route], fixed_window: {limit: account.plan.rate, every: minute}, headers: x_ratelimit}
  - {name: slots, per: [team, account, path.id], concurrency: account.slots, headers: ietf_draft_10}
  - {name: trial, per: [header.X-Device, query.q, account.plan], token_bucket: 60/min, shadow: true}
)",
                R"(
entities:
  plan: {a_plan_with_quite_a_long_name: {rate: 60}}
  account: {an_account_with_quite_a_long_name: {plan: a_plan_with_quite_a_long_name, slots: 3}}
credentials:
  t_1: {kind: token, account: an_account_with_quite_a_long_name}
)");
    const std::vector<Header> headers = {{"Authorization", "Bearer t_1"},
                                         {"X-Device", "a device with quite a long name"}};
    EXPECT_EQ(allocations_of(world, {.method = "POST",
                                     .target = "/teams/%72ed/x?team=the%20team+of%20twelve&q=a+b",
                                     .headers = headers,
                                     .peer = {IpAddress::parse("2001:db8::1")},
                                     .id = "0123456789abcdef"}),
              0U);
}

TEST(Allocation, DecidingARefusalAllocatesNothingEither) {
    World world(
        "policy: p\nroutes: {all: ANY /**}\nlimits:\n"
        "  - {name: l, per: [address], token_bucket: 0/min}\n",
        "");
    const auto exchange = std::make_unique<Exchange>();
    for (int round = 0; round < 3; ++round) {
        const std::uint64_t before = allocations.load();
        world.engine().begin(*exchange, {.method = "GET", .target = "/", .id = "r"}, world.now());
        world.engine().finish(*exchange, {.kind = Ending::Kind::refused}, world.now());
        EXPECT_EQ(exchange->decision.kind, Decision::Kind::refuse);
        if (round > 0) {
            EXPECT_EQ(allocations.load() - before, 0U);
        }
    }
}

TEST(Allocation, TheCounterCounts) {
    const std::uint64_t before = allocations.load();
    const auto something = std::make_unique<std::uint64_t>(before);
    EXPECT_EQ(allocations.load() - *something, 1U);
}

}  // namespace
}  // namespace ration::testing
