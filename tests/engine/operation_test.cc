// What an operator relies on: limits in shadow, a store that is down, a reload, costs, plans, keys.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "engine/harness.h"

namespace ration::testing {
namespace {

using std::chrono::seconds;

std::string with_limits(std::string_view limits) {
    return "policy: p\nroutes: {all: ANY /**, hot: GET /hot}\nlimits:\n" + std::string(limits);
}

TEST(Shadow, IsReportedNeverEnforcedAndNotInTheWay) {
    World world(with_limits("  - {name: trial, per: [address], token_bucket: 2/min, shadow: true, "
                            "headers: x_ratelimit}\n"
                            "  - {name: real, per: [address], token_bucket: 5/min}\n"),
                "");
    for (int i = 0; i < 5; ++i) {
        const Reply reply = world.ask({});
        EXPECT_TRUE(reply.admitted);
        EXPECT_FALSE(reply.has("X-RateLimit-Limit")) << "what is not enforced is not told";
        const std::uint32_t expected = i < 2 ? 0U : 0b10U;
        EXPECT_EQ(reply.decision.shadow_refused, expected) << i;
    }
    const Reply refused = world.ask({});
    EXPECT_EQ(refused.rule, "real");
}

TEST(Shadow, ARequestWithShadowLimitsOnlyIsAdmitted) {
    World world(
        with_limits("  - {name: trial, per: [address], token_bucket: 0/min, shadow: true}\n"), "");
    const Reply reply = world.ask({});
    EXPECT_TRUE(reply.admitted);
    EXPECT_EQ(reply.decision.shadow_refused, 1U);
    EXPECT_EQ(reply.rule, "");
}

class StoreDown : public ::testing::TestWithParam<bool> {  // parameter: silent or talking nonsense
protected:
    void fail(World& world, bool failing) {
        (GetParam() ? world.faults().nonsense : world.faults().down).store(failing);
    }
};

TEST_P(StoreDown, OpenLimitsLetThroughWithoutInventingNumbers) {
    World world(
        with_limits("  - {name: l, per: [address], fixed_window: 1/min, headers: x_ratelimit, "
                    "store_down: open}\n"),
        "");
    world.ask({});
    fail(world, true);
    const Reply reply = world.ask({}, 3);
    EXPECT_TRUE(reply.admitted);
    EXPECT_TRUE(reply.decision.store_down);
    EXPECT_FALSE(reply.has("X-RateLimit-Limit"));
    fail(world, false);
    const Reply after = world.ask({});
    EXPECT_EQ(after.status, 429) << "normal work resumes by itself";
    EXPECT_FALSE(after.decision.store_down);
}

TEST_P(StoreDown, AClosedLimitRefusesWithItsOwnAnswer) {
    World world(with_limits("  - {name: easy, per: [address], token_bucket: 9/min}\n"
                            "  - {name: strict, per: [address], fixed_window: 9/min, "
                            "store_down: closed, headers: x_ratelimit}\n") +
                    "refusals:\n  rate_limiter_unavailable:\n"
                    "    body: {error: rate_limiter_unavailable}\n",
                "");
    fail(world, true);
    const Reply refused = world.ask({});
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.body, R"({"error":"rate_limiter_unavailable"})");
    EXPECT_EQ(refused.header("Retry-After"), "60");
    EXPECT_EQ(refused.rule, "strict");
    EXPECT_FALSE(refused.has("X-RateLimit-Limit"));
    EXPECT_EQ(refused.header("Cache-Control"), "no-store");
    EXPECT_FALSE(refused.decision.wait.has_value());
}

TEST_P(StoreDown, LocalLimitsAreJudgedByTheStandInsShare) {
    World world(
        with_limits("  - {name: l, per: [address], fixed_window: 10/min, headers: x_ratelimit, "
                    "store_down: local}\n"
                    "  - {name: o, per: [address], fixed_window: 1/min}\n"),
        "", {.with_local = true, .replicas = 4});
    fail(world, true);
    const Reply first = world.ask({});
    EXPECT_TRUE(first.admitted);
    EXPECT_EQ(first.header("X-RateLimit-Limit"), "3") << "a quarter of ten, rounded up";
    EXPECT_EQ(world.admitted({}, 5), 2);
    const Reply refused = world.ask({});
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.rule, "l");
}

