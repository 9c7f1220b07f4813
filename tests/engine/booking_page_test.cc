// The booking API's "Rate limits" page, rule by rule, on the shipped policy.
#include <gtest/gtest.h>

#include "engine/booking_world.h"

namespace ration::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

std::string address(int n) {
    return "198.51.100." + std::to_string(n);
}

struct Endpoint {
    const char* method;
    const char* path;
    int per_workspace;
    int per_address;
};

constexpr Endpoint endpoints[] = {
    {"GET", "/v1/availability", 300, 60},
    {"GET", "/v1/quote", 300, 60},
    {"POST", "/v1/bookings", 60, 10},
    {"POST", "/v1/bookings/b_1/verify", 60, 10},
};

class EndpointBudget : public ::testing::TestWithParam<Endpoint> {};

TEST_P(EndpointBudget, OneAddressHasItsShare) {
    const auto [method, path, per_workspace, per_address] = GetParam();
    BookingWorld world;
    const Ask ask{.method = method, .path = path, .bearer = "pk_1"};
    EXPECT_EQ(world.admitted(ask, per_address + 5), per_address);
    const Reply refused = world.ask(ask);
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.rule, "caller budget");
    Ask other = ask;
    other.peer = "198.51.100.9";
    EXPECT_TRUE(world.ask(other).admitted);
}

TEST_P(EndpointBudget, AllAddressesShareTheWorkspace) {
    const auto [method, path, per_workspace, per_address] = GetParam();
    BookingWorld world;
    int admitted = 0;
    for (int visitor = 0; visitor < per_workspace / per_address; ++visitor) {
        admitted += world.admitted(
            {.method = method, .path = path, .bearer = "pk_1", .peer = address(visitor)},
            per_address);
    }
    EXPECT_EQ(admitted, per_workspace);
    const Reply refused =
        world.ask({.method = method, .path = path, .bearer = "pk_1", .peer = address(200)});
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.rule, "workspace budget");
    EXPECT_TRUE(world.ask({.method = method, .path = path, .bearer = "pk_2", .peer = address(200)})
                    .admitted)
        << "another workspace has its own capacity";
}

TEST_P(EndpointBudget, RefillsContinuously) {
    const auto [method, path, per_workspace, per_address] = GetParam();
    BookingWorld world;
    const Ask ask{.method = method, .path = path, .bearer = "pk_1"};
    world.ask(ask, per_address);
    const Nanos one = Nanos(seconds(60)) / per_address;
    world.clock.advance(one - nanoseconds(1));
    EXPECT_FALSE(world.ask(ask).admitted);
    world.clock.advance(nanoseconds(1));
    EXPECT_TRUE(world.ask(ask).admitted);
    EXPECT_FALSE(world.ask(ask).admitted);
}

INSTANTIATE_TEST_SUITE_P(Page, EndpointBudget, ::testing::ValuesIn(endpoints));

TEST(BookingPage, QuoteHasItsOwnBucket) {
    BookingWorld world;
    EXPECT_EQ(world.admitted({.path = "/v1/availability", .bearer = "pk_1"}, 60), 60);
    EXPECT_EQ(world.admitted({.path = "/v1/quote", .bearer = "pk_1"}, 60), 60);
    EXPECT_FALSE(world.ask({.path = "/v1/availability", .bearer = "pk_1"}).admitted);
    EXPECT_FALSE(world.ask({.path = "/v1/quote", .bearer = "pk_1"}).admitted);
}

TEST(BookingPage, VerifyBudgetIsPerEndpointNotPerId) {
    BookingWorld world;
    int admitted = 0;
    for (int id = 0; id < 11; ++id) {
        admitted += world.ask({.method = "POST",
                               .path = "/v1/bookings/b" + std::to_string(id) + "/verify",
                               .bearer = "pk_1"})
                            .admitted
                        ? 1
                        : 0;
    }
    EXPECT_EQ(admitted, 10);
}

TEST(BookingPage, ARefusedRequestCostsNothingOnEitherAxis) {
    BookingWorld world;
    const Ask busy{.method = "POST", .path = "/v1/bookings", .bearer = "pk_1"};
    EXPECT_EQ(world.admitted(busy, 1000), 10);
    int others = 0;
    for (int visitor = 0; visitor < 10; ++visitor) {
        Ask ask = busy;
        ask.peer = address(visitor);
        others += world.admitted(ask, 10);
    }
    EXPECT_EQ(others, 50) << "990 refusals left the workspace's other 50 untouched";
    world.clock.advance(seconds(6));
    EXPECT_TRUE(world.ask(busy).admitted) << "nor did they move the address's own recovery";
}

