// The order of judgement: pre-check, identity, limits, 401 / 403 / 404, forward.
#include <gtest/gtest.h>

#include "engine/harness.h"

namespace ration::testing {
namespace {

constexpr std::string_view policy = R"(
policy: p
routes:
  members: ANY /members/**
  open: ANY /open/**
identify:
  address: {header: X-Forwarded-For, trusted: [127.0.0.1]}
  credentials:
    member: {bearer: m_*}
    guest: {header: X-Api-Key}
    session: {cookie: sid}
  accepts:
    open: [any]
    else: [member, session]
limits:
  - {name: strangers, credentials: [anonymous, unknown], per: [address], token_bucket: 3/min}
  - {name: everybody, per: [address], token_bucket: 5/min, headers: x_ratelimit}
  - {name: members, credentials: [member], per: [credential], token_bucket: 2/min}
cors: {origins: ["https://app.example"], expose: [X-RateLimit-Limit], methods: [GET, POST], credentials: true}
)";

constexpr std::string_view directory = R"(
credentials:
  m_1: {kind: member}
  m_2: {kind: member}
  g_1: {kind: guest}
  s_1: {kind: session}
)";

class Judgement : public ::testing::Test {
protected:
    World world{policy, directory};

    static Ask member(std::string_view secret = "m_1") {
        return {.path = "/members/x", .bearer = std::string(secret)};
    }
};

TEST_F(Judgement, AnonymousAndUnknownAre401AfterTheirLimits) {
    const Ask nobody{.path = "/members/x"};
    EXPECT_EQ(world.ask(nobody).status, 401);
    EXPECT_EQ(world.ask(member("m_guess")).status, 401);
    EXPECT_EQ(world.ask(nobody).status, 401);
    const Reply refused = world.ask(nobody);
    EXPECT_EQ(refused.status, 429) << "the limit's refusal comes before the 401";
    EXPECT_EQ(refused.rule, "strangers");
    EXPECT_EQ(world.ask(member("m_guess")).status, 429);
    EXPECT_TRUE(world.ask(member()).admitted) << "the address's other budget still has two";
}

TEST_F(Judgement, A401CarriesDeclaredHeadersAndNamesNoRule) {
    const Reply reply = world.ask({.path = "/members/x"});
    EXPECT_EQ(reply.status, 401);
    EXPECT_EQ(reply.rule, "");
    EXPECT_EQ(reply.header("X-RateLimit-Limit"), "5");
    EXPECT_EQ(reply.header("WWW-Authenticate"), "Bearer");
    EXPECT_FALSE(reply.has("Retry-After"));
    EXPECT_EQ(reply.header("Cache-Control"), "no-store");
}

TEST_F(Judgement, AKnownKindTheRouteDoesNotAcceptIs403AndFree) {
    const Ask guest{.path = "/members/x", .headers = {{"X-Api-Key", "g_1"}}};
    EXPECT_EQ(world.ask(guest, 50).status, 403);
    EXPECT_EQ(world.admitted({.path = "/open/x", .headers = {{"X-Api-Key", "g_1"}}}, 9), 5);
}

TEST_F(Judgement, AnUnknownSessionIsNobodyAndAnUnknownTokenIsUnknown) {
    EXPECT_EQ(
        world.begin({.path = "/open/x", .headers = {{"Cookie", "sid=gone"}}})->exchange().kind,
        kind_anonymous);
    EXPECT_EQ(world.begin({.path = "/open/x", .headers = {{"X-Api-Key", "gone"}}})->exchange().kind,
              kind_unknown);
    EXPECT_EQ(world.begin({.path = "/open/x", .bearer = "m_gone"})->exchange().kind, kind_unknown);
    EXPECT_EQ(world.begin({.path = "/open/x", .bearer = "other_shape"})->exchange().kind,
              kind_unknown);
    EXPECT_EQ(world.begin({.path = "/open/x"})->exchange().kind, kind_anonymous);
}

TEST_F(Judgement, ATokenCountsBeforeASession) {
    const auto both =
        world.begin({.path = "/members/x", .bearer = "m_1", .headers = {{"Cookie", "sid=s_1"}}});
    EXPECT_EQ(both->exchange().policy().kinds[both->exchange().kind], "member");
    const auto bad_token =
        world.begin({.path = "/members/x", .bearer = "m_gone", .headers = {{"Cookie", "sid=s_1"}}});
    EXPECT_EQ(bad_token->exchange().kind, kind_unknown);
}

TEST_F(Judgement, UnmatchedRequestsAreChargedTheLimitsThatNameNoRoutesThen404) {
    Ask ask = member();
    ask.path = "/nowhere";
    EXPECT_EQ(world.ask(ask).status, 404);
    EXPECT_EQ(world.ask(ask).status, 404);
    EXPECT_EQ(world.ask(ask).status, 429) << "the credential's two are spent";
}

TEST_F(Judgement, AMalformedTargetIs400AndFree) {
    for (const char* path : {"/members/%2f", "/../x", "members", "/a%zz"}) {
        Ask ask = member();
        ask.path = path;
        EXPECT_EQ(world.ask(ask).status, 400) << path;
    }
    EXPECT_EQ(world.admitted(member(), 3), 2);
}

TEST_F(Judgement, OnlyRealPrechecksAreAnsweredAndFree) {
    const Fields full = {{"Origin", "https://app.example"},
                         {"Access-Control-Request-Method", "PUT"},
                         {"Access-Control-Request-Headers", "x-one"}};
    const Reply pre = world.ask({.method = "OPTIONS", .path = "/members/x", .headers = full}, 30);
    EXPECT_EQ(pre.status, 204);
    EXPECT_EQ(pre.header("Access-Control-Allow-Origin"), "https://app.example");
    EXPECT_EQ(pre.header("Access-Control-Allow-Credentials"), "true");
    EXPECT_EQ(pre.header("Access-Control-Allow-Methods"), "GET, POST");
    EXPECT_EQ(pre.header("Access-Control-Allow-Headers"), "x-one");
    EXPECT_EQ(pre.header("Access-Control-Max-Age"), "600");
    EXPECT_EQ(pre.header("Vary"), "Origin");

    EXPECT_EQ(world.ask({.method = "OPTIONS", .path = "/nowhere", .headers = full}).status, 404);
    EXPECT_EQ(world.ask({.method = "OPTIONS", .path = "/members/x"}).status, 401)
        << "without Origin it is a request like any other";
    EXPECT_EQ(world
                  .ask({.method = "OPTIONS",
                        .path = "/members/x",
                        .headers = {{"Origin", "https://app.example"}}})
                  .status,
              401);
}

TEST_F(Judgement, AnOriginThatIsNotAllowedIsToldNothing) {
    Ask ask = member();
    ask.headers = {{"Origin", "https://evil.example"}};
    const Reply reply = world.ask(ask);
    EXPECT_TRUE(reply.admitted);
    EXPECT_FALSE(reply.has("Access-Control-Allow-Origin"));
    EXPECT_FALSE(reply.has("Access-Control-Expose-Headers"));
    EXPECT_EQ(reply.header("Vary"), "Origin");
    const Reply pre = world.ask({.method = "OPTIONS",
                                 .path = "/members/x",
                                 .headers = {{"Origin", "https://evil.example"},
                                             {"Access-Control-Request-Method", "PUT"}}});
    EXPECT_EQ(pre.status, 204);
    EXPECT_FALSE(pre.has("Access-Control-Allow-Methods"));
}

TEST_F(Judgement, CorsIsOnEveryKindOfAnswer) {
    const Fields origin = {{"Origin", "https://app.example"}};
    const Ask asks[] = {
        {.path = "/members/x", .headers = origin},
        {.path = "/nowhere", .headers = origin},
        {.path = "/a%zz", .headers = origin},
        {.path = "/members/x", .bearer = "m_1", .headers = origin},
    };
    for (const Ask& ask : asks) {
        const Reply reply = world.ask(ask);
        EXPECT_EQ(reply.header("Access-Control-Allow-Origin"), "https://app.example");
        EXPECT_EQ(reply.header("Access-Control-Expose-Headers"), "X-RateLimit-Limit");
        EXPECT_NE(reply.header("Ration-Request-Id"), "");
    }
}

TEST(Forwarding, UnmatchedForwardedWhenThePolicySaysSo) {
    World world(
        "policy: p\nunmatched: forward\nroutes: {a: GET /a}\nlimits:\n"
        "  - {name: all, per: [address], token_bucket: 2/min}\n"
        "  - {name: a only, routes: [a], per: [address], token_bucket: 1/min}\n",
        "");
    EXPECT_EQ(world.admitted({.path = "/elsewhere"}, 5), 2);
}

TEST(Forwarding, TheUpstreamIsToldWhoWasFoundAndClientsCannotSayIt) {
    World world(R"(
policy: p
routes:
  team: ANY /teams/{id}/**
identify:
  attributes: {team: path.id}
  credentials: {token: {bearer: t_*}}
)",
                R"(
entities:
  account: {acc_1: {}}
  billing_group: {bg_1: {account: acc_1}}
credentials: {t_1: {kind: token, billing_group: bg_1}}
)");
    const auto flight = world.begin({.path = "/teams/red/x", .bearer = "t_1"});
    Reply sent;
    world.engine().request_fields(flight->exchange(),
                                  [&](std::string_view name, std::string_view value) {
                                      sent.headers.emplace_back(name, value);
                                  });
    EXPECT_EQ(sent.header("Ration-Request-Id"), "req-1");
    EXPECT_EQ(sent.header("Ration-Address"), "203.0.113.7");
    EXPECT_EQ(sent.header("Ration-Credential"), "token");
    EXPECT_EQ(sent.header("Ration-Account"), "acc_1");
    EXPECT_EQ(sent.header("Ration-Billing-Group"), "bg_1");
    EXPECT_EQ(sent.header("Ration-Team"), "red");
    for (const char* name : {"Ration-Account", "ration-address", "RATION-X", "Ration_Account"}) {
        EXPECT_TRUE(Engine::drops_request_field(name)) << name;
    }
    for (const char* name : {"Rational", "X-Ration-Id", "Ration", "Authorization"}) {
        EXPECT_FALSE(Engine::drops_request_field(name)) << name;
    }
}

TEST(Forwarding, NoFieldMakesTheUpstreamRunAnotherRequestThanTheOneJudged) {
    for (const char* name :
         {"X-HTTP-Method-Override", "x-http-method-override", "X_HTTP_METHOD_OVERRIDE",
          "X-HTTP_Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL",
          "X-Original_Url", "X-Rewrite-URL", "x-rewrite-url"}) {
        EXPECT_TRUE(Engine::drops_request_field(name)) << name;
    }
    for (const char* name : {"X-HTTP-Methods", "HTTP-Method-Override", "X-Original-URLs",
                             "X-Original-For", "X-Rewrite", "X", "X-Forwarded-Host", ""}) {
        EXPECT_FALSE(Engine::drops_request_field(name)) << name;
    }
}

TEST(Forwarding, BeforeARequestExistsTheAnswerHasThePolicysShape) {
    const auto rules = read_policy(
        "policy: p\nroutes: {a: GET /a}\ncors: {origins: ['*']}\n"
        "error_shape: {oops: '{message}', id: '{request_id}'}\n");
    const Answer answer = Engine::failure(*rules, BuiltIn::bad_request, "r-1", "Two Host headers.");
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(answer.body, R"({"oops":"Two Host headers.","id":"r-1"})");
    const Reply reply{.headers = answer.headers};
    EXPECT_EQ(reply.header("Access-Control-Allow-Origin"), "*");
    EXPECT_EQ(reply.header("Cache-Control"), "no-store");
}

}  // namespace
}  // namespace ration::testing