TEST_P(StoreDown, WithoutAStandInLocalLimitsAreOpen) {
    World world(
        with_limits("  - {name: l, per: [address], fixed_window: 1/min, store_down: local}\n"), "");
    fail(world, true);
    EXPECT_EQ(world.admitted({}, 3), 3);
}

TEST_P(StoreDown, SlotsTakenFromTheStandInAreGivenBackToIt) {
    World world(with_limits("  - {name: l, per: [address], concurrency: 1, store_down: local}\n"),
                "", {.with_local = true});
    fail(world, true);
    auto first = world.begin({});
    EXPECT_TRUE(first->reply().admitted);
    EXPECT_FALSE(world.ask({}).admitted);
    fail(world, false);
    first.reset();
    fail(world, true);
    EXPECT_TRUE(world.ask({}).admitted);
}

INSTANTIATE_TEST_SUITE_P(SilentOrNonsense, StoreDown, ::testing::Bool());

TEST(Reload, TheSameRulesKeepUseAndChangedNumbersApplyAtOnce) {
    const auto numbers = [](std::string_view rate) {
        return with_limits(
            "  - {name: l, per: [address], fixed_window: {limit: " + std::string(rate) +
            ", every: minute, count: attempts}, headers: x_ratelimit}\n");
    };
    World world(numbers("10"), "");
    world.clock.advance(seconds(10));
    EXPECT_EQ(world.admitted({}, 11), 10);
    world.reload(numbers("10"), "");
    EXPECT_FALSE(world.ask({}).admitted);
    world.clock.advance(seconds(10));
    world.reload(numbers("100"), "");
    world.clock.advance(seconds(1));
    const Reply reply = world.ask({});
    EXPECT_EQ(reply.header("X-RateLimit-Limit"), "100");
    EXPECT_EQ(reply.header("X-RateLimit-Remaining"), "87")
        << "eleven and one attempts, and this one";
}

TEST(Reload, ABucketEarnsNothingByIt) {
    const auto text = with_limits("  - {name: l, per: [address], token_bucket: 10/min}\n");
    World world(text, "");
    EXPECT_EQ(world.admitted({}, 10), 10);
    world.reload(text, "");
    const Reply refused = world.ask({});
    EXPECT_EQ(refused.retry_after(), 6);
}

TEST(Reload, ARequestUnderWayEndsUnderItsOwnRules) {
    World world(with_limits("  - {name: l, per: [address], concurrency: 1}\n"), "");
    auto flight = world.begin({});
    world.reload(with_limits("  - {name: other, per: [address], token_bucket: 5/min}\n"), "");
    EXPECT_EQ(flight->exchange().policy().limits[0].name, "l");
    world.end(*flight);
    world.reload(with_limits("  - {name: l, per: [address], concurrency: 1}\n"), "");
    EXPECT_TRUE(world.ask({}).admitted);
}

TEST(Reload, ThreadsSeeOneSetOfRulesOrTheOther) {
    const std::string a = with_limits("  - {name: a, per: [address], token_bucket: 1000000/min}\n");
    const std::string b = with_limits(
        "  - {name: b, per: [address], token_bucket: 1000000/min}\n"
        "  - {name: c, per: [address], token_bucket: 1000000/min}\n");
    World world(a, "");
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
        threads.emplace_back([&] {
            const auto exchange = std::make_unique<Exchange>();
            while (!stop.load()) {
                world.engine().begin(*exchange, {.method = "GET", .target = "/", .id = "r"},
                                     world.now());
                EXPECT_EQ(exchange->charge_count, exchange->policy().limits.size());
                world.engine().finish(*exchange, {.kind = Ending::Kind::answered}, world.now());
            }
        });
    }
    for (int i = 0; i < 50; ++i) {
        world.reload(i % 2 == 0 ? b : a, "");
    }
    stop = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
}

