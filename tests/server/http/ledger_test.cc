// Requests that the ledger is asked about, over raw sockets: what reaches the upstream, when the
// answer's first byte goes out, and what a client that leaves leaves behind.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/manual_clock.h"
#include "ledger/runner.h"
#include "server/http/harness.h"

namespace ration::testing {
namespace {

constexpr std::string_view policy = R"(
policy: shop
routes: {buy: POST /buy, look: GET /look}
ceilings:
  - {name: daily, routes: [buy], per: [address], at_most: 3 per day in UTC, refuse: daily}
idempotency:
  - {routes: [buy], scope: [address], max_body: 1000, max_answer: 2000}
refusals:
  daily: {status: 429, headers: {Retry-After: "{retry_after}"}}
)";

// A gateway with a ledger in memory.
class LedgerGateway : public ::testing::Test {
protected:
    std::unique_ptr<Ledger> ledger_ = *open_sqlite_ledger({":memory:", {}});
    ManualClock clock_{WorldOptions{}.start};  // as the gateway's
    LedgerRunner runner_{*ledger_, clock_};

    GatewayWorldOptions setup() {
        GatewayWorldOptions options;
        options.policy = policy;
        options.gateway.ledger = &runner_;
        return options;
    }
    static std::string buy(std::string_view key, std::string_view body) {
        return "POST /buy HTTP/1.1\r\nHost: a\r\nIdempotency-Key: " + std::string(key) +
               "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
               std::string(body);
    }
};

TEST_F(LedgerGateway, ARepeatIsAnsweredWithoutTheUpstream) {
    ScriptedUpstream upstream(
        answer_raw("HTTP/1.1 201 Created\r\nLocation: /7\r\nContent-Length: 2\r\n\r\nok"));
    GatewayWorld world(upstream.port(), setup());
    Conn client = world.connect();
    client.send(buy("k", "body"));
    EXPECT_EQ(client.read()->status(), 201);
    client.send(buy("k", "body"));
    const auto again = client.read();
    EXPECT_EQ(again->status(), 201);
    EXPECT_EQ(again->field("Location"), "/7");
    EXPECT_EQ(again->field("Idempotent-Replayed"), "true");
    EXPECT_EQ(again->body, "ok");
    client.send(buy("k", "other"));
    EXPECT_EQ(client.read()->status(), 422);
    ASSERT_EQ(upstream.requests().size(), 1U);
    EXPECT_EQ(upstream.requests()[0].body, "body");
}

// RFC 9110 7.6.1: what Connection names, and how the body is framed, is of one hop and one
// exchange.
TEST_F(LedgerGateway, AReplayHasTheAnswersOwnFieldsLineByLine) {
    ScriptedUpstream upstream(
        answer_raw("HTTP/1.1 201 Created\r\nX-First: 1\r\nConnection: keep-alive, X-Hop\r\n"
                   "X-Hop: of this one\r\nKeep-Alive: timeout=5\r\nLink: <a>\r\nlink: <b>\r\n"
                   "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nTransfer-Encoding: chunked\r\n"
                   "X-Empty:\r\nConnection-Id: 7\r\n\r\n2\r\nok\r\n0\r\n\r\n"));
    GatewayWorld world(upstream.port(), setup());
    Conn client = world.connect();
    client.send(buy("k", "body"));
    EXPECT_EQ(client.read()->body, "ok");
    client.send(buy("k", "body"));
    const auto again = client.read();
    EXPECT_EQ(again->field("Idempotent-Replayed"), "true");
    EXPECT_EQ(again->body, "ok");
    EXPECT_EQ(again->field("Content-Length"), "2");
    std::string fields;
    for (const auto& [name, value] : again->fields) {
        fields.append(name).append(": ").append(value).append("\n");
    }
    EXPECT_TRUE(
        fields.starts_with("X-First: 1\nLink: <a>\nlink: <b>\nX-Empty: \n"
                           "Connection-Id: 7\nIdempotent-Replayed: true\n"))
        << fields;
    for (const char* of_the_first : {"X-Hop", "Keep-Alive", "Transfer-Encoding", "1994"}) {
        EXPECT_EQ(fields.find(of_the_first), std::string::npos) << fields;
    }
}

// What Connection cannot take from the first answer it does not take from the repeat's.
TEST_F(LedgerGateway, AReplayHasWhatConnectionMustNotTakeAway) {
    ScriptedUpstream upstream(
        answer_raw("HTTP/1.1 201 Created\r\nConnection: content-type, X-Hop, cache-control\r\n"
                   "Content-Type: text/x\r\nCache-Control: private\r\nX-Hop: 1\r\n"
                   "Content-Length: 2\r\n\r\nok"));
    GatewayWorld world(upstream.port(), setup());
    for (const char* replayed : {"", "true"}) {
        Conn client = world.connect();
        client.send(buy("k", "body"));
        const auto answer = client.read();
        EXPECT_EQ(answer->field("Idempotent-Replayed"), replayed);
        EXPECT_EQ(answer->field("Content-Type"), "text/x") << replayed;
        EXPECT_EQ(answer->field("Cache-Control"), "private") << replayed;
        EXPECT_FALSE(answer->has("X-Hop")) << replayed;
    }
}

TEST_F(LedgerGateway, AChunkedBodyIsCollectedAndForwardedWhole) {
    ScriptedUpstream upstream(answer_raw("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"));
    GatewayWorld world(upstream.port(), setup());
    Conn client = world.connect();
    client.send(
        "POST /buy HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n"
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    client.send("2\r\nde\r\n0\r\n\r\n");
    EXPECT_EQ(client.read()->status(), 201);
    ASSERT_EQ(upstream.requests().size(), 1U);
    EXPECT_EQ(upstream.requests()[0].body, "abcde");
}

TEST_F(LedgerGateway, AKeyedBodyHasABound) {
    ScriptedUpstream upstream(answer_raw("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"));
    GatewayWorld world(upstream.port(), setup());
    Conn at_bound = world.connect();
    at_bound.send(buy("k", std::string(1000, 'x')));
    EXPECT_EQ(at_bound.read()->status(), 201);
    Conn beyond = world.connect();
    beyond.send(buy("l", std::string(1001, 'x')));
    EXPECT_EQ(beyond.read()->status(), 413);
    EXPECT_EQ(upstream.requests().size(), 1U);
}

TEST_F(LedgerGateway, AnAnswerBeyondTheBoundPassesAndIsNotKept) {
    const std::string large(3000, 'y');
    ScriptedUpstream upstream(
        answer_raw("HTTP/1.1 201 Created\r\nContent-Length: 3000\r\n\r\n" + large));
    GatewayWorld world(upstream.port(), setup());
    Conn client = world.connect();
    client.send(buy("k", "body"));
    EXPECT_EQ(client.read()->body, large);
    client.send(buy("k", "body"));
    EXPECT_EQ(client.read()->status(), 409);
}

TEST_F(LedgerGateway, TheCeilingCountsWhatTheUpstreamWrote) {
    ScriptedUpstream upstream([](Conn& connection, const Message& request) {
        connection.send(request.body == "good"
                            ? "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"
                            : "HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n");
        return true;
    });
    GatewayWorld world(upstream.port(), setup());
    Conn client = world.connect();
    const auto plain = [&](std::string_view body) {
        client.send("POST /buy HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n" +
                    std::string(body));
        return client.read()->status();
    };
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(plain("evil"), 409);
    }
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(plain("good"), 201);
    }
    EXPECT_EQ(plain("good"), 429);
    EXPECT_EQ(ledger_->stats().running, 0U);
}

