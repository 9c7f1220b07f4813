// Properties of the decision core: whatever a server says and whenever it says it, nobody goes
// early, nobody hangs, nothing unsafe is repeated.
#include "gtest/gtest.h"

#include <rapidcheck/gtest.h>

#include "base/text.h"
#include "client/hints.h"
#include "client/pacer.h"
#include "client/url.h"
#include "virtual_client.h"
#include "wire/decimal.h"
#include "wire/http_date.h"

namespace ration::client {
namespace {

RC_GTEST_PROP(Hints, WholeSecondsAreThatLong, ()) {
    const auto seconds = *rc::gen::inRange<std::int64_t>(1, 999'999'999);
    const auto wait = parse_retry_after(cat(seconds), start_of_cases().wall);
    const bool same = wait == std::min<Nanos>(std::chrono::seconds(seconds), longest_hint);
    RC_ASSERT(same);
}

RC_GTEST_PROP(Hints, AnyTextIsAWaitWithinBoundsOrNone, (const std::string& text)) {
    const auto wait = parse_retry_after(text, start_of_cases().wall);
    const bool good = !wait || (*wait > Nanos(0) && *wait <= longest_hint);
    RC_ASSERT(good);
}

RC_GTEST_PROP(Hints, WrittenDatesAreRead, ()) {
    const auto seconds = *rc::gen::inRange<std::int64_t>(0, 9'000'000'000);
    char text[max_decimal_bytes];
    const Wall at{std::chrono::seconds(seconds)};
    const bool same = parse_http_date(http_date(at, text), start_of_cases().wall) == at;
    RC_ASSERT(same);
}

TEST(Url, APlaceInTheSameDocumentIsTheSamePlace) {
    for (const std::string base :
         {"https://api.example/a/b?q=1", "http://[::1]:8080/", "http://x/a"}) {
        EXPECT_EQ(resolve_url(base, "#part").value_or(Url{}).url, base);
        EXPECT_EQ(resolve_url(base, "#").value_or(Url{}).url, base);
    }
}

RC_GTEST_PROP(ErrorBody, AnyBytesAreReadOrNot, (const std::string& text)) {
    for (const std::string& body : {text, "{\"type\":\"" + text, "{\"retry_after\":" + text,
                                    "{\"type\":\"a\",\"message\":\"" + text + "\"}"}) {
        const ErrorBody read = read_error_body(body);
        const Nanos wait = read.wait.value_or(longest_hint);
        RC_ASSERT(wait > Nanos(0));
        RC_ASSERT(wait <= longest_hint);
    }
}

RC_GTEST_PROP(Decide, WaitsFitAndUnsafeCallsStop, ()) {
    SeededRandom random(*rc::gen::arbitrary<std::uint64_t>());
    RetryPolicy policy;
    policy.max_retries = *rc::gen::inRange(0U, 12U);
    policy.total_deadline = std::chrono::milliseconds(*rc::gen::inRange(0, 200'000));
    policy.max_server_wait = std::chrono::milliseconds(*rc::gen::inRange(0, 100'000));
    Outcome outcome;
    HeaderLines headers;
    if (*rc::gen::inRange(0, 4) == 0) {
        outcome.error = static_cast<AttemptError>(*rc::gen::inRange(0, 7));
    } else {
        outcome.status = *rc::gen::element(200, 404, 409, 429, 500, 503);
        headers.emplace_back("Retry-After", cat(*rc::gen::inRange(0, 90)));
        outcome.headers = &headers;
    }
    const std::string method = *rc::gen::element<std::string>("GET", "POST", "PATCH", "DELETE");
    const Told told = read_answer(outcome, start_of_cases().wall);
    const EndedAttempt ended{.policy = policy,
                             .method = method,
                             .keyed = *rc::gen::arbitrary<bool>(),
                             .attempts_made = *rc::gen::inRange(1U, 14U),
                             .elapsed = std::chrono::milliseconds(*rc::gen::inRange(0, 200'000)),
                             .outcome = outcome,
                             .told = told,
                             .retry_tokens = *rc::gen::inRange<std::uint32_t>(0, 3000),
                             .now = start_of_cases().wall};
    const Verdict verdict = decide(ended, random);
    if (!verdict.retry) {
        return;
    }
    const Nanos floor = told.floor.value_or(Nanos(0));
    RC_ASSERT(verdict.wait >= floor);
    RC_ASSERT(floor <= policy.max_server_wait);
    RC_ASSERT(ended.elapsed + verdict.wait + policy.min_attempt <= policy.total_deadline);
    RC_ASSERT(verdict.wait - floor <= std::max(policy.backoff_cap, policy.retry_after_extra));
    RC_ASSERT(ended.attempts_made <= policy.max_retries);
    const bool safe = method == "GET" || method == "DELETE" || ended.keyed;
    const bool unsent = outcome.error && nothing_sent(*outcome.error);
    RC_ASSERT(safe || unsent);
}

RC_GTEST_PROP(Pacer, NoWindowHoldsMoreThanTheBurstAndTheRate, ()) {
    const auto amount = *rc::gen::inRange<std::uint32_t>(1, 50);
    const auto burst = *rc::gen::inRange<std::uint32_t>(1, 6);
    Pacer pacer(amount, std::chrono::seconds(1), burst);
    const Nanos interval = Nanos(std::chrono::seconds(1)) / amount;
    Mono now = start_of_cases().mono;
    std::vector<Mono> sends;
    for (int i = 0; i < 60; ++i) {
        now += std::chrono::milliseconds(*rc::gen::inRange(0, 100));
        sends.push_back(pacer.reserve(now));
        RC_ASSERT(sends.back() >= now);
        RC_ASSERT(sends.back() >= sends[sends.size() - std::min<std::size_t>(2, sends.size())]);
        if (sends.size() > burst) {
            RC_ASSERT(sends.back() - sends[sends.size() - 1 - burst] >= interval);
        }
    }
}

// A server of moods: good, refusing with and without a time, lost, silent.
struct Moody {
    VirtualClient& world;
    std::optional<Mono> closed_until;  // as the clients know it
    bool early = false;
    int in_flight = 0;

    void serve(VirtualClient::Sent& sent) {
        early = early || (closed_until && sent.at < *closed_until);
        const Nanos latency = std::chrono::milliseconds(*rc::gen::inRange(0, 400));
        const int mood = *rc::gen::inRange(0, 10);
        if (mood == 0) {
            world.never_answer(sent);
        } else if (mood == 1) {
            world.answer(sent, latency, {{"error", "connection_lost"}});
        } else if (mood == 2) {
            world.answer(sent, latency, {{"status", 503}});
        } else if (mood <= 4) {
            const int seconds = *rc::gen::inRange(1, 5);
            world.answer(sent, latency,
                         {{"status", 429}, {"headers", {{"Retry-After", cat(seconds)}}}});
            world.at(world.since_start() + latency, [this, seconds, &sent] {
                if (sent.replied) {  // it was waited for
                    const Mono until = world.now().mono + std::chrono::seconds(seconds);
                    closed_until = std::max(closed_until.value_or(until), until);
                }
            });
        } else {
            world.answer(sent, latency, {{"status", 200}});
        }
    }
};

RC_GTEST_PROP(Dispatcher, NobodyGoesEarlyAndEveryCallEnds, ()) {
    SeededRandom random(*rc::gen::arbitrary<std::uint64_t>());
    ClientOptions options;
    options.policy.attempt_timeout = std::chrono::seconds(3);
    options.policy.total_deadline = std::chrono::seconds(30);
    if (*rc::gen::arbitrary<bool>()) {
        options.concurrency = {.initial = *rc::gen::inRange(1U, 5U)};
    }
    VirtualClient world(options, random);
    Moody moody{world, {}};
    world.server = [&](VirtualClient::Sent& sent) { moody.serve(sent); };
    const int calls = *rc::gen::inRange(1, 30);
    std::vector<VirtualClient::Asked*> asked;
    for (int i = 0; i < calls; ++i) {
        const Nanos at = std::chrono::milliseconds(*rc::gen::inRange(0, 5000));
        const bool cancelled = *rc::gen::inRange(0, 5) == 0;
        const Nanos cancel_after = std::chrono::milliseconds(*rc::gen::inRange(0, 5000));
        world.at(at, [&, cancelled, at, cancel_after] {
            VirtualClient::Asked& one =
                world.ask(options.policy, [](Call& call) { call.bucket = "b"; });
            asked.push_back(&one);
            if (cancelled) {
                world.at(at + cancel_after, [&world, &one] { world.cancel(one); });
            }
        });
    }
    world.run();
    RC_ASSERT(!moody.early);
    RC_ASSERT(asked.size() == static_cast<std::size_t>(calls));
    for (const VirtualClient::Asked* one : asked) {
        RC_ASSERT(one->ended.has_value());
        RC_ASSERT(one->sends.size() <= options.policy.max_retries + 1);
    }
    RC_ASSERT(!world.timers_left());
    for (const GateState& gate : world.dispatcher().counters(world.now()).gates) {
        RC_ASSERT(gate.in_flight == 0);
        RC_ASSERT(gate.waiting == 0);
    }
}

}  // namespace
}  // namespace ration::client