TEST(Cost, StatedByTheRequestSettledByTheAnswer) {
    World world(with_limits("  - name: units\n    per: [address]\n    token_bucket: 100/min\n"
                            "    headers: x_ratelimit\n"
                            "    cost: {units: 2, from: {header: X-Estimate}, settle: {header: "
                            "X-Cost}}\n"),
                "");
    const auto remaining = [&] {
        const auto flight = world.begin({});
        const std::string left = flight->reply().header("X-RateLimit-Remaining");
        world.end(*flight, 200, {{"X-Cost", "0"}});  // this look costs nothing
        return left;
    };
    auto flight = world.begin({.headers = {{"X-Estimate", "30"}}});
    EXPECT_EQ(flight->reply().header("X-RateLimit-Remaining"), "70");
    world.end(*flight, 200, {{"X-Cost", "10"}});
    EXPECT_EQ(remaining(), "88");
    flight = world.begin({.headers = {{"X-Estimate", "many"}}});
    world.end(*flight, 200, {{"X-Cost", "120"}});  // more than there is: taken all the same
    const Reply refused = world.ask({});
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.retry_after(), 20) << "30 over, 2 to have: 32 units at 100 a minute";
    EXPECT_EQ(world.ask({.headers = {{"X-Estimate", "0"}}}).status, 429)
        << "nobody declares itself free";
    const Reply never = world.ask({.headers = {{"X-Estimate", "99999999999999999999"}}});
    EXPECT_EQ(never.status, 429);
    EXPECT_FALSE(never.has("Retry-After"));
}

class ForcedCost : public ::testing::TestWithParam<const char*> {};

// A true cost above the level is charged all the same, in every kind that counts units.
TEST_P(ForcedCost, IsChargedPastTheLevel) {
    World world(with_limits("  - {name: units, per: [address], " + std::string(GetParam()) +
                            ": 10 per 10s, cost: {settle: {header: X-Cost}}}\n"),
                "");
    const auto first = world.begin({});
    const auto second = world.begin({});
    world.end(*first, 200, {{"X-Cost", "15"}});
    const Reply refused = world.ask({});
    EXPECT_EQ(refused.status, 429);
    world.end(*second, 200, {{"X-Cost", "4294967295"}});
    EXPECT_EQ(world.ask({}).status, 429);
    world.clock.advance(seconds(9));
    EXPECT_EQ(world.ask({}).status, 429);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ForcedCost,
                         ::testing::Values("token_bucket", "fixed_window", "sliding_window",
                                           "sliding_counter"));

TEST(Plan, LooksOnlyAtLimitsOfItsRouteAndKind) {
    std::string routes = "policy: p\nroutes:\n  all: ANY /**\n  hot: GET /hot\n";
    std::string spread =
        "limits:\n  - {name: mine, routes: [hot], per: [address], token_bucket: 5/min}\n";
    for (int i = 0; i < 200; ++i) {
        const std::string n = std::to_string(i);
        routes += "  r" + n + ": GET /r" + n + "\n";
        spread += "  - {name: other " + n + ", routes: [r" + n +
                  "], per: [address], token_bucket: 5/min}\n";
    }
    const auto policy = read_policy(routes + spread);
    const PlanTable table(*policy);
    EXPECT_EQ(table.candidates(1, kind_anonymous).size(), 1U);
    EXPECT_EQ(table.candidates(0, kind_anonymous).size(), 0U);
    EXPECT_EQ(table.candidates(no_route, kind_anonymous).size(), 0U);
    EXPECT_EQ(table.candidates(201, kind_anonymous).size(), 1U);
}