TEST_F(LedgerGateway, ABrokenAnswerLeavesTheKeyInDoubtAndTheRetryGoesOn) {
    std::atomic<int> calls{0};
    ScriptedUpstream upstream([&](Conn& connection, const Message&) {
        if (calls++ == 0) {
            connection.send("HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\nhal");
            return false;
        }
        connection.send("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok");
        return true;
    });
    GatewayWorld world(upstream.port(), setup());
    Conn client = world.connect();
    client.send(buy("k", "body"));
    EXPECT_EQ(client.read()->status(), 502);
    Conn other = world.connect();
    other.send(buy("k", "another"));
    EXPECT_EQ(other.read()->status(), 422);
    other.send(buy("k", "body"));
    EXPECT_EQ(other.read()->status(), 201);
    other.send(buy("k", "body"));
    EXPECT_EQ(other.read()->field("Idempotent-Replayed"), "true");
    EXPECT_EQ(calls.load(), 2);
}

TEST_F(LedgerGateway, AClientThatLeavesDoesNotCancelTheAttempt) {
    std::promise<void> arrived;
    std::promise<void> go_on;
    ScriptedUpstream upstream([&](Conn& connection, const Message&) {
        arrived.set_value();
        go_on.get_future().wait();
        connection.send("HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nmade");
        return true;
    });
    GatewayWorld world(upstream.port(), setup());
    {
        Conn leaving = world.connect();
        leaving.send(buy("k", "body"));
        arrived.get_future().wait();
    }
    while (world.gateway->stats().client_connections > 1) {
        std::this_thread::yield();
    }
    go_on.set_value();
    while (ledger_->stats().running != 0) {
        std::this_thread::yield();
    }
    Conn retry = world.connect();
    retry.send(buy("k", "body"));
    const auto answer = retry.read();
    EXPECT_EQ(answer->body, "made");
    EXPECT_EQ(answer->field("Idempotent-Replayed"), "true");
}

TEST_F(LedgerGateway, ManyIdenticalCreatesAtOnceMakeOne) {
    std::atomic<int> calls{0};
    ScriptedUpstream upstream([&](Conn& connection, const Message&) {
        ++calls;
        connection.send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
        return true;
    });
    GatewayWorld world(upstream.port(), setup());
    std::vector<Conn> clients;
    for (int i = 0; i < 100; ++i) {
        clients.push_back(world.connect());
        clients.back().send(buy("k", "body"));
    }
    int replays_and_losers = 0;
    int made = 0;
    for (Conn& client : clients) {
        const auto answer = client.read();
        const bool replay = !answer->field("Idempotent-Replayed").empty();
        (answer->status() == 201 && !replay ? made : replays_and_losers) += 1;
    }
    EXPECT_EQ(made, 1);
    EXPECT_EQ(replays_and_losers, 99);
    EXPECT_EQ(calls.load(), 1);
}

}  // namespace
}  // namespace ration::testing
