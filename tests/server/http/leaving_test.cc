// Clients that leave before their request was begun, or before it is whole: nothing is done for
// them, nothing is held on to. The clock stands still, so no deadline helps out.
#include <gtest/gtest.h>

#include <latch>

#include "base/manual_clock.h"
#include "ledger/runner.h"
#include "server/http/harness.h"

namespace ration::testing {
namespace {

constexpr std::string_view policy = R"(
policy: shop
routes: {buy: POST /buy, look: ANY /look}
ceilings:
  - {name: daily, routes: [buy], per: [address], at_most: 1 per day in UTC, refuse: daily}
idempotency:
  - {routes: [buy], scope: [address]}
refusals:
  daily: {status: 429}
)";

class Leaving : public ::testing::Test {
protected:
    std::unique_ptr<Ledger> ledger_ = *open_sqlite_ledger({":memory:", {}});
    ManualClock clock_{WorldOptions{}.start};  // as the gateway's
    LedgerRunner runner_{*ledger_, clock_};
    std::latch go_on_{1};
    // The first purchase waits at the upstream and fails; what comes later succeeds.
    ScriptedUpstream upstream_{[this](Conn& connection, const Message& request) {
        const bool first = request.field("X-First") == "yes";
        if (first) {
            go_on_.wait();
        }
        return connection.send(first ? "HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n"
                                     : "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    }};

    void TearDown() override {
        if (!go_on_.try_wait()) {
            go_on_.count_down();
        }
    }
    GatewayWorldOptions setup() {
        GatewayWorldOptions options;
        options.policy = policy;
        options.gateway.ledger = &runner_;
        options.gateway.threads = 1;
        return options;
    }
};

using Leave = void (*)(Conn& client);

void closes(Conn& client) {
    client.close();
}
void resets(Conn& client) {
    client.reset();
}
void ends_its_side(Conn& client) {
    client.shutdown_write();
}

struct HowItLeaves {
    const char* what;
    std::string_view fields_and_body;
    Leave leave;
};

constexpr HowItLeaves ways[] = {
    {"without a body", "\r\n", closes},
    {"a whole body", "Content-Length: 4\r\n\r\nbody", closes},
    {"a whole body, reset", "Content-Length: 4\r\n\r\nbody", resets},
    {"a whole body, half closed", "Content-Length: 4\r\n\r\nbody", ends_its_side},
    {"half a body", "Content-Length: 4\r\n\r\nbo", closes},
    {"no byte of its body", "Content-Length: 4\r\n\r\n", closes},
    {"waiting for 100", "Content-Length: 4\r\nExpect: 100-continue\r\n\r\n", closes},
    {"chunks", "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", closes},
    {"some chunks", "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n", closes},
    {"with a key", "Idempotency-Key: k\r\nContent-Length: 4\r\n\r\nbody", closes},
};

// The one place is held by a purchase under way, so each newcomer waits for it, with its body
// unread where no key makes it count.
TEST_F(Leaving, WhileItsReservationIsHeldNothingIsBegun) {
    GatewayWorld world(upstream_.port(), setup());
    Conn first = world.connect();
    first.send(post("/buy", "body", "X-First: yes\r\n"));
    ASSERT_TRUE(upstream_.wait_for_requests(1));
    std::size_t left = 0;
    for (const HowItLeaves& way : ways) {
        SCOPED_TRACE(way.what);
        const std::size_t held = runner_.held();
        Conn client = world.connect();
        client.send(std::string("POST /buy HTTP/1.1\r\nHost: a\r\n").append(way.fields_and_body));
        ASSERT_TRUE(GatewayWorld::eventually([&] { return runner_.held() == held + 1; }));
        way.leave(client);
        const std::vector<Seen> seen = world.recorder.wait_for(++left);
        ASSERT_EQ(seen.size(), left);
        EXPECT_EQ(seen.back().outcome, RequestOutcome::client_gone);
    }
    go_on_.count_down();
    EXPECT_EQ(first.read()->status(), 409);
    // Asked after those that left: it gets the place, so none of them has it.
    EXPECT_EQ(world.ask(post("/buy", "last")).status(), 201);
    EXPECT_EQ(upstream_.requests().size(), 2U);
    EXPECT_EQ(ledger_->stats().running, 0U);
    EXPECT_EQ(ledger_->stats().doubtful, 0U);
}

TEST_F(Leaving, WhileItWaitsForAnUpstreamConnectionNothingIsSent) {
    GatewayWorldOptions options = setup();
    options.gateway.upstream.max_connections = 1;
    GatewayWorld world(upstream_.port(), options);
    Conn first = world.connect();
    first.send(post("/look", "body", "X-First: yes\r\n"));
    ASSERT_TRUE(upstream_.wait_for_requests(1));
    Conn looking = world.connect();
    looking.send(post("/look", "body"));
    looking.shutdown_write();
    EXPECT_EQ(world.recorder.wait_for(1).at(0).outcome, RequestOutcome::client_gone);
    Conn buying = world.connect();
    buying.send(post("/buy", "body"));
    ASSERT_TRUE(GatewayWorld::eventually([&] { return ledger_->stats().running == 1; }));
    buying.close();
    EXPECT_EQ(world.recorder.wait_for(2).at(1).outcome, RequestOutcome::client_gone);
    EXPECT_TRUE(GatewayWorld::eventually([&] { return ledger_->stats().running == 0; }));
    EXPECT_EQ(ledger_->stats().doubtful, 0U);
    go_on_.count_down();
    EXPECT_EQ(first.read()->status(), 409);
    EXPECT_EQ(world.ask(post("/buy", "last")).status(), 201);
    EXPECT_EQ(upstream_.requests().size(), 2U);
}

// What the upstream has of it is no request yet, and never will be.
TEST_F(Leaving, InTheMiddleOfItsBodyItsAttemptEndsAtOnce) {
    std::latch ended{1};
    const auto upstream = ScriptedUpstream::raw([&](Conn& connection) {
        connection.read_to_end();
        ended.count_down();
    });
    GatewayWorld world(upstream->port(), setup());
    Conn client = world.connect();
    client.send("POST /buy HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc");
    ASSERT_TRUE(GatewayWorld::eventually([&] { return upstream->connections() == 1; }));
    client.close();
    EXPECT_EQ(world.recorder.wait_for(1).at(0).outcome, RequestOutcome::client_gone);
    ended.wait();
    EXPECT_TRUE(GatewayWorld::eventually([&] { return ledger_->stats().running == 0; }));
}

}  // namespace
}  // namespace ration::testing
