// doubt: probe over raw sockets: what the upstream is asked, and what its answers lead to.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>

#include "base/manual_clock.h"
#include "ledger/faulty_ledger.h"
#include "ledger/runner.h"
#include "server/http/harness.h"

namespace ration::testing {
namespace {

constexpr std::string_view policy = R"(
policy: shop
routes: {buy: "POST /shops/{shop}/buy"}
idempotency:
  - routes: [buy]
    scope: [address]
    max_answer: 2000
    doubt: probe
    probe: {path: "/shops/{shop}/bought/{key}?x=1", status: 201}
)";

std::string buy(std::string_view fields = "") {
    return "POST /shops/7/buy?now=1 HTTP/1.1\r\nHost: shop.example\r\nIdempotency-Key: "
           "\"a/b\"\r\n" +
           std::string(fields) + "Content-Length: 4\r\n\r\nbody";
}

class ProbeGateway : public ::testing::Test {
protected:
    // The first create breaks off; then probes are answered as told and creates by 201.
    ProbeGateway()
        : upstream_([this](Conn& connection, const Message& request) {
              if (request.start_line.starts_with("GET ")) {
                  return answer_probe(connection);
              }
              if (creates++ == 0) {
                  return false;
              }
              connection.send(created_);
              return true;
          }) {}

    void start(std::string_view more = "") {
        GatewayWorldOptions options;
        options.policy = std::string(policy) + std::string(more);
        options.gateway.ledger = &runner_;
        world_ = std::make_unique<GatewayWorld>(upstream_.port(), options);
        client_ = std::make_unique<Conn>(world_->connect());
        EXPECT_EQ(ask()->status(), 502);
        EXPECT_TRUE(in_doubt());
    }
    std::optional<Message> ask(std::string_view fields = "") {
        client_->send(buy(fields));
        return client_->read();
    }

    // What probes are answered from now on; one that runs keeps the answer it began with.
    void answer_probes(std::string bytes, bool keep = true) {
        const std::lock_guard lock(mutex_);
        probe_answer_ = {std::move(bytes), keep};
    }

    // The answer does not wait for the ledger to hear that nobody knows.
    bool in_doubt() {
        return GatewayWorld::eventually([this] { return ledger_->stats().doubtful == 1; });
    }

