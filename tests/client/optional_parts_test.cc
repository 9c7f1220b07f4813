// The parts that are off unless asked for, at work in whole calls: breaker, local refusal,
// in-flight limit, load shaper.
#include "base/text.h"
#include "virtual_client.h"

namespace ration::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class OptionalParts : public testing::Test {
protected:
    // A client that makes no retries, before a server that gives `reply`, at first this one, after
    // `latency`.
    VirtualClient& start(ClientOptions options, Json first, Nanos latency = Nanos(0)) {
        options.policy.max_retries = 0;
        policy_ = options.policy;
        world_.emplace(options, random_);
        reply = std::move(first);
        world_->server = [this, latency](VirtualClient::Sent& sent) {
            world_->answer(sent, latency, reply);
        };
        return *world_;
    }
    VirtualClient::Asked& ask(const std::string& bucket = "b") {
        return world_->ask(policy_, [&](Call& call) { call.bucket = bucket; });
    }
    std::string result() {
        const VirtualClient::Asked& asked = ask();
        world_->run();
        return asked.result();
    }

    Json reply;

private:
    SeededRandom random_{11};
    RetryPolicy policy_;
    std::optional<VirtualClient> world_;
};

TEST_F(OptionalParts, ABreakerRefusesLocallyAndProbesLater) {
    ClientOptions options;
    options.breaker.emplace();
    VirtualClient& world = start(options, {{"error", "connection_lost"}});
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(result(), "connection_lost");
    }
    EXPECT_EQ(result(), "breaker_open");
    EXPECT_TRUE(world.asked().back().retry_at);
    EXPECT_EQ(world.sends().size(), 10U);
    world.run(world.since_start() + seconds(5));
    reply = {{"status", 200}};
    EXPECT_EQ(result(), "200");
    EXPECT_EQ(result(), "200");
}

TEST_F(OptionalParts, ABreakerDoesNotMindRefusalsForRate) {
    ClientOptions options;
    options.breaker.emplace();
    VirtualClient& world = start(options, {{"status", 429}});
    for (int i = 0; i < 30; ++i) {
        EXPECT_EQ(result(), "429");
    }
    EXPECT_EQ(world.sends().size(), 30U);
}

TEST_F(OptionalParts, AServerThatAcceptsTooLittleIsSpared) {
    ClientOptions options;
    options.throttle.emplace();
    VirtualClient& world = start(options, {{"status", 503}});
    for (int i = 0; i < 100; ++i) {
        result();
    }
    EXPECT_LT(world.sends().size(), 30U);  // odds of sending: 1, 1/2, 1/3, ...
    EXPECT_EQ(world.dispatcher().counters(world.now()).local_refusals.at("throttled"),
              100 - world.sends().size());
}

TEST_F(OptionalParts, RefusalsForTheCallersOwnRateAreNoIllHealth) {
    ClientOptions options;
    options.throttle.emplace();
    VirtualClient& world = start(options, {{"status", 429}});
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(result(), "429");
    }
    EXPECT_EQ(world.sends().size(), 100U);
}

TEST_F(OptionalParts, TheInFlightLimitHoldsAndMoves) {
    ClientOptions options;
    options.concurrency.emplace().initial = 2;
    VirtualClient& world = start(options, {{"status", 200}}, milliseconds(10));
    std::size_t most = 0;
    world.on_send = [&](VirtualClient::Asked&) {
        std::size_t flying = 0;
        for (const VirtualClient::Sent& sent : world.sends()) {
            flying += sent.replied ? 0U : 1U;
        }
        EXPECT_LE(world.since_start() < milliseconds(10) ? flying : 0U, 2U);
        most = std::max(most, flying);
    };
    for (int i = 0; i < 30; ++i) {
        ask();
    }
    world.run();
    for (const VirtualClient::Asked& asked : world.asked()) {
        EXPECT_EQ(asked.result(), "200");
    }
    EXPECT_GT(most, 2U);
    EXPECT_LT(most, 10U);
}

// Those in line for a place have passed their gate, which closes before they get it.
TEST_F(OptionalParts, WhoeverGetsAPlaceInFlightAsksTheGateAgain) {
    ClientOptions options;
    options.concurrency = {.initial = 1, .max = 1};
    VirtualClient& world =
        start(options, {{"status", 429}, {"headers", {{"Retry-After", "3"}}}}, milliseconds(10));
    ask();
    ask();
    ask();
    const VirtualClient::Asked& other = ask("other");
    world.at(milliseconds(10), [&] { reply = {{"status", 200}}; });
    world.run(milliseconds(20));
    EXPECT_EQ(other.result(), "200") << "nobody who has to wait is in front of it";
    EXPECT_EQ(world.sends().size(), 2U);
    world.run();
    ASSERT_EQ(world.sends().size(), 4U);
    EXPECT_GE(world.sends()[2].at - start_of_cases().mono, seconds(3));
    EXPECT_EQ(world.asked()[1].result(), "200");
    EXPECT_EQ(world.asked()[2].result(), "200");
}

TEST_F(OptionalParts, TheLoadShaperSpacesSendsInTheirOrder) {
    ClientOptions options;
    options.pace = {.amount = 600, .burst = 2};
    VirtualClient& world = start(options, {{"status", 200}});
    for (int i = 0; i < 5; ++i) {
        ask();
    }
    world.run();
    const Nanos moments[] = {milliseconds(0), milliseconds(0), milliseconds(100), milliseconds(200),
                             milliseconds(300)};
    ASSERT_EQ(world.sends().size(), 5U);
    for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(world.sends()[i].at - start_of_cases().mono, moments[i]) << i;
        EXPECT_EQ(world.sends()[i].asked, &world.asked()[i]) << "the offered order";
    }
}

}  // namespace
}  // namespace ration::client