TEST(Plan, AnAttributesNumberIsHeldToWhatALimitCanBe) {
    World world(R"(
policy: p
routes: {all: ANY /**}
identify: {credentials: {token: {bearer: t_*}}}
limits:
  - {name: own, per: [credential], fixed_window: {limit: account.rate, every: minute}, headers: x_ratelimit}
)",
                R"(
entities:
  account:
    small: {rate: 2}
    none: {rate: 0}
    below: {rate: -5}
    huge: {rate: 9000000000000}
    silent: {}
credentials:
  t_small: {kind: token, account: small}
  t_none: {kind: token, account: none}
  t_below: {kind: token, account: below}
  t_huge: {kind: token, account: huge}
  t_silent: {kind: token, account: silent}
)");
    EXPECT_EQ(world.admitted({.bearer = "t_small"}, 5), 2);
    EXPECT_EQ(world.admitted({.bearer = "t_none"}, 5), 0);
    EXPECT_EQ(world.admitted({.bearer = "t_below"}, 5), 0);
    EXPECT_EQ(world.ask({.bearer = "t_huge"}).header("X-RateLimit-Limit"), "60000000")
        << "a million a second is the fastest there is";
    EXPECT_FALSE(world.ask({.bearer = "t_silent"}).has("X-RateLimit-Limit"));
}

TEST(Keys, QuerySpellingsAreOneValue) {
    World world(with_limits("  - {name: l, per: [query.user], token_bucket: 2/min}\n"), "");
    EXPECT_TRUE(world.ask({.path = "/?user=a%62c"}).admitted);
    EXPECT_TRUE(world.ask({.path = "/?x=1&us%65r=abc&user=zzz"}).admitted);
    EXPECT_FALSE(world.ask({.path = "/?user=abc"}).admitted);
    EXPECT_TRUE(world.ask({.path = "/?user=ab"}).admitted);
    EXPECT_TRUE(world.ask({.path = "/?other=abc"}, 9).admitted) << "no such parameter, no limit";
}

TEST(Keys, PathSpellingsAreOneValueForKeysEntitiesAndTheUpstream) {
    World world(R"(
policy: p
routes:
  team: ANY /teams/{id}/**
identify: {attributes: {team: path.id}}
limits:
  - {name: by path, per: [path.id], token_bucket: 2/min}
  - {name: by team, per: [team], token_bucket: 2/min}
  - {name: plan, per: [team], fixed_window: {limit: team.rate, every: minute}, headers: x_ratelimit}
)",
                "entities: {team: {'t:1': {rate: 2}}}");
    EXPECT_TRUE(world.ask({.path = "/teams/t:1/x"}).has("X-RateLimit-Limit"));
    EXPECT_TRUE(world.ask({.path = "/teams/t%3A1/x"}).admitted);
    EXPECT_FALSE(world.ask({.path = "/teams/t%3a1/x"}).admitted);
    const auto flight = world.begin({.path = "/teams/t%3a1/x"});
    std::string told;
    world.engine().request_fields(flight->exchange(),
                                  [&](std::string_view name, std::string_view value) {
                                      told += name == "Ration-Team" ? value : std::string_view{};
                                  });
    EXPECT_EQ(told, "t:1");
}

TEST(Keys, LongPartsAreDigestedNotCut) {
    World world(with_limits("  - {name: l, per: [header.X-Long], token_bucket: 1/min}\n"), "");
    const std::string stem(4000, 'x');
    EXPECT_TRUE(world.ask({.headers = {{"X-Long", stem + "a"}}}).admitted);
    EXPECT_TRUE(world.ask({.headers = {{"X-Long", stem + "b"}}}).admitted);
    EXPECT_FALSE(world.ask({.headers = {{"X-Long", stem + "a"}}}).admitted);
}

TEST(ExchangeDeathTest, BeginningAgainWhileOpenIsAFaultOfTheProgram) {
    World world(with_limits("  - {name: l, per: [address], concurrency: 1}\n"), "");
    Exchange exchange;
    world.engine().begin(exchange, {.method = "GET", .target = "/", .id = "1"}, world.now());
    EXPECT_DEATH(
        world.engine().begin(exchange, {.method = "GET", .target = "/", .id = "2"}, world.now()),
        "broken promise");
    world.engine().finish(exchange, {.kind = Ending::Kind::refused}, world.now());
}

}  // namespace
}  // namespace ration::testing
