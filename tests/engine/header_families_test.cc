// Two published pages' headers and bodies, and what each header family says.
#include <gtest/gtest.h>

#include "engine/harness.h"

namespace ration::testing {
namespace {

using std::chrono::seconds;

// A page that counts refused requests too, per token and UTC minute, and writes by team.
constexpr std::string_view team_policy = R"(
policy: teams
unmatched: forward
routes:
  teams: ANY /teams/{teamId}/**
identify:
  attributes: {team: path.teamId}
  credentials:
    personal_token: {bearer: axp_*}
    session: {cookie: axuz_session}
  accepts: {else: [any]}
limits:
  - name: personal token
    credentials: [personal_token]
    per: [credential]
    fixed_window: {limit: credential.rate_limit_per_min, every: minute, count: attempts}
    headers: x_ratelimit
    refuse: token_rate_limited
  - name: team mutations
    routes: [teams]
    methods: [POST, PATCH, PUT, DELETE]
    per: [user, team]
    token_bucket: 60/min
    refuse: team_rate_limited
refusals:
  token_rate_limited:
    headers: {Retry-After: "{retry_after}"}
    body: {error: rate_limited, limit: "{limit}", count: "{count}", retry_after: "{retry_after}"}
  team_rate_limited:
    headers: {Retry-After: "{retry_after}", X-RateLimit-Limit: "{limit}"}
    body: {error: rate_limited, retry_after: "{retry_after}"}
)";

constexpr std::string_view team_directory = R"(
entities:
  user: {u_1: {}, u_2: {}}
credentials:
  axp_1: {kind: personal_token, user: u_1, rate_limit_per_min: 60}
  axp_2: {kind: personal_token, user: u_1, rate_limit_per_min: 1000}
  axp_3: {kind: personal_token, user: u_2, rate_limit_per_min: 1000}
  browser: {kind: session, user: u_1}
)";

TEST(TokenPage, EveryAnswerToATokenCallCarriesTheThreeNumbers) {
    World world(team_policy, team_directory);  // starts on a UTC minute
    world.clock.advance(seconds(48));
    const Ask ask{.path = "/me/summary", .bearer = "axp_1"};
    for (int i = 1; i <= 60; ++i) {
        const Reply good = world.ask(ask);
        ASSERT_TRUE(good.admitted);
        EXPECT_EQ(good.header("X-RateLimit-Limit"), "60");
        EXPECT_EQ(good.header("X-RateLimit-Remaining"), std::to_string(60 - i));
        EXPECT_EQ(good.header("X-RateLimit-Reset"), "1800000060");
        EXPECT_EQ(good.header("Cache-Control"), "private");
        EXPECT_FALSE(good.has("Retry-After"));
    }
    const Reply refused = world.ask(ask);
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.body, R"({"error":"rate_limited","limit":60,"count":61,"retry_after":12})");
    EXPECT_EQ(refused.header("Retry-After"), "12");
    EXPECT_EQ(refused.header("X-RateLimit-Limit"), "60");
    EXPECT_EQ(refused.header("X-RateLimit-Remaining"), "0");
    EXPECT_EQ(refused.header("X-RateLimit-Reset"), "1800000060");
    EXPECT_EQ(world.ask(ask).body,
              R"({"error":"rate_limited","limit":60,"count":62,"retry_after":12})");
    world.clock.advance(seconds(12));
    EXPECT_EQ(world.ask(ask).header("X-RateLimit-Remaining"), "59");
}

TEST(TokenPage, TwoTokensOfOneUserAreApartAndSessionsAreNotCounted) {
    World world(team_policy, team_directory);
    EXPECT_EQ(world.admitted({.path = "/me", .bearer = "axp_1"}, 70), 60);
    EXPECT_EQ(world.admitted({.path = "/me", .bearer = "axp_2"}, 70), 70);
    const Ask browser{.path = "/me", .headers = {{"Cookie", "axuz_session=browser"}}};
    const Reply reply = world.ask(browser, 2000);
    EXPECT_TRUE(reply.admitted);
    EXPECT_FALSE(reply.has("X-RateLimit-Limit"));
}

TEST(TokenPage, ATokenCountsBeforeASessionAndEachSpellingOfItIsOneBucket) {
    World world(team_policy, team_directory);
    const Ask both{
        .path = "/me", .bearer = "axp_1", .headers = {{"Cookie", "axuz_session=browser"}}};
    EXPECT_EQ(world.admitted(both, 30), 30);
    const Ask lower{.path = "/me", .headers = {{"authorization", "bearer   axp_1"}}};
    EXPECT_EQ(world.admitted(lower, 40), 30);
}

TEST(TeamPage, WritesArePerUserAndTeamAndTheRefusalTellsCapacityAlone) {
    World world(team_policy, team_directory);
    const Ask write{.method = "POST", .path = "/teams/t_1/tasks", .bearer = "axp_2"};
    EXPECT_EQ(world.admitted(write, 60), 60);
    EXPECT_EQ(world.admitted({.path = "/teams/t_1/tasks", .bearer = "axp_2"}, 100), 100)
        << "reads do not count";
    const Reply refused = world.ask(write);
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.body, R"({"error":"rate_limited","retry_after":1})");
    EXPECT_EQ(refused.header("Retry-After"), "1");
    EXPECT_EQ(refused.header("X-RateLimit-Limit"), "60");
    EXPECT_FALSE(refused.has("X-RateLimit-Remaining"));
    EXPECT_FALSE(refused.has("X-RateLimit-Reset"));

    Ask other_team = write;
    other_team.path = "/teams/t_2/tasks";
    EXPECT_TRUE(world.ask(other_team).admitted);
    Ask other_user = write;
    other_user.bearer = "axp_3";
    EXPECT_TRUE(world.ask(other_user).admitted);
    Ask session{.method = "DELETE",
                .path = "/teams/t_1/tasks/9",
                .headers = {{"Cookie", "axuz_session=browser"}}};
    EXPECT_FALSE(world.ask(session).admitted) << "the same user by session";
}

TEST(TeamPage, ARuleWhoseAttributeTheSubjectLacksDoesNotApply) {
    World world(team_policy, team_directory);
    EXPECT_EQ(world.admitted({.method = "POST", .path = "/teams/t_1/tasks"}, 200), 200)
        << "nobody is no user, and shares no bucket of nobodies";
}

std::string one_limit(std::string_view numbers, std::string_view family) {
    return "policy: p\nroutes: {all: ANY /**}\nlimits:\n  - {name: tight, per: [address], " +
           std::string(numbers) + ", headers: " + std::string(family) + "}\n";
}

struct FamilyRow {
    const char* what;
    const char* numbers;
    const char* family;
    int before;  // requests in front of the one looked at
    Fields expected;
    Fields absent;
};

class Families : public ::testing::TestWithParam<FamilyRow> {};

TEST_P(Families, SayExactly) {
    const FamilyRow& row = GetParam();
    World world(one_limit(row.numbers, row.family), "");
    world.clock.advance(seconds(15));
    const Reply reply = world.ask({}, row.before + 1);
    for (const auto& [name, value] : row.expected) {
        EXPECT_EQ(reply.header(name), value) << row.what << ": " << name;
    }
    for (const auto& [name, value] : row.absent) {
        EXPECT_FALSE(reply.has(name)) << row.what << ": " << name;
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, Families,
    ::testing::Values(FamilyRow{"window, admitted",
                                "fixed_window: 2/min",
                                "x_ratelimit",
                                0,
                                {{"X-RateLimit-Limit", "2"},
                                 {"X-RateLimit-Remaining", "1"},
                                 {"X-RateLimit-Reset", "1800000060"}},
                                {{"Retry-After", ""}}},
                      FamilyRow{"window, refused",
                                "fixed_window: 2/min",
                                "x_ratelimit",
                                2,
                                {{"X-RateLimit-Remaining", "0"},
                                 {"X-RateLimit-Reset", "1800000060"},
                                 {"Retry-After", "45"}},
                                {}},
                      FamilyRow{
                          "bucket: full again in two seconds",
                          "token_bucket: 60/min",
                          "x_ratelimit",
                          1,
                          {{"X-RateLimit-Remaining", "58"}, {"X-RateLimit-Reset", "1800000017"}},
                          {}},
                      FamilyRow{"draft 10, bucket",
                                "token_bucket: 60/min",
                                "ietf_draft_10",
                                1,
                                {{"RateLimit-Policy", R"("tight";q=60;w=60)"},
                                 {"RateLimit", R"("tight";r=58;t=1)"}},
                                {{"RateLimit-Remaining", ""}, {"RateLimit-Limit", ""}}},
                      FamilyRow{"draft 10, bucket with a burst",
                                "token_bucket: {rate: 60/min, burst: 90}",
                                "ietf_draft_10",
                                0,
                                {{"RateLimit-Policy", R"("tight";q=60;w=60;ration-burst=90)"}},
                                {}},
                      FamilyRow{"draft 10, window refused",
                                "fixed_window: 1/min",
                                "ietf_draft_10",
                                1,
                                {{"RateLimit", R"("tight";r=0;t=45)"}, {"Retry-After", "45"}},
                                {}},
                      FamilyRow{"draft 10, in flight",
                                "concurrency: 5",
                                "ietf_draft_10",
                                0,
                                {{"RateLimit-Policy", R"("tight";q=5;qu="concurrent-requests")"}},
                                {}},
                      FamilyRow{"draft 03",
                                "fixed_window: 100/min",
                                "ietf_draft_03",
                                0,
                                {{"RateLimit-Limit", "100, 100;w=60"},
                                 {"RateLimit-Remaining", "99"},
                                 {"RateLimit-Reset", "45"}},
                                {{"RateLimit-Policy", ""}}},
                      FamilyRow{"remaining on refusal, admitted",
                                "token_bucket: 1/min",
                                "ratelimit_remaining_on_refusal",
                                0,
                                {},
                                {{"RateLimit-Remaining", ""}}},
                      FamilyRow{"remaining on refusal, refused",
                                "token_bucket: 1/min",
                                "ratelimit_remaining_on_refusal",
                                1,
                                {{"RateLimit-Remaining", "0"}, {"Retry-After", "60"}},
                                {{"RateLimit-Limit", ""}}},
                      FamilyRow{"none",
                                "token_bucket: 1/min",
                                "none",
                                1,
                                {{"Retry-After", "60"}},
                                {{"RateLimit-Remaining", ""}, {"X-RateLimit-Limit", ""}}},
                      FamilyRow{"nothing is admitted, ever",
                                "token_bucket: 0/min",
                                "x_ratelimit",
                                0,
                                {{"X-RateLimit-Limit", "0"}, {"X-RateLimit-Remaining", "0"}},
                                {{"Retry-After", ""}}}));

TEST(InFlight, TellsNoTimeItDoesNotKnow) {
    World world(one_limit("concurrency: 1", "x_ratelimit"), "");
    const auto running = world.begin({});
    EXPECT_FALSE(running->reply().has("X-RateLimit-Reset"));
    const Reply refused = world.ask({});
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.header("Retry-After"), "1") << "soon";
    EXPECT_FALSE(refused.decision.wait.has_value());
    EXPECT_FALSE(refused.has("X-RateLimit-Reset"));
    EXPECT_EQ(refused.header("X-RateLimit-Remaining"), "0");
}

TEST(Shown, TheLimitWithLeastLeftAmongThoseThatDeclareHeaders) {
    World world(R"(
policy: p
routes: {all: ANY /**}
limits:
  - {name: wide, per: [address], fixed_window: 20/min, headers: x_ratelimit}
  - {name: silent, per: [address], fixed_window: 1000/min}
  - {name: narrow, per: [address], fixed_window: 2/min, headers: x_ratelimit}
)",
                "");
    const Reply first = world.ask({});
    EXPECT_EQ(first.rule, "narrow");
    EXPECT_EQ(first.header("X-RateLimit-Limit"), "2");
    EXPECT_EQ(first.header("X-RateLimit-Remaining"), "1");
    EXPECT_EQ(world.ask({}).header("X-RateLimit-Remaining"), "0");
    const Reply refused = world.ask({});
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.header("X-RateLimit-Limit"), "2");
    EXPECT_EQ(refused.header("X-RateLimit-Remaining"), "0");
}

TEST(Shown, ARefusalShowsItsOwnLimitsHeadersAndNobodyElses) {
    World world(R"(
policy: p
routes: {all: ANY /**}
limits:
  - {name: declares, per: [address], fixed_window: 20/min, headers: x_ratelimit}
  - {name: refuses, per: [address], token_bucket: 1/min}
)",
                "");
    EXPECT_TRUE(world.ask({}).has("X-RateLimit-Limit"));
    const Reply refused = world.ask({});
    EXPECT_EQ(refused.rule, "refuses");
    EXPECT_FALSE(refused.has("X-RateLimit-Limit"));
}

TEST(Shown, UpstreamsOwnNumbersAndCorsAreReplacedNotDoubled) {
    World world(one_limit("fixed_window: 2/min", "x_ratelimit"), "");
    const auto flight = world.begin({});
    const Exchange& exchange = flight->exchange();
    EXPECT_TRUE(world.engine().drops_response_field(exchange, "x-ratelimit-limit", "9"));
    EXPECT_TRUE(world.engine().drops_response_field(exchange, "Ration-Request-Id", "x"));
    EXPECT_FALSE(world.engine().drops_response_field(exchange, "RateLimit", "9"));
    // What lets others have the caller's numbers gives way to ours; what is as strict stays.
    EXPECT_TRUE(
        world.engine().drops_response_field(exchange, "cache-control", "public, max-age=9"));
    EXPECT_FALSE(world.engine().drops_response_field(exchange, "Cache-Control", "No-Store"));
    EXPECT_FALSE(world.engine().drops_response_field(exchange, "Cache-Control", "private"));
    EXPECT_FALSE(world.engine().drops_response_field(exchange, "Access-Control-Allow-Origin", "*"))
        << "a policy without CORS leaves the upstream's alone";
}

TEST(Shown, OwnErrorsCarryTheDeclaredHeadersToo) {
    World world(
        "policy: p\nroutes: {a: GET /a}\nlimits:\n"
        "  - {name: all calls, per: [address], fixed_window: 9/min, headers: x_ratelimit}\n",
        "");
    EXPECT_EQ(world.ask({.path = "/nowhere"}).status, 404);
    const Reply missing = world.ask({.path = "/nowhere"});
    EXPECT_EQ(missing.header("X-RateLimit-Remaining"), "7");
    EXPECT_EQ(missing.rule, "");
    const auto flight = world.begin({.path = "/a"});
    for (const BuiltIn which : {BuiltIn::bad_gateway, BuiltIn::gateway_timeout}) {
        const Answer answer = world.engine().failure(flight->exchange(), which);
        const Reply reply{.headers = answer.headers};
        EXPECT_EQ(reply.header("X-RateLimit-Remaining"), "6");
        EXPECT_EQ(reply.header("Cache-Control"), "no-store");
        EXPECT_FALSE(reply.has("Retry-After"));
    }
}

}  // namespace
}  // namespace ration::testing