TEST(BookingPage, PublicRoutesShareThirtyPerAddressAndNeedNoKey) {
    BookingWorld world;
    EXPECT_EQ(world.admitted({.path = "/v1/public/bootstrap"}, 10), 10);
    EXPECT_EQ(world.admitted({.method = "POST", .path = "/v1/public/cancel"}, 10), 10);
    EXPECT_EQ(world.admitted({.method = "POST", .path = "/v1/public/reschedule"}, 20), 10);
    const Reply refused = world.ask({.path = "/v1/public/bootstrap"});
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.rule, "public routes");
    EXPECT_EQ(refused.retry_after(), 2);
    EXPECT_TRUE(world.ask({.path = "/v1/public/bootstrap", .peer = "198.51.100.9"}).admitted);
}

TEST(BookingPage, SecretKeysShareTheWorkspacesBackstop) {
    BookingWorld world;
    const Ask first{.path = "/v1/availability", .bearer = "sk_1"};
    const Ask second{.method = "POST", .path = "/v1/bookings", .bearer = "sk_1_second"};
    EXPECT_EQ(world.admitted(first, 1500), 1500);
    EXPECT_EQ(world.admitted(second, 2000), 1500) << "a second key grants no fresh capacity";
    EXPECT_EQ(world.ask(first).rule, "secret keys");
    EXPECT_TRUE(world.ask({.path = "/v1/availability", .bearer = "sk_2"}).admitted);
    EXPECT_TRUE(world.ask({.path = "/v1/availability", .bearer = "pk_1"}).admitted)
        << "the page's own budgets are another axis";
}

TEST(BookingPage, AccountKeysShareTheAccountsTotalOverFourRoutes) {
    BookingWorld world;
    EXPECT_EQ(world.admitted({.path = "/v1/account/usage", .bearer = "ak_1"}, 200), 200);
    EXPECT_EQ(world.admitted({.path = "/v1/account/workspaces", .bearer = "ak_1_second"}, 200),
              200);
    EXPECT_EQ(
        world.admitted({.method = "POST", .path = "/v1/account/workspaces", .bearer = "ak_1"}, 100),
        100);
    EXPECT_EQ(
        world.admitted(
            {.method = "DELETE", .path = "/v1/account/workspaces/ws_1", .bearer = "ak_1_second"},
            150),
        100);
    EXPECT_EQ(world.ask({.path = "/v1/account/usage", .bearer = "ak_1"}).rule, "account keys");
    EXPECT_TRUE(world.ask({.path = "/v1/account/usage", .bearer = "ak_2"}).admitted);
}

TEST(BookingPage, TheRefusalIsToTheLetter) {
    BookingWorld world;
    const Ask ask{.method = "POST",
                  .path = "/v1/bookings",
                  .bearer = "pk_1",
                  .headers = {{"Origin", "https://shop.example"}}};
    const Reply good = world.ask(ask, 10);
    EXPECT_TRUE(good.admitted);
    EXPECT_FALSE(good.has("Retry-After"));
    EXPECT_FALSE(good.has("RateLimit-Remaining"));
    EXPECT_EQ(good.header("Access-Control-Allow-Origin"), "*");

    const Reply refused = world.ask(ask);
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.body, R"({"error":{"type":"rate_limited","message":"Too many requests."}})");
    EXPECT_EQ(refused.header("Content-Type"), "application/json");
    EXPECT_EQ(refused.header("Retry-After"), "6");
    EXPECT_EQ(refused.header("RateLimit-Remaining"), "0");
    EXPECT_EQ(refused.header("Cache-Control"), "no-store");
    EXPECT_EQ(refused.header("Access-Control-Allow-Origin"), "*");
    EXPECT_EQ(refused.header("Access-Control-Expose-Headers"),
              "Retry-After, RateLimit-Remaining, Idempotent-Replayed");
    EXPECT_EQ(refused.header("Ration-Request-Id"), "req-11");
}

TEST(BookingPage, RetryAfterIsTheTrueWaitRoundedUp) {
    BookingWorld world;
    const Ask ask{.path = "/v1/quote", .bearer = "pk_1"};
    world.ask(ask, 60);
    world.clock.advance(milliseconds(200));
    const Reply refused = world.ask(ask);
    EXPECT_EQ(refused.retry_after(), 1);
    ASSERT_TRUE(refused.decision.wait.has_value());
    EXPECT_EQ(*refused.decision.wait, milliseconds(800));
    world.clock.advance(milliseconds(800) - nanoseconds(1));
    EXPECT_FALSE(world.ask(ask).admitted);
    world.clock.advance(nanoseconds(1));
    EXPECT_TRUE(world.ask(ask).admitted);
}

