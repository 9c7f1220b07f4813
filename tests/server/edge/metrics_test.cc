#include "server/metrics/metrics.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/text.h"
#include "engine/durable.h"
#include "engine/harness.h"
#include "server/edge/rules.h"

namespace ration {
namespace {

using testing::Ask;
using testing::World;

// Puts a request through the engine and tells the metrics about its end.
void pass(World& world, Metrics& metrics, const Ask& ask) {
    const auto flight = world.begin(ask);
    const Exchange& exchange = flight->exchange();
    const bool admitted = exchange.decision.kind == Decision::Kind::admit;
    RequestRecord record;
    record.exchange = &exchange;
    record.outcome = admitted ? RequestOutcome::admitted : RequestOutcome::refused;
    record.status = admitted ? 200 : flight->reply().status;
    record.total = std::chrono::milliseconds(2);
    record.upstream = admitted ? std::chrono::milliseconds(1) : Nanos(0);
    metrics.on_request(record);
    world.end(*flight);
}

const RuleTotals* find(const MetricsTotals& totals, std::string_view rule) {
    for (const RuleTotals& one : totals.rules) {
        if (one.rule == rule) {
            return &one;
        }
    }
    return nullptr;
}

std::uint64_t count(const MetricsTotals& totals, std::string_view rule, RuleEvent event) {
    const RuleTotals* found = find(totals, rule);
    return found == nullptr ? 0 : found->events[static_cast<std::size_t>(event)];
}

TEST(Metrics, DecisionsAreCountedByTheRuleThatMadeThem) {
    World world(testing::ping_policy, testing::ping_directory);
    Metrics metrics;
    for (int i = 0; i < 13; ++i) {
        pass(world, metrics, {.path = "/v1/ping"});
    }
    const MetricsTotals totals = metrics.totals();
    EXPECT_EQ(count(totals, "pings", RuleEvent::admitted), 10U);
    EXPECT_EQ(count(totals, "pings", RuleEvent::refused), 3U);
    EXPECT_EQ(count(totals, "in shadow", RuleEvent::refused), 0U);
    EXPECT_GE(count(totals, "in shadow", RuleEvent::shadow_refused), 9U);
    EXPECT_EQ(totals.requests[static_cast<std::size_t>(RequestOutcome::admitted)], 10U);
    EXPECT_EQ(totals.requests[static_cast<std::size_t>(RequestOutcome::refused)], 3U);
    EXPECT_EQ(totals.statuses[2], 10U);
    EXPECT_EQ(totals.statuses[4], 3U);
    EXPECT_EQ(totals.wait.total(), 3U);
    EXPECT_EQ(totals.total.total(), 13U);
    EXPECT_EQ(totals.upstream.total(), 10U);
    EXPECT_EQ(totals.store_answers, 13U);
}

TEST(Metrics, UnknownPathsAndKeysMakeNoSeries) {
    World world(testing::ping_policy, testing::ping_directory);
    Metrics metrics;
    pass(world, metrics, {.path = "/v1/ping"});
    const std::size_t before = metrics.totals().rules.size();
    EXPECT_EQ(before, 2U);
    for (int i = 0; i < 500; ++i) {
        pass(world, metrics,
             {.path = cat("/nowhere/", i),
              .bearer = cat("sk_guess_", i),
              .peer = cat("10.0.0.", i % 250)});
        pass(world, metrics, {.method = cat("M", i), .path = cat("/v1/free/", i)});
    }
    EXPECT_EQ(metrics.totals().rules.size(), before);
}

constexpr std::string_view durable_policy = R"(policy: p
routes: {order: POST /orders, cancel: "DELETE /orders/{id}", free: GET /orders}
limits:
  - {name: rate, per: [address], token_bucket: 100/min, refuse: no}
ceilings:
  - {name: daily, routes: [order], per: [address], at_most: 2 per day in UTC, refuse: no}
  - {name: monthly, routes: [order], per: [address], at_most: 9 per day in UTC, refuse: no}
quotas:
  - {name: live orders, per: [address], at_most: 5, up: {order: body.id}, down: {cancel: path.id}, refuse: no}
idempotency:
  - {name: keys, routes: [order], scope: [address]}
refusals:
  no: {status: 429, body: {error: "no"}}
)";

// An engine's request that the ledger is asked about: what it says is up to the test.
struct DurablePass {
    World world{durable_policy, ""};
    Metrics metrics;

