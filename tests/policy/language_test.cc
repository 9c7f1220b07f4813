// What the words of the language mean: each spelling, and what stands for what is left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "policy/policy.h"

namespace ration {
namespace {

std::string fail_closed;  // what the environment says

const char* environment(const char* name) {
    return std::string_view(name) == "FAIL_CLOSED" ? fail_closed.c_str() : nullptr;
}

std::shared_ptr<const Policy> parse(const std::string& text) {
    Problems problems;
    auto policy = Policy::parse("p", "policy: p\n" + text, environment, problems);
    EXPECT_NE(policy, nullptr) << problems.status();
    return policy;
}

LimitRule only_limit(const std::string& numbers) {
    const auto policy = parse("limits:\n  - {name: x, per: [], " + numbers + "}\n");
    return policy == nullptr ? LimitRule{} : policy->limits.at(0);
}

struct NumbersCase {
    const char* text;
    Limit limit;
};

class FixedNumbers : public ::testing::TestWithParam<NumbersCase> {};

TEST_P(FixedNumbers, MeanThisLimit) {
    const LimitRule rule = only_limit(GetParam().text);
    ASSERT_TRUE(rule.numbers.fixed.has_value());
    EXPECT_EQ(**rule.numbers.fixed, GetParam().limit) << to_string(**rule.numbers.fixed);
}

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

INSTANTIATE_TEST_SUITE_P(
    Table, FixedNumbers,
    ::testing::Values(
        NumbersCase{"token_bucket: 60/min", token_bucket(60, minutes(1))},
        NumbersCase{"token_bucket: 60 per minute", token_bucket(60, minutes(1))},
        NumbersCase{"token_bucket: \" 60 / min \"", token_bucket(60, minutes(1))},
        NumbersCase{"token_bucket: 10 per 13s", token_bucket(10, seconds(13))},
        NumbersCase{"token_bucket: 10/13s", token_bucket(10, seconds(13))},
        NumbersCase{"token_bucket: 3000/hour", token_bucket(3000, hours(1))},
        NumbersCase{"token_bucket: 0/second", token_bucket(0, seconds(1))},
        NumbersCase{"token_bucket: 1 per 3653 days", token_bucket(1, hours(24) * 3653)},
        NumbersCase{"token_bucket: 1000000/s", token_bucket(1000000, seconds(1))},
        NumbersCase{"token_bucket: {rate: 60/min, burst: 100}", token_bucket(60, minutes(1), 100)},
        NumbersCase{"token_bucket: {limit: 60, every: minute}", token_bucket(60, minutes(1))},
        NumbersCase{"token_bucket: {limit: 6, every: 1 minute, burst: 9}",
                    token_bucket(6, minutes(1), 9)},
        NumbersCase{"fixed_window: 5 per 365 days", fixed_window(5, hours(24) * 365)},
        NumbersCase{"fixed_window: 5 per 2 weeks", fixed_window(5, hours(24) * 14)},
        NumbersCase{"fixed_window: {limit: 60, every: minute, count: attempts}",
                    fixed_window(60, minutes(1), true)},
        NumbersCase{"fixed_window: 60/min, count: attempts", fixed_window(60, minutes(1), true)},
        NumbersCase{"fixed_window: 60/min, count: admissions", fixed_window(60, minutes(1))},
        NumbersCase{"sliding_window: 100000/day", sliding_window(100000, hours(24))},
        NumbersCase{"sliding_counter: 7 per 250 ms",
                    sliding_counter(7, std::chrono::milliseconds(250))},
        NumbersCase{"fixed_window: 7 per 90 us", fixed_window(7, std::chrono::microseconds(90))},
        NumbersCase{"fixed_window: 0 per 9 ns", fixed_window(0, std::chrono::nanoseconds(9))},
        NumbersCase{"concurrency: 10", concurrency(10)},
        NumbersCase{"concurrency: {limit: 10}", concurrency(10)}));

struct AttributeCase {
    const char* text;
    std::vector<std::string> path;
    Nanos period;
};

class AttributeNumbers : public ::testing::TestWithParam<AttributeCase> {};

TEST_P(AttributeNumbers, AreLeftToTheRequest) {
    const LimitRule rule = only_limit(GetParam().text);
    EXPECT_FALSE(rule.numbers.fixed.has_value());
    ASSERT_TRUE(rule.numbers.attribute.has_value());
    EXPECT_EQ(rule.numbers.attribute->source, Selector::Source::attribute);
    EXPECT_EQ(rule.numbers.attribute->path, GetParam().path);
    EXPECT_EQ(rule.numbers.shape.period, GetParam().period);
}

INSTANTIATE_TEST_SUITE_P(
    Table, AttributeNumbers,
    ::testing::Values(
        AttributeCase{"fixed_window: {limit: credential.rate_limit_per_min, every: minute}",
                      {"credential", "rate_limit_per_min"},
                      minutes(1)},
        AttributeCase{
            "token_bucket: account.plan.rate per 10 s", {"account", "plan", "rate"}, seconds(10)},
        AttributeCase{"token_bucket: {rate: account.rate/min}", {"account", "rate"}, minutes(1)},
        AttributeCase{"concurrency: account.parallel", {"account", "parallel"}, Nanos{0}},
        AttributeCase{
            "concurrency: {limit: account.parallel}", {"account", "parallel"}, Nanos{0}}));

TEST(Language, WhatIsLeftOutOfALimit) {
    const LimitRule rule = only_limit("concurrency: 1");
    EXPECT_TRUE(rule.covers(no_route));
    EXPECT_EQ(rule.kinds, all_kinds);
    EXPECT_TRUE(rule.methods.empty());
    EXPECT_EQ(rule.cost.fixed, 1U);
    EXPECT_EQ(rule.headers, HeaderFamily::none);
    EXPECT_EQ(rule.store_down, StoreDown::open);
    EXPECT_FALSE(rule.shadow);
    EXPECT_TRUE(rule.key.empty());
}

TEST(Language, ALimitWithoutRefuseAnswers429WithItsWait) {
    const auto policy = parse("limits:\n  - {name: x, per: [], concurrency: 1}\n");
    const Refusal& refusal = policy->refusals[policy->limits[0].refusal];
    EXPECT_EQ(refusal.status, 429);
    EXPECT_EQ(refusal.type, "rate_limited");
    ASSERT_EQ(refusal.headers.size(), 1U);
    EXPECT_EQ(refusal.headers[0].first, "Retry-After");
}

TEST(Language, StoreDownAsksTheEnvironment) {
    const std::string text = "concurrency: 1, store_down: {closed_if: env.FAIL_CLOSED}";
    for (const char* yes : {"true", "1", "yes", "on", "ON", "True"}) {
        fail_closed = yes;
        EXPECT_EQ(only_limit(text).store_down, StoreDown::closed) << yes;
    }
    for (const char* no : {"", "false", "0", "no", "off", "Off"}) {
        fail_closed = no;
        EXPECT_EQ(only_limit(text).store_down, StoreDown::open) << no;
    }
    EXPECT_EQ(only_limit("concurrency: 1, store_down: {closed_if: env.OTHER}").store_down,
              StoreDown::open);
    for (const char* odd : {"perhaps", "2", " true", "t"}) {
        fail_closed = odd;
        Problems problems;
        EXPECT_EQ(Policy::parse("p", "policy: p\nlimits: [{name: x, per: [], " + text + "}]\n",
                                environment, problems),
                  nullptr)
            << odd;
    }
    fail_closed.clear();
}

TEST(Language, GetIncludesHead) {
    EXPECT_EQ(only_limit("methods: [GET, POST], concurrency: 1").methods,
              (std::vector<std::string>{"GET", "POST", "HEAD"}));
    EXPECT_EQ(only_limit("methods: [HEAD], concurrency: 1").methods,
              std::vector<std::string>{"HEAD"});
}

TEST(Language, ExceptRoutesKeepsUnmatchedRequests) {
    const auto policy = parse(
        "routes: {a: GET /a, b: GET /b}\nlimits:\n"
        "  - {name: x, except_routes: [a], per: [], concurrency: 1}\n"
        "  - {name: y, routes: [a], per: [], concurrency: 1}\n"
        "  - {name: z, per: [], concurrency: {a: 1}}\n"
        "  - {name: w, per: [], concurrency: {a: 1, else: 2}}\n");
    const auto covers = [&](std::size_t limit) {
        const LimitRule& rule = policy->limits.at(limit);
        return std::vector<bool>{rule.covers(0), rule.covers(1), rule.covers(no_route)};
    };
    EXPECT_EQ(covers(0), (std::vector<bool>{false, true, true}));
    EXPECT_EQ(covers(1), (std::vector<bool>{true, false, false}));
    EXPECT_EQ(covers(2), (std::vector<bool>{true, false, false}));
    EXPECT_EQ(covers(3), (std::vector<bool>{true, true, true}));
}

TEST(Language, AcceptsDefaults) {
    const std::string route = "routes: {a: GET /a, b: GET /b}\n";
    const KindSet declared = kind_bit(2) | kind_bit(3);
    EXPECT_EQ(parse(route)->routes[0].accepts, kind_bit(kind_anonymous));
    const auto two =
        parse(route + "identify: {credentials: {k: {bearer: k_*}, l: {bearer: l_*}}}\n");
    EXPECT_EQ(two->routes[0].accepts, declared);
    EXPECT_EQ(two->accepts_unmatched, all_kinds);
    const auto some = parse(route +
                            "unmatched: forward\nidentify:\n"
                            "  credentials: {k: {bearer: k_*}, l: {bearer: l_*}}\n"
                            "  accepts: {a: any, else: [l, anonymous]}\n");
    EXPECT_EQ(some->routes[0].accepts, all_kinds);
    EXPECT_EQ(some->routes[1].accepts, kind_bit(3) | kind_bit(kind_anonymous));
    EXPECT_EQ(some->accepts_unmatched, kind_bit(3) | kind_bit(kind_anonymous));
}

TEST(Language, OnlyACookiesUnknownSecretIsAnonymous) {
    const auto policy = parse(
        "identify: {credentials: {session: {cookie: s}, key: {bearer: k_*}, "
        "both: [{cookie: b}, {bearer: b_*}]}}\n");
    EXPECT_EQ(policy->unknown_is_anonymous, kind_bit(2));
    EXPECT_EQ(policy->credentials.size(), 4U);
    EXPECT_EQ(policy->kind_of_rule, (std::vector<KindIndex>{2, 3, 4, 4}));
}

TEST(Language, EntitiesMayBeNamedByTheRequest) {
    const auto policy =
        parse("routes: {t: \"GET /t/{teamId}\"}\nidentify: {attributes: {team: path.teamId}}\n");
    ASSERT_EQ(policy->bound_entities.size(), 1U);
    EXPECT_EQ(policy->bound_entities[0].first, "team");
    EXPECT_EQ(policy->bound_entities[0].second.source, Selector::Source::path);
    EXPECT_EQ(policy->bound_entities[0].second.name, "teamId");
}

TEST(Language, PatternsWithSeveralMethods) {
    const auto policy =
        parse("routes: {a: \"GET, POST /a\", b: {match: [ANY /b]}}\ntrailing_slash: distinct\n");
    EXPECT_EQ(policy->table.match("POST", "/a").route, 0);
    EXPECT_EQ(policy->table.match("PUT", "/a").route, no_route);
    EXPECT_EQ(policy->table.match("PUT", "/b").route, 1);
    EXPECT_EQ(policy->table.match("GET", "/a/").route, no_route);
}

TEST(Language, CostsOfEverySort) {
    const auto policy = parse(
        "routes: {a: GET /a}\nlimits:\n"
        "  - {name: x, per: [], token_bucket: 9/s, cost: {units: 2, by_route: {a: 5}, "
        "from: {header: X-C}, settle: {header: X-R}}}\n");
    const Cost& cost = policy->limits[0].cost;
    EXPECT_EQ(cost.fixed, 2U);
    EXPECT_EQ(cost.by_route, (std::vector<std::pair<RouteIndex, std::uint32_t>>{{0, 5}}));
    EXPECT_EQ(cost.request_header, "X-C");
    EXPECT_EQ(cost.response_header, "X-R");
}

std::string body_of(const Refusal& refusal) {
    HoleValues values;
    values.type = refusal.type;
    values.message = refusal.message;
    values.limit = 60;
    std::string body;
    EXPECT_TRUE(refusal.body.append_to(body, values));
    return body;
}

TEST(Language, AnswersTakeTheErrorShapeUnlessTheyHaveABody) {
    const auto policy = parse(
        "error_shape: {code: \"{type}\", text: \"{message}\"}\n"
        "refusals:\n"
        "  not_found: {message: Nothing here.}\n"
        "  forbidden: {body: \"No.\\n\"}\n"
        "  unauthorized: {type: who, body: {n: 1, t: \"{type}\", l: \"{limit}\", s: \"1\"}}\n");
    EXPECT_EQ(body_of(policy->answer(BuiltIn::not_found)),
              R"({"code":"not_found","text":"Nothing here."})");
    EXPECT_EQ(policy->answer(BuiltIn::not_found).status, 404);
    EXPECT_EQ(body_of(policy->answer(BuiltIn::forbidden)), "No.\n");
    EXPECT_EQ(policy->answer(BuiltIn::forbidden).content_type, "text/plain; charset=utf-8");
    EXPECT_EQ(body_of(policy->answer(BuiltIn::unauthorized)),
              R"({"n":1,"t":"who","l":60,"s":"1"})");
    EXPECT_EQ(body_of(policy->answer(BuiltIn::bad_gateway)),
              R"({"code":"bad_gateway","text":"The service could not be reached."})");
}

TEST(Language, TheRateLimiterBeingDownTellsToComeBackInAMinute) {
    const auto policy = parse("");
    const Refusal& answer = policy->answer(BuiltIn::store_unavailable);
    EXPECT_EQ(answer.status, 503);
    std::string value;
    ASSERT_EQ(answer.headers.size(), 1U);
    EXPECT_TRUE(answer.headers[0].second.append_to(value, {}));
    EXPECT_EQ(answer.headers[0].first + ": " + value, "Retry-After: 60");
}

TEST(Language, CorsAndAddress) {
    const auto policy = parse(
        "cors: {origins: [\"https://App.example.com\"], max_age: 1 h}\n"
        "identify: {address: {header: x-forwarded-for, trusted: 10.0.0.1}}\n");
    EXPECT_TRUE(policy->cors.enabled);
    EXPECT_FALSE(policy->cors.any_origin);
    EXPECT_EQ(policy->cors.origins, std::vector<std::string>{"https://app.example.com"});
    EXPECT_EQ(policy->cors.max_age_seconds, 3600);
    EXPECT_EQ(policy->address.header, ForwardingHeader::x_forwarded_for);
    EXPECT_EQ(policy->address.trusted.size(), 1U);
    EXPECT_FALSE(parse("")->cors.enabled);
    EXPECT_EQ(parse("")->address.header, ForwardingHeader::none);
}

}  // namespace
}  // namespace ration