    std::string created_ = "HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nmade";
    std::atomic<int> creates{0};
    std::unique_ptr<Ledger> ledger_ = *open_sqlite_ledger({":memory:", {}});
    FaultyLedger faulty_{*ledger_};
    ManualClock clock_{WorldOptions{}.start};
    LedgerRunner runner_{faulty_, clock_};
    struct ProbeAnswer {
        std::string bytes;
        bool keep;
    };
    std::mutex mutex_;
    ProbeAnswer probe_answer_{"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", true};
    ScriptedUpstream upstream_;
    std::unique_ptr<GatewayWorld> world_;
    std::unique_ptr<Conn> client_;

private:
    bool answer_probe(Conn& connection) {
        ProbeAnswer answer;
        {
            const std::lock_guard lock(mutex_);
            answer = probe_answer_;
        }
        connection.send(answer.bytes);
        return answer.keep;
    }
};

TEST_F(ProbeGateway, WhatIsFoundIsKeptAndReplayed) {
    answer_probes(
        "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nSet-Cookie: a=b\r\nContent-Length: 5\r\n\r\n"
        "found");
    start();
    for (int round = 0; round < 2; ++round) {
        const auto answer = ask();
        EXPECT_EQ(answer->status(), 201);
        EXPECT_EQ(answer->body, "found");
        EXPECT_EQ(answer->field("Content-Type"), "text/x");
        EXPECT_EQ(answer->field("Set-Cookie"), "");
        EXPECT_EQ(answer->field("Idempotent-Replayed"), "true");
    }
    EXPECT_EQ(upstream_.requests().size(), 2U);
    EXPECT_EQ(world_->recorder.wait_for(2)[1].outcome, RequestOutcome::replayed);
    EXPECT_EQ(ledger_->stats().doubtful, 0U);
}

TEST_F(ProbeGateway, TheUpstreamIsAskedAsTheCaller) {
    start();
    EXPECT_EQ(ask("Authorization: Bearer k_1\r\nContent-Type: text/plain\r\nIf-Match: \"x\"\r\n"
                  "Range: bytes=0-1\r\nAccept: text/x\r\nRation-Probe: forged\r\n")
                  ->status(),
              201);
    const std::vector<Message> seen = upstream_.requests();
    ASSERT_EQ(seen.size(), 3U);
    const Message& asked = seen[1];
    EXPECT_EQ(asked.start_line, "GET /shops/7/bought/a%2Fb?x=1 HTTP/1.1");
    EXPECT_EQ(asked.field("Host"), "shop.example");
    EXPECT_EQ(asked.field("Idempotency-Key"), "\"a/b\"");
    EXPECT_EQ(asked.field("Authorization"), "Bearer k_1");
    EXPECT_EQ(asked.field("Accept"), "text/x");
    EXPECT_EQ(asked.field("Ration-Probe"), "true");
    EXPECT_EQ(asked.field("Ration-Address"), "127.0.0.1");
    for (const char* name : {"Content-Length", "Content-Type", "If-Match", "Range"}) {
        EXPECT_EQ(asked.field(name), "") << name;
    }
    EXPECT_EQ(seen[2].start_line, "POST /shops/7/buy?now=1 HTTP/1.1");
    EXPECT_EQ(seen[2].body, "body");
    EXPECT_EQ(seen[2].field("If-Match"), "\"x\"");
    EXPECT_EQ(seen[2].field("Ration-Probe"), "");
}

// A probe is ration's own question: whatever it is answered, it is neither a failure nor a success
// of the caller.
TEST_F(ProbeGateway, AProbesAnswerIsNobodysFailure) {
    start(
        "strikes:\n"
        "  - {name: tries, routes: [buy], per: [address], failed: [404, 500], failures: 1 per 1h, "
        "block: 1h}\n");
    answer_probes("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(ask()->status(), 502);
    answer_probes("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(ask()->status(), 201);
    EXPECT_EQ(ask()->status(), 201) << "nothing led to a block";
}

TEST_F(ProbeGateway, TheAnswerBehindAProbeIsTheAttempts) {
    created_ = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
    start(
        "strikes:\n"
        "  - {name: tries, routes: [buy], per: [address], failures: 1 per 1h, block: 1h}\n");
    EXPECT_EQ(ask()->status(), 401) << "the probe found nothing";
    EXPECT_EQ(ask()->status(), 429);
    EXPECT_EQ(creates.load(), 2);
}

TEST_F(ProbeGateway, WhatIsNotThereBeginsAnew) {
    start();
    const auto made = ask();
    EXPECT_EQ(made->status(), 201);
    EXPECT_EQ(made->body, "made");
    EXPECT_EQ(made->field("Idempotent-Replayed"), "");
    EXPECT_EQ(ask()->field("Idempotent-Replayed"), "true");
    EXPECT_EQ(creates.load(), 2);
    EXPECT_EQ(world_->recorder.wait_for(2)[1].upstream_status, 201);
}

TEST_F(ProbeGateway, AnythingElseLeavesTheKeyInDoubt) {
    start();
    for (const char* answer :
         {"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal", "HTP/1.1 200 OK\r\n\r\n", ""}) {
        answer_probes(answer, false);
        const auto refused = ask();
        EXPECT_EQ(refused->status(), 502) << answer;
        EXPECT_TRUE(in_doubt()) << answer;
    }
    EXPECT_EQ(creates.load(), 1);
    answer_probes("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n\r\nto the end",
                  false);
    EXPECT_EQ(ask()->body, "to the end");
}

TEST_F(ProbeGateway, WhatIsFoundAndTooLargeToKeepIsDone) {
    answer_probes("HTTP/1.1 200 OK\r\nContent-Length: 2001\r\n\r\n" + std::string(2001, 'x'));
    start();
    EXPECT_EQ(ask()->status(), 409);
    EXPECT_EQ(ask()->status(), 409);
    EXPECT_EQ(ledger_->stats().doubtful, 0U);
    EXPECT_EQ(upstream_.requests().size(), 2U);
}

TEST_F(ProbeGateway, AProbeHasTheUpstreamsTime) {
    start();
    answer_probes("");
    client_->send(buy());
    ASSERT_TRUE(world_->advance_until([&] { return world_->recorder.count() == 2; }));
    EXPECT_EQ(client_->read()->status(), 504);
    EXPECT_TRUE(in_doubt());
}

TEST_F(ProbeGateway, WhatIsFoundIsAnsweredAlsoWhenItCannotBeWrittenDown) {
    answer_probes("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfound");
    start();
    faulty_.fail(LedgerOperation::settle, 1);
    EXPECT_EQ(ask()->body, "found");
    EXPECT_EQ(ledger_->stats().doubtful, 1U);
    EXPECT_EQ(ask()->body, "found");
    EXPECT_EQ(ledger_->stats().doubtful, 0U);
    EXPECT_EQ(creates.load(), 1);
}

TEST_F(ProbeGateway, WhatIsNotThereAndCannotBeWrittenDownIsRefused) {
    start();
    faulty_.fail(LedgerOperation::settle, 1);
    EXPECT_EQ(ask()->status(), 503);
    EXPECT_EQ(creates.load(), 1);
    EXPECT_TRUE(in_doubt());
    EXPECT_EQ(ask()->body, "made");
}

TEST_F(ProbeGateway, OthersWithTheKeyWaitForTheProbe) {
    std::promise<void> arrived;
    std::promise<void> go_on;
    std::atomic<int> calls{0};
    ScriptedUpstream slow([&](Conn& connection, const Message& request) {
        if (request.start_line.starts_with("POST")) {
            ++calls;
            return false;
        }
        arrived.set_value();
        go_on.get_future().wait();
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfound");
        return true;
    });
    GatewayWorldOptions options;
    options.policy = policy;
    options.gateway.ledger = &runner_;
    GatewayWorld world(slow.port(), options);
    Conn first = world.connect();
    first.send(buy());
    EXPECT_EQ(first.read()->status(), 502);
    {
        Conn leaving = world.connect();
        leaving.send(buy());
        arrived.get_future().wait();
        first.send(buy());
        EXPECT_EQ(first.read()->status(), 409);
    }
    go_on.set_value();  // nobody waits for it any more, and it is found all the same
    ASSERT_TRUE(GatewayWorld::eventually([&] { return ledger_->stats().running == 0; }));
    first.send(buy());
    EXPECT_EQ(first.read()->body, "found");
    EXPECT_EQ(calls.load(), 1);
}

}  // namespace
}  // namespace ration::testing