    void operator()(const Ask& ask_for, const Reserved& reserved, absl::Status status = {}) {
        Exchange exchange;
        std::vector<Header> headers;
        for (const auto& [name, value] : ask_for.headers) {
            headers.push_back({name, value});
        }
        Engine& engine = world.engine();
        engine.begin(
            exchange,
            {.method = ask_for.method, .target = ask_for.path, .headers = headers, .id = "r"},
            world.now());
        if (exchange.durable != nullptr && ask(exchange, *exchange.durable, "") &&
            !exchange.durable->only_settles()) {
            judge(exchange, *exchange.durable, {status, reserved});
        }
        RequestRecord record;
        record.exchange = &exchange;
        metrics.on_request(record);
        engine.finish(exchange, {.kind = Ending::Kind::answered, .status = 201}, world.now());
    }
    [[nodiscard]] std::string counted(std::string_view rule) const {
        const MetricsTotals totals = metrics.totals();
        return cat(count(totals, rule, RuleEvent::admitted), " ",
                   count(totals, rule, RuleEvent::refused));
    }
};

Reserved started() {
    Reserved reserved;
    reserved.attempt = 7;
    return reserved;
}

Reserved verdict(ReserveVerdict verdict, std::uint8_t index = 0) {
    Reserved reserved;
    reserved.verdict = verdict;
    reserved.index = index;
    return reserved;
}

TEST(Metrics, CeilingsQuotasAndKeysThatLetARequestPassAreCounted) {
    DurablePass pass;
    const Ask plain{.method = "POST", .path = "/orders"};
    const Ask keyed{.method = "POST", .path = "/orders", .headers = {{"Idempotency-Key", "k"}}};
    pass.metrics.announce(pass.world.engine().rules()->policy);
    EXPECT_EQ(pass.metrics.totals().rules.size(), 5U) << "all rules are shown from the start";

    pass(plain, started());
    pass(plain, started());
    EXPECT_EQ(pass.counted("rate"), "2 0");
    EXPECT_EQ(pass.counted("daily"), "2 0");
    EXPECT_EQ(pass.counted("monthly"), "2 0");
    EXPECT_EQ(pass.counted("live orders"), "2 0");
    EXPECT_EQ(pass.counted("keys"), "0 0") << "it did not judge what has no key";
    pass(keyed, started());
    EXPECT_EQ(pass.counted("keys"), "1 0");
    EXPECT_EQ(pass.counted("daily"), "3 0");

    // Only the rule that refused counts then.
    pass(plain, verdict(ReserveVerdict::ceiling_reached, 1));
    EXPECT_EQ(pass.counted("monthly"), "3 1");
    EXPECT_EQ(pass.counted("daily"), "3 0");
    EXPECT_EQ(pass.counted("rate"), "3 0");
    pass(plain, verdict(ReserveVerdict::quota_reached));
    EXPECT_EQ(pass.counted("live orders"), "3 1");
    pass(keyed, verdict(ReserveVerdict::mismatch));
    EXPECT_EQ(pass.counted("keys"), "1 1");
    // A replay spends nothing of a ceiling; the limits before it let it pass.
    pass(keyed, verdict(ReserveVerdict::replay));
    EXPECT_EQ(pass.counted("keys"), "1 1");
    EXPECT_EQ(pass.counted("daily"), "3 0");
    EXPECT_EQ(pass.counted("rate"), "4 0");
    // No answer from the ledger is nobody's judgement.
    pass(plain, {}, absl::UnavailableError("disk"));
    EXPECT_EQ(pass.counted("daily"), "3 0");
}

TEST(Metrics, WhatTheLedgerIsNotAskedAboutCountsForLimitsAlone) {
    DurablePass pass;
    pass({.method = "GET", .path = "/orders"}, {});
    pass({.method = "DELETE", .path = "/orders/o_1"}, {});
    EXPECT_EQ(pass.counted("rate"), "2 0");
    for (const char* rule : {"daily", "monthly", "live orders", "keys"}) {
        EXPECT_EQ(pass.counted(rule), "0 0") << rule;
    }
}

TEST(Metrics, AnOutageOfTheCountersIsCountedByRuleAndChoice) {
    World world(R"(policy: p
routes: {a: GET /a, b: GET /b}
limits:
  - {name: lets through, routes: [a], per: [address], token_bucket: 5/min, store_down: open, refuse: no}
  - {name: shuts, routes: [b], per: [address], token_bucket: 5/min, store_down: closed, refuse: no}
refusals:
  no: {status: 429, body: {error: "no"}}
)",
                "");
    Metrics metrics;
    pass(world, metrics, {.path = "/a"});
    world.faults().down = true;
    pass(world, metrics, {.path = "/a"});
    pass(world, metrics, {.path = "/a"});
    pass(world, metrics, {.path = "/b"});
    const MetricsTotals totals = metrics.totals();
    EXPECT_EQ(count(totals, "lets through", RuleEvent::admitted), 1U);
    EXPECT_EQ(count(totals, "lets through", RuleEvent::down_open), 2U);
    EXPECT_EQ(count(totals, "shuts", RuleEvent::down_closed), 1U);
    EXPECT_EQ(count(totals, "shuts", RuleEvent::refused), 0U);
    EXPECT_EQ(totals.store_answers, 1U);
    EXPECT_EQ(totals.store_failures, 3U);
}

