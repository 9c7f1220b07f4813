// Whatever the policy and the order of things: a world where browsers send pre-checks in between is
// the same world as one where they send none.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "engine/harness.h"

namespace ration::testing {
namespace {

std::string any_rules() {
    const std::string kind = *rc::gen::element<std::string>(
        "token_bucket: 3 per 10s", "sliding_window: 2 per 5s", "sliding_counter: 4 per 8s",
        "fixed_window: {limit: 3, every: 10s, count: attempts}", "concurrency: 1",
        "token_bucket: 0/min");
    const std::string key = *rc::gen::element<std::string>("address", "credential", "route, method",
                                                           "path.id", "header.Origin");
    const std::string scope =
        *rc::gen::element<std::string>("", "methods: [OPTIONS, GET], ", "routes: [item], ");
    return scope + "per: [" + key + "], " + kind;
}

std::string any_policy() {
    std::string text =
        "policy: p\n"
        "routes: {list: GET /items, item: \"PUT,DELETE /items/{id}\", wide: \"ANY /any/{id}\"}\n"
        "identify: {credentials: {key: {bearer: k_*}}, accepts: {item: [key], else: [any]}}\n";
    text += *rc::gen::element<std::string>("", "unmatched: forward\n", "cors: {origins: ['*']}\n");
    text += "limits:\n";
    const int count = *rc::gen::inRange(1, 5);
    for (int i = 0; i < count; ++i) {
        text +=
            "  - {name: l" + std::to_string(i) + ", headers: x_ratelimit, " + any_rules() + "}\n";
    }
    if (*rc::gen::arbitrary<bool>()) {
        text +=
            "strikes: [{name: guesses, per: [address], failed: [401, 404], failures: 3 per 20s, "
            "block: 7s}]\n";
    }
    return text;
}

Ask any_ask() {
    Ask ask;
    ask.method = *rc::gen::element<std::string>("GET", "PUT", "POST");
    ask.path = *rc::gen::element<std::string>("/items", "/items/1", "/any/2", "/nothing");
    ask.bearer = *rc::gen::element<std::string>("", "k_1", "k_nobody");
    ask.peer = *rc::gen::element<std::string>("203.0.113.7", "203.0.113.8");
    return ask;
}

// The pre-check that a browser would send before it.
Ask preflight_of(Ask ask) {
    ask.headers = {{"Origin", "https://a.example"}, {"Access-Control-Request-Method", ask.method}};
    ask.method = "OPTIONS";
    ask.bearer.clear();
    return ask;
}

RC_GTEST_PROP(Preflight, ChangesNoCounter, ()) {
    const std::string policy = any_policy();
    const std::string directory = "credentials: {k_1: {kind: key}}\n";
    World asked(policy, directory);
    World silent(policy, directory);
    for (int step = 0; step < 40; ++step) {
        const Nanos later = std::chrono::milliseconds(*rc::gen::inRange(0, 2000));
        asked.clock.advance(later);
        silent.clock.advance(later);
        const Ask ask = any_ask();
        if (*rc::gen::arbitrary<bool>()) {
            const auto pre = asked.begin(preflight_of(ask));
            const Reply reply = pre->reply();
            const bool blocked = !reply.admitted && reply.rule == "guesses";
            const bool nothing = ask.path == "/nothing" && !pre->exchange().preflight &&
                                 reply.decision.kind == Decision::Kind::refuse;
            RC_ASSERT(reply.admitted || reply.status == 204 || blocked || nothing);
            if (!nothing) {
                RC_ASSERT(!reply.has("X-RateLimit-Limit"));
                asked.end(*pre, *rc::gen::element(200, 401, 404, 500));
            }
            if (nothing) {
                silent.ask(preflight_of(ask));
            }
        }
        const auto one = asked.begin(ask);
        const auto other = silent.begin(ask);
        RC_ASSERT(one->reply().status == other->reply().status);
        RC_ASSERT(one->reply().rule == other->reply().rule);
        RC_ASSERT(one->reply().decision.wait == other->reply().decision.wait);
        RC_ASSERT(one->reply().header("X-RateLimit-Remaining") ==
                  other->reply().header("X-RateLimit-Remaining"));
        const int status = *rc::gen::element(200, 401, 404);
        asked.end(*one, status);
        silent.end(*other, status);
    }
}

}  // namespace
}  // namespace ration::testing
