// Wherever a call is when it is cancelled, it ends once and leaves nothing behind: no place at a
// gate or in flight, no timer, no lesson.
#include <algorithm>

#include "base/text.h"
#include "virtual_client.h"

namespace ration::client {
namespace {

using std::chrono::milliseconds;

const std::vector<Json>& answers() {
    static const std::vector<Json> all = {
        {{"status", 200}},
        {{"status", 404}},
        {{"status", 503}},
        {{"status", 429}, {"headers", {{"Retry-After", "3"}}}},
        {{"status", 200}, {"headers", {{"RateLimit", "\"a\";r=0;t=3"}}}},
        {{"error", "connect_failed"}},
        {{"error", "connection_lost"}},
        {{"error", "attempt_timeout"}}};
    return all;
}

// One call may be in flight, so that a place that is not given back holds all that follow.
class Cancelled : public testing::Test {
protected:
    VirtualClient& start(Json reply, Nanos latency, bool paced = false) {
        ClientOptions options;
        options.concurrency = {.initial = 1, .max = 1};
        options.breaker.emplace();
        if (paced) {
            options.pace = {.amount = 60, .burst = 1};
        }
        world_.emplace(options, random_);
        answer(std::move(reply), latency);
        return *world_;
    }
    void answer(Json reply, Nanos latency) {
        world_->server = [this, reply = std::move(reply), latency](VirtualClient::Sent& sent) {
            world_->answer(sent, latency, reply);
        };
    }
    VirtualClient::Asked& ask() {
        return world_->ask(policy_, [](Call& call) { call.bucket = "b"; });
    }
    void expect_nothing_left(const VirtualClient::Asked& cancelled) {
        world_->run();
        EXPECT_EQ(cancelled.ended, StopReason::cancelled);
        EXPECT_EQ(std::count(cancelled.events.begin(), cancelled.events.end(), "done:cancelled"),
                  1);
        EXPECT_EQ(cancelled.events.back(), "done:cancelled");
        EXPECT_FALSE(world_->timers_left());
        for (const GateState& gate : world_->dispatcher().counters(world_->now()).gates) {
            EXPECT_EQ(gate.in_flight, 0U);
            EXPECT_EQ(gate.waiting, 0U);
        }
    }
    void expect_next_goes_at_once() {
        answer({{"status", 200}}, Nanos(0));
        const Mono now = world_->now().mono;
        const VirtualClient::Asked& next = ask();
        world_->run();
        EXPECT_EQ(next.sends, std::vector<Mono>{now});
        EXPECT_EQ(next.result(), "200");
    }

private:
    SeededRandom random_{5};
    RetryPolicy policy_;
    std::optional<VirtualClient> world_;
};

TEST_F(Cancelled, WhileItIsPaced) {
    VirtualClient& world = start({{"status", 200}}, Nanos(0), true);
    ask();
    VirtualClient::Asked& one = ask();
    world.run(milliseconds(10));
    EXPECT_EQ(one.events, std::vector<std::string>{"wait:pace"});
    world.cancel(one);
    expect_nothing_left(one);
}

TEST_F(Cancelled, AtAClosedGate) {
    VirtualClient& world = start({{"status", 429}, {"headers", {{"Retry-After", "3"}}}}, Nanos(0));
    ask();
    world.run(milliseconds(10));
    VirtualClient::Asked& one = ask();
    world.run(milliseconds(20));
    EXPECT_EQ(one.events, std::vector<std::string>{"wait:gate"});
    answer({{"status", 200}}, Nanos(0));
    world.cancel(one);
    expect_nothing_left(one);
    expect_next_goes_at_once();
}

TEST_F(Cancelled, InLineForAPlaceInFlight) {
    VirtualClient& world = start({{"status", 200}}, milliseconds(100));
    ask();
    VirtualClient::Asked& one = ask();
    world.run(milliseconds(10));
    EXPECT_EQ(one.events, std::vector<std::string>{"wait:concurrency"});
    world.cancel(one);
    expect_nothing_left(one);
    expect_next_goes_at_once();
}

TEST_F(Cancelled, WhileItWaitsToRepeat) {
    VirtualClient& world = start({{"error", "connection_lost"}}, Nanos(0));
    VirtualClient::Asked& one = ask();
    world.run(Nanos(0));
    EXPECT_EQ(one.events.back(), "wait:backoff");
    world.cancel(one);
    expect_nothing_left(one);
    expect_next_goes_at_once();
}

TEST_F(Cancelled, BeforeOrAsItsAnswerComes) {
    for (const Json& reply : answers()) {
        for (const int at : {0, 99, 100}) {
            SCOPED_TRACE(cat(reply.dump(), " at ", at));
            VirtualClient& world = start(reply, milliseconds(100));
            VirtualClient::Asked& one = ask();
            world.at(milliseconds(at), [&] { world.cancel(one); });
            expect_nothing_left(one);
            EXPECT_EQ(one.sends.size(), 1U);
            expect_next_goes_at_once();
        }
    }
}

// Whoever owns the sockets may have both in hand.
TEST_F(Cancelled, AndAnAnswerToldAfterwardsTeachesNothing) {
    for (const Json& reply : answers()) {
        SCOPED_TRACE(reply.dump());
        VirtualClient& world = start(reply, milliseconds(100));
        VirtualClient::Asked& one = ask();
        world.run(milliseconds(10));
        world.cancel(one);
        Answer answer(reply);
        world.dispatcher().ended(one.call, answer.read(), world.now());
        expect_nothing_left(one);
        EXPECT_EQ(one.sends.size(), 1U);
        expect_next_goes_at_once();
    }
}

// The server may act on what was sent: its answer is asked for even where others are held.
TEST_F(Cancelled, AKeyedCallThatWasSentLeavesItsKeyInDoubt) {
    VirtualClient& world = start({{"status", 201}}, milliseconds(100));
    const auto book = [&](const std::string& key) -> VirtualClient::Asked& {
        return world.ask(RetryPolicy(), [&](Call& call) {
            call.method = "POST";
            call.path = "/v1/bookings";
            call.bucket = "b";
            call.key = key;
        });
    };
    VirtualClient::Asked& sent = book("sent");
    world.run(milliseconds(10));
    VirtualClient::Asked& waits = book("waits");
    world.run(milliseconds(20));
    EXPECT_EQ(waits.events, std::vector<std::string>{"wait:concurrency"});
    world.cancel(sent);
    world.cancel(waits);
    world.run();
    answer({{"status", 429},
            {"headers", {{"Retry-After", "7200"}}},
            {"body", {{"error", {{"type", "daily_booking_limit"}}}}}},
           Nanos(0));
    book("last");
    world.run();
    answer({{"status", 201}}, Nanos(0));
    const VirtualClient::Asked& not_sent = book("waits");
    const VirtualClient::Asked& again = book("sent");
    world.run();
    EXPECT_EQ(not_sent.result(), "gate_closed");
    EXPECT_EQ(again.result(), "201");
}

TEST_F(Cancelled, AfterItsLastAnswerItEndsAsThatSaid) {
    VirtualClient& world = start({{"status", 404}}, milliseconds(100));
    VirtualClient::Asked& one = ask();
    world.run(milliseconds(10));
    Answer answer(Json{{"status", 404}});
    world.dispatcher().ended(one.call, answer.read(), world.now());
    world.cancel(one);
    world.run();
    EXPECT_EQ(one.events, (std::vector<std::string>{"attempt:1", "done:status_not_retryable"}));
    expect_next_goes_at_once();
}

}  // namespace
}  // namespace ration::client
