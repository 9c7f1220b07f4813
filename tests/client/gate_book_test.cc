// Bounds of what a client remembers, and the pace that follows answers.
#include "client/gate_book.h"
#include "base/text.h"
#include "client/pacer.h"
#include "virtual_client.h"

namespace ration::client {
namespace {

const Mono start = start_of_cases().mono;

TEST(GateBook, ForgetsWhatHoldsNobodyBackFirst) {
    const RetryPolicy policy;
    ScriptedRandom random({0.0});
    GateBook book(policy, random, 3, false);
    book.open("a", start).close(start + std::chrono::seconds(10), Nanos(0));
    Gate& idle = book.open("b", start);
    book.open("c", start).close(start + std::chrono::seconds(10), Nanos(0));
    EXPECT_EQ(&book.open("b", start), &idle);
    static_cast<void>(book.open("d", start));  // takes b's place
    EXPECT_EQ(book.find("b"), nullptr);
    EXPECT_NE(book.find("a"), nullptr);
    EXPECT_NE(book.find("d"), nullptr);
    EXPECT_EQ(book.entries().size(), 3U);
}

TEST(GateBook, WhenAllHoldSomebodyNewcomersShareOne) {
    const RetryPolicy policy;
    ScriptedRandom random({0.0});
    GateBook book(policy, random, 2, false);
    book.open("a", start).close(start + std::chrono::seconds(10), Nanos(0));
    book.open("b", start).close(start + std::chrono::seconds(10), Nanos(0));
    Gate& shared = book.open("c", start);
    EXPECT_EQ(&book.open("d", start), &shared);
    EXPECT_EQ(book.entries().size(), 2U);
    EXPECT_NE(&book.open("c", start + std::chrono::seconds(11)), &shared) << "a's hold is over";
}

TEST(GateBook, ThoseThatHaveToStayAreLookedAtLastTheNextTime) {
    const RetryPolicy policy;
    ScriptedRandom random({0.0});
    GateBook book(policy, random, 200, false);
    for (int i = 0; i < 200; ++i) {
        Gate& gate = book.open(cat(i), start);
        gate.close(start + std::chrono::seconds(i < 150 ? 10 : 0), Nanos(0));
    }
    const Gate* shared = &book.open("new", start);
    EXPECT_EQ(&book.open("new", start), shared);
    EXPECT_NE(&book.open("new", start), shared);
    EXPECT_NE(book.find("0"), nullptr);
    EXPECT_EQ(book.find("150"), nullptr);
}

TEST(Dispatcher, RemembersSoManyOriginsAndGates) {
    SeededRandom random(1);
    VirtualClient world({}, random);
    world.server = [&](VirtualClient::Sent& sent) {
        world.answer(sent, Nanos(0), {{"status", 200}});
    };
    const RetryPolicy policy;
    for (std::size_t i = 0; i < max_gates + 5; ++i) {
        world.ask(policy, [&](Call& call) {
            call.origin = cat("http://host", i);
            call.bucket = "b";
        });
        world.run();
    }
    const ClientCounters counters = world.dispatcher().counters(world.now());
    EXPECT_EQ(counters.gates.size(), max_gates);
    EXPECT_EQ(counters.budgets.size(), max_origins);
}

// While a call waits at the gate of its operation, other buckets push its own bucket's gate out.
TEST(Dispatcher, ACallThatIsHeldFindsItsBucketLater) {
    SeededRandom random(1);
    VirtualClient world({}, random);
    const Json daily = {{"status", 429},
                        {"headers", {{"Retry-After", "30"}}},
                        {"body", {{"error", {{"type", "daily_booking_limit"}}}}}};
    bool refuse = true;
    std::uint32_t in_flight = 0;
    world.server = [&](VirtualClient::Sent& sent) {
        const bool asked_late = sent.asked->call.bucket == "held" && !refuse;
        for (const GateState& gate : asked_late ? world.dispatcher().counters(world.now()).gates
                                                : std::vector<GateState>{}) {
            in_flight += gate.bucket == "held" ? gate.in_flight : 0U;
        }
        world.answer(sent, Nanos(0), refuse ? daily : Json{{"status", 200}});
    };
    RetryPolicy once;
    once.max_retries = 0;
    const auto ask = [&](const std::string& bucket) -> VirtualClient::Asked& {
        return world.ask(once, [&](Call& call) {
            call.origin = "http://host";
            call.path = bucket;
            call.bucket = bucket;
        });
    };
    ask("held");
    world.run(Nanos(0));
    refuse = false;
    const VirtualClient::Asked& held = ask("held");
    world.run(std::chrono::seconds(1));
    EXPECT_FALSE(held.ended);
    for (std::size_t i = 0; i < max_gates + 5; ++i) {
        ask(cat("other", i));
        world.run(std::chrono::seconds(1));
    }
    world.run();
    EXPECT_EQ(held.result(), "200");
    EXPECT_EQ(in_flight, 1U) << "it is known at its bucket's gate";
}

// Also those who had a wait of their own, and come back after the probe's answer.
TEST(Dispatcher, ACrowdThatWasRefusedComesBackSpreadOut) {
    for (const int latency : {1, 20, 150, 400}) {
        SeededRandom random(7);
        VirtualClient world({}, random);
        world.server = [&](VirtualClient::Sent& sent) {
            const bool refused = world.since_start() < std::chrono::seconds(1);
            world.answer(sent, std::chrono::milliseconds(latency),
                         refused ? Json{{"status", 429}, {"headers", {{"Retry-After", "2"}}}}
                                 : Json{{"status", 200}});
        };
        for (int i = 0; i < 40; ++i) {
            world.ask(RetryPolicy(), [](Call& call) { call.bucket = "b"; });
        }
        world.run();
        std::vector<Mono> later;
        for (const VirtualClient::Asked& asked : world.asked()) {
            ASSERT_EQ(asked.sends.size(), 2U);
            later.push_back(asked.sends[1]);
        }
        std::sort(later.begin(), later.end());
        for (std::size_t first = 0; first + 12 < later.size(); ++first) {
            EXPECT_GT(later[first + 12] - later[first], std::chrono::milliseconds(25))
                << "latency " << latency << ", from " << first;
        }
    }
}

// One booking is in flight at a time, for the server said that one is left. The one in flight is
// refused for its operation, and those that wait hear of it before they are sent.
TEST(Dispatcher, AGateThatComesWhileACallWaitsHoldsItToo) {
    SeededRandom random(1);
    VirtualClient world({}, random);
    const std::string left = "\"m\";r=1;t=60";
    world.server = [&](VirtualClient::Sent& sent) {
        const bool daily = sent.asked->call.path == "/v1/bookings" && world.sends().size() == 2;
        const Json refusal = {{"status", 429},
                              {"headers", {{"Retry-After", "30"}}},
                              {"body", {{"error", {{"type", "daily_booking_limit"}}}}}};
        const Json good = {{"status", 200}, {"headers", {{"RateLimit", left}}}};
        world.answer(sent, std::chrono::milliseconds(100), daily ? refusal : good);
    };
    RetryPolicy once;
    once.max_retries = 0;
    const auto ask = [&](const std::string& path) -> VirtualClient::Asked& {
        return world.ask(once, [&](Call& call) {
            call.method = "POST";
            call.path = path;
            call.bucket = "all";
        });
    };
    ask("/v1/quote");
    world.run(std::chrono::milliseconds(200));
    ask("/v1/bookings");
    const VirtualClient::Asked& held = ask("/v1/bookings");
    const VirtualClient::Asked& other = ask("/v1/quote");
    const VirtualClient::Asked& last = ask("/v1/bookings");
    world.run(std::chrono::milliseconds(450));
    EXPECT_EQ(other.result(), "200") << "it waits for nobody who is held";
    EXPECT_FALSE(held.ended);
    world.run();
    EXPECT_EQ(held.result(), "200");
    EXPECT_EQ(last.result(), "200");
    ASSERT_EQ(world.sends().size(), 5U);
    EXPECT_GE(held.sends[0] - start, std::chrono::seconds(30));
    EXPECT_GE(last.sends[0] - start, std::chrono::seconds(30));
}

TEST(Dispatcher, RemembersSoManyDoubts) {
    SeededRandom random(1);
    VirtualClient world({}, random);
    RetryPolicy once;
    once.max_retries = 0;
    const auto ask = [&](std::size_t key, const Json& reply) -> VirtualClient::Asked& {
        world.server = [&world, reply](VirtualClient::Sent& sent) {
            world.answer(sent, Nanos(0), reply);
        };
        VirtualClient::Asked& asked = world.ask(once, [&](Call& call) {
            call.method = "POST";
            call.path = "/v1/bookings";
            call.bucket = "all";
            call.key = cat("key-", key);
        });
        world.run();
        return asked;
    };
    for (std::size_t i = 0; i < max_doubts + 1; ++i) {
        ask(i, {{"error", "connection_lost"}});
    }
    const Json daily = {{"status", 429},
                        {"headers", {{"Retry-After", "7200"}}},
                        {"body", {{"error", {{"type", "daily_booking_limit"}}}}}};
    ask(99'999, daily);  // closes the operation
    EXPECT_EQ(ask(0, {{"status", 201}}).result(), "gate_closed") << "the oldest doubt is forgotten";
    EXPECT_EQ(ask(1, {{"status", 201}}).result(), "201") << "a lost answer may be asked for";
    EXPECT_EQ(ask(max_doubts, {{"status", 201}}).result(), "201");
    EXPECT_EQ(ask(1, {{"status", 201}}).result(), "gate_closed") << "it is answered now";
}

Told told_of(const Json& reply) {
    Answer answer(reply);
    return read_answer(answer.read(), start_of_cases().wall);
}

TEST(AnswerPace, SpreadsWhatRemains) {
    AnswerPace pace;
    pace.sent(start);
    pace.learn(
        told_of({{"status", 200}, {"headers", {{"RateLimit", "\"m\";r=60;t=30, \"s\";r=9;t=1"}}}}),
        false, start);
    pace.sent(start);
    EXPECT_EQ(pace.next() - start, std::chrono::milliseconds(500));
}

TEST(AnswerPace, FeelsOutWhatIsNotTold) {
    AnswerPace pace;
    const Told good = told_of({{"status", 200}});
    const Told refused = told_of({{"status", 429}, {"headers", {{"Retry-After", "20"}}}});
    Mono now = start;
    const auto interval = [&] {
        pace.sent(now);
        const Nanos between = pace.next() - now;
        now = pace.next();
        return between;
    };
    EXPECT_EQ(interval(), Nanos(0));
    pace.learn(refused, true, now);
    pace.learn(refused, true, now);  // of the same burst
    EXPECT_EQ(interval(), std::chrono::seconds(1));
    now += std::chrono::seconds(20);
    pace.learn(refused, true, now);
    EXPECT_EQ(interval(), std::chrono::seconds(2));
    for (int i = 0; i < 300; ++i) {
        pace.learn(good, false, now);
    }
    EXPECT_EQ(interval(), Nanos(0));
}

// A bucket of 60 a minute that tells nothing but Retry-After: 1.
TEST(AnswerPace, SettlesAtTheRateOfASilentBucket) {
    SeededRandom random(3);
    ClientOptions options;
    options.pace.emplace().by_answers = true;
    options.policy.max_retries = 50;
    options.policy.total_deadline = std::chrono::hours(1);
    options.policy.budget_capacity = 1'000'000;
    VirtualClient world(options, random);
    Nanos full_at{0};  // when a bucket of 10 is full again
    int refusals = 0;
    world.server = [&](VirtualClient::Sent& sent) {
        const Nanos now = world.since_start();
        const Nanos after = std::max(full_at, now) + std::chrono::seconds(1);
        if (after - now > std::chrono::seconds(10)) {
            ++refusals;
            world.answer(sent, std::chrono::milliseconds(5),
                         {{"status", 429}, {"headers", {{"Retry-After", "1"}}}});
            return;
        }
        full_at = after;
        world.answer(sent, std::chrono::milliseconds(5), {{"status", 200}});
    };
    for (int i = 0; i < 200; ++i) {
        world.ask(options.policy, [](Call& call) { call.bucket = "b"; });
    }
    world.run();
    for (const VirtualClient::Asked& asked : world.asked()) {
        EXPECT_EQ(asked.result(), "200");
    }
    EXPECT_LT(refusals, 100) << "half of what each success would cost";
    EXPECT_LT(world.since_start(), std::chrono::minutes(5)) << "190 s are needed";
}

}  // namespace
}  // namespace ration::client