TEST(Metrics, ARequestTheEngineNeverSawCountsToo) {
    Metrics metrics;
    RequestRecord record;
    record.outcome = RequestOutcome::malformed;
    record.status = 400;
    metrics.on_request(record);
    record.outcome = RequestOutcome::client_gone;
    record.status = 0;
    metrics.on_request(record);
    const MetricsTotals totals = metrics.totals();
    EXPECT_EQ(totals.requests[static_cast<std::size_t>(RequestOutcome::malformed)], 1U);
    EXPECT_EQ(totals.statuses[4], 1U);
    EXPECT_EQ(totals.statuses[0], 1U);
    EXPECT_TRUE(totals.rules.empty());
}

std::shared_ptr<const Policy> policy_with(int first, int rules) {
    std::string text = "policy: many\nroutes: {a: GET /a}\nlimits:\n";
    for (int i = first; i < first + rules; ++i) {
        text += cat("  - {name: rule ", i, ", per: [address], token_bucket: 1/s, refuse: no}\n");
    }
    return testing::read_policy(
        cat(text, "refusals:\n  no: {status: 429, body: {error: \"no\"}}\n"));
}

TEST(Metrics, RuleNamesAreBoundedOverReloads) {
    Metrics metrics;
    constexpr int rules = 16;
    constexpr int bound = static_cast<int>(max_rule_series) - 1;
    for (int i = 0; i + rules <= bound; i += rules) {
        metrics.announce(policy_with(i, rules));
    }
    const int left = bound % rules;
    metrics.announce(policy_with(bound - left, left));
    EXPECT_EQ(metrics.totals().rules.size(), max_rule_series - 1);
    EXPECT_EQ(find(metrics.totals(), other_rules), nullptr);
    metrics.announce(policy_with(bound, 1));
    EXPECT_EQ(metrics.totals().rules.size(), max_rule_series);
    EXPECT_NE(find(metrics.totals(), other_rules), nullptr);
    metrics.announce(policy_with(bound + 1, rules));
    EXPECT_EQ(metrics.totals().rules.size(), max_rule_series);
}

TEST(Metrics, TwoObjectsAndTwoPoliciesDoNotMix) {
    World first(testing::ping_policy, testing::ping_directory);
    World second(R"(policy: other
routes: {a: GET /v1/ping}
limits:
  - {name: other rule, per: [address], token_bucket: 100/s, refuse: no}
refusals:
  no: {status: 429, body: {error: "no"}}
)",
                 "");
    Metrics one;
    Metrics two;
    for (int i = 0; i < 3; ++i) {
        pass(first, one, {.path = "/v1/ping"});
        pass(second, two, {.path = "/v1/ping"});
        pass(second, one, {.path = "/v1/ping"});
    }
    EXPECT_EQ(count(one.totals(), "pings", RuleEvent::admitted), 3U);
    EXPECT_EQ(count(one.totals(), "other rule", RuleEvent::admitted), 3U);
    EXPECT_EQ(count(two.totals(), "other rule", RuleEvent::admitted), 3U);
    EXPECT_EQ(find(two.totals(), "pings"), nullptr);
}

TEST(Metrics, NothingIsLostBetweenThreads) {
    Metrics metrics;
    constexpr int threads = 8;
    constexpr int each = 500;
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t) {
        running.emplace_back([&] {
            World world(testing::ping_policy, testing::ping_directory);
            for (int i = 0; i < each; ++i) {
                pass(world, metrics,
                     {.path = "/v1/ping", .peer = cat("10.0.", i / 250, ".", i % 250)});
            }
        });
    }
    for (std::thread& thread : running) {
        thread.join();
    }
    EXPECT_EQ(count(metrics.totals(), "pings", RuleEvent::admitted), threads * each);
}

}  // namespace
}  // namespace ration