TEST(BookingPage, AnIpv6VisitorIsItsSlash64AndAnIpv4OneIsWhole) {
    BookingWorld world;
    Ask ask{.method = "POST", .path = "/v1/bookings", .bearer = "pk_1"};
    for (int i = 0; i < 10; ++i) {
        ask.peer = "2001:db8:1:2::" + std::to_string(i);
        EXPECT_TRUE(world.ask(ask).admitted);
    }
    ask.peer = "2001:db8:1:2:ffff::1";
    EXPECT_FALSE(world.ask(ask).admitted);
    ask.peer = "2001:db8:1:3::1";
    EXPECT_TRUE(world.ask(ask).admitted);
    ask.peer = "::ffff:198.51.100.7";
    EXPECT_EQ(world.admitted(ask, 10), 10);
    ask.peer = "198.51.100.7";
    EXPECT_FALSE(world.ask(ask).admitted);
    ask.peer = "198.51.100.8";
    EXPECT_TRUE(world.ask(ask).admitted);
}

TEST(BookingPage, TheForwardedAddressCountsOnlyFromATrustedHop) {
    BookingWorld world;
    Ask ask{.method = "POST",
            .path = "/v1/bookings",
            .bearer = "pk_1",
            .peer = "127.0.0.1",
            .headers = {{"X-Forwarded-For", "203.0.113.4"}}};
    EXPECT_EQ(world.admitted(ask, 11), 10);
    ask.headers = {{"X-Forwarded-For", "203.0.113.5"}};
    EXPECT_TRUE(world.ask(ask).admitted);
    ask.peer = "203.0.113.4";
    EXPECT_FALSE(world.ask(ask).admitted) << "the claim of an untrusted peer is not read";
}

TEST(BookingPage, HeadSpendsGetsBudgetAndPathSpellingsShareIt) {
    BookingWorld world;
    EXPECT_EQ(world.admitted({.method = "HEAD", .path = "/v1/quote", .bearer = "pk_1"}, 20), 20);
    EXPECT_EQ(world.admitted({.path = "/v1//quote", .bearer = "pk_1"}, 10), 10);
    EXPECT_EQ(world.admitted({.path = "/v1/./%71uote?x=1", .bearer = "pk_1"}, 10), 10);
    EXPECT_EQ(world.admitted({.path = "/v1/quote/", .bearer = "pk_1"}, 10), 10);
    EXPECT_EQ(world.admitted({.path = "/v1/quote", .bearer = "pk_1"}, 20), 10);
}

TEST(BookingPage, MethodOverridesAreNotObeyed) {
    BookingWorld world;
    Ask ask{.method = "POST",
            .path = "/v1/bookings",
            .bearer = "pk_1",
            .headers = {{"X-HTTP-Method-Override", "GET"}}};
    EXPECT_EQ(world.admitted(ask, 12), 10);
}

TEST(BookingPage, PrechecksAreFreeAndAnswered) {
    BookingWorld world;
    const Fields precheck = {{"Origin", "https://shop.example"},
                             {"Access-Control-Request-Method", "POST"},
                             {"Access-Control-Request-Headers", "authorization, idempotency-key"}};
    for (int i = 0; i < 60; ++i) {
        const Reply reply =
            world.ask({.method = "OPTIONS", .path = "/v1/bookings", .headers = precheck});
        ASSERT_EQ(reply.status, 204);
        ASSERT_EQ(reply.decision.kind, Decision::Kind::preflight);
        ASSERT_EQ(reply.header("Access-Control-Allow-Origin"), "*");
        ASSERT_EQ(reply.header("Access-Control-Allow-Methods"), "POST");
        ASSERT_EQ(reply.header("Access-Control-Allow-Headers"), "authorization, idempotency-key");
        ASSERT_TRUE(reply.body.empty());
    }
    EXPECT_EQ(world.admitted({.method = "POST", .path = "/v1/bookings", .bearer = "pk_1"}, 11), 10);
}

TEST(BookingPage, WrongAndMissingKeysAreAnsweredInThePagesShape) {
    BookingWorld world;
    const Reply unknown = world.ask({.path = "/v1/quote", .bearer = "pk_nobody"});
    EXPECT_EQ(unknown.status, 401);
    EXPECT_EQ(unknown.body,
              R"({"error":{"type":"unauthorized","message":"A valid credential is required."}})");
    EXPECT_EQ(world.ask({.path = "/v1/quote"}).status, 401);
    EXPECT_EQ(world.ask({.path = "/v1/account/usage", .bearer = "pk_1"}).status, 403);
    EXPECT_EQ(world.ask({.path = "/v1/quote", .bearer = "ak_1"}).status, 403);
    EXPECT_EQ(world.ask({.path = "/v1/nothing-here", .bearer = "pk_1"}).status, 404);
    EXPECT_EQ(world.ask({.path = "/v1/../../etc", .bearer = "pk_1"}).status, 400);
}

TEST(BookingPage, RequestsOfNoRouteSpendNoRoutesBudget) {
    BookingWorld world;
    EXPECT_EQ(world.admitted({.method = "POST", .path = "/v1/nothing-here", .bearer = "pk_1"}, 50),
              0);
    EXPECT_EQ(world.admitted({.method = "POST", .path = "/v1/bookings", .bearer = "pk_1"}, 10), 10);
}

}  // namespace
}  // namespace ration::testing
