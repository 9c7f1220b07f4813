// The ledger fails under the gateway: what is refused, what goes on, what a caller is told, and
// that it recovers by itself.
#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>

#include "base/manual_clock.h"
#include "ledger/faulty_ledger.h"
#include "ledger/runner.h"
#include "server/http/harness.h"

namespace ration::testing {
namespace {

constexpr std::string_view policy = R"(
policy: shop
routes: {buy: POST /buy, book: POST /book, look: GET /look}
ceilings:
  - {name: daily, routes: [buy, book], per: [address], at_most: 5 per day in UTC, refuse: daily}
idempotency:
  - {routes: [buy], scope: [address]}
refusals:
  daily: {status: 429}
  ledger_unavailable: {message: The shop cannot write it down.}
error_shape: {oops: "{type}", say: "{message}"}
)";

std::string write(std::string_view path, std::string_view key = "") {
    std::string text =
        "POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n";
    if (!key.empty()) {
        text += "Idempotency-Key: " + std::string(key) + "\r\n";
    }
    return text + "\r\nbody";
}

class LedgerFaults : public ::testing::Test {
protected:
    GatewayWorldOptions setup(Ledger& ledger) {
        runner_ = std::make_unique<LedgerRunner>(ledger, clock_);
        GatewayWorldOptions options;
        options.policy = policy;
        options.gateway.ledger = runner_.get();
        return options;
    }

    ScriptedUpstream upstream_{answer_raw("HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nmade")};
    std::unique_ptr<Ledger> ledger_ = *open_sqlite_ledger({":memory:", {}});
    FaultyLedger faulty_{*ledger_};
    ManualClock clock_{WorldOptions{}.start};  // as the gateway's
    std::unique_ptr<LedgerRunner> runner_;
};

TEST_F(LedgerFaults, WithoutALedgerNothingIsForwardedThatNeedsItAndTheRestGoesOn) {
    GatewayWorld world(upstream_.port(), setup(faulty_));
    Conn client = world.connect();
    faulty_.set_down(true);
    faulty_.set_reason("database or disk is full");
    for (const std::string& request : {write("/buy", "k"), write("/buy"), write("/book")}) {
        client.send(request);
        const auto refused = client.read();
        EXPECT_EQ(refused->status(), 503);
        EXPECT_EQ(refused->field("Retry-After"), "1");
        EXPECT_EQ(refused->body,
                  R"({"oops":"ledger_unavailable","say":"The shop cannot write it down."})");
    }
    EXPECT_EQ(upstream_.requests().size(), 0U);
    EXPECT_EQ(world.recorder.wait_for(3)[0].detail, "database or disk is full");
    client.send(get("/look"));
    EXPECT_EQ(client.read()->status(), 201);
    faulty_.set_down(false);
    client.send(write("/buy", "k"));
    EXPECT_EQ(client.read()->status(), 201);
    EXPECT_EQ(ledger_->stats().doubtful, 0U);
}

TEST_F(LedgerFaults, WhatCannotBeWrittenDownIsAnsweredAllTheSameAndInDoubt) {
    GatewayWorld world(upstream_.port(), setup(faulty_));
    Conn client = world.connect();
    faulty_.fail(LedgerOperation::settle, 1, 2);
    client.send(write("/buy", "k"));
    const auto answer = client.read();
    EXPECT_EQ(answer->status(), 201);
    EXPECT_EQ(answer->body, "made");
    EXPECT_EQ(world.recorder.wait_for(1)[0].detail,
              "the outcome could not be written down: disk I/O error");
    client.send(write("/book"));
    EXPECT_EQ(client.read()->status(), 201);
    // Both places count. The retry goes upstream with the same key, as the rule says, and is kept.
    ASSERT_EQ(ledger_->doubtful(0, 10).size(), 2U);
    client.send(write("/buy", "k"));
    EXPECT_EQ(client.read()->field("Idempotent-Replayed"), "");
    client.send(write("/buy", "k"));
    EXPECT_EQ(client.read()->field("Idempotent-Replayed"), "true");
    EXPECT_EQ(upstream_.requests().size(), 3U);
    for (const int status : {201, 201, 201, 429}) {
        client.send(write("/book"));
        EXPECT_EQ(client.read()->status(), status);
    }
}

TEST_F(LedgerFaults, EachOperationMayFailOnceAnywhere) {
    GatewayWorld world(upstream_.port(), setup(faulty_));
    for (std::uint64_t nth = 1; nth <= 3; ++nth) {
        for (const LedgerOperation operation :
             {LedgerOperation::reserve, LedgerOperation::settle}) {
            faulty_.fail(operation, nth);
            Conn client = world.connect();
            const std::string key =
                "k" + std::to_string(nth) + (operation == LedgerOperation::settle ? "s" : "r");
            int answered = 0;
            for (int attempt = 0; attempt < 5; ++attempt) {
                client.send(write("/buy", key));
                const auto answer = client.read();
                ASSERT_TRUE(answer.has_value());
                answered += answer->status() == 201 ? 1 : 0;
                EXPECT_TRUE(answer->status() == 201 || answer->status() == 503 ||
                            answer->status() == 429)
                    << answer->status();
            }
            // The last word on a key that was answered 201 is its replay, whatever the ceiling
            // says.
            client.send(write("/buy", key));
            const auto last = client.read();
            EXPECT_EQ(last->status(), answered == 0 ? 429 : 201);
        }
    }
    EXPECT_EQ(ledger_->stats().running, 0U);
}

// A ledger whose commits wait until they are let go.
class StuckLedger final : public LedgerWrapper {
public:
    using LedgerWrapper::LedgerWrapper;
    void apply(std::span<const LedgerRequest> requests, Wall now,
               std::span<LedgerReply> replies) override {
        const bool settles = std::any_of(requests.begin(), requests.end(), [](const auto& request) {
            return std::holds_alternative<Settle>(request);
        });
        if (stuck && (settles || !only_settlements)) {
            ++waiting;
            go.acquire();
        }
        LedgerWrapper::apply(requests, now, replies);
    }
    std::atomic<bool> stuck{false};
    std::atomic<bool> only_settlements{false};
    std::atomic<int> waiting{0};
    std::counting_semaphore<> go{0};
};

TEST_F(LedgerFaults, ASlowReservationIsRefusedAndUndone) {
    StuckLedger stuck(*ledger_);
    GatewayWorld world(upstream_.port(), setup(stuck));
    Conn client = world.connect();
    stuck.stuck = true;
    client.send(write("/buy", "k"));
    ASSERT_TRUE(GatewayWorld::eventually([&] { return stuck.waiting == 1; }));
    ASSERT_TRUE(world.advance_until([&] { return world.recorder.count() == 1; }));
    EXPECT_EQ(client.read()->status(), 503);
    stuck.stuck = false;
    stuck.go.release();
    ASSERT_TRUE(GatewayWorld::eventually(
        [&] { return runner_->undone() == 1 && ledger_->stats().running == 0; }));
    client.send(write("/buy", "k"));
    EXPECT_EQ(client.read()->status(), 201);
    EXPECT_EQ(upstream_.requests().size(), 1U);
}

TEST_F(LedgerFaults, ASlowSettlementDoesNotHoldTheAnswerAndIsKeptInTheEnd) {
    StuckLedger stuck(*ledger_);
    GatewayWorld world(upstream_.port(), setup(stuck));
    Conn client = world.connect();
    stuck.only_settlements = true;
    stuck.stuck = true;
    client.send(write("/buy", "k"));
    ASSERT_TRUE(GatewayWorld::eventually([&] { return stuck.waiting == 1; }));
    ASSERT_TRUE(world.advance_until([&] { return world.recorder.count() == 1; }));
    EXPECT_EQ(client.read()->status(), 201);
    EXPECT_EQ(world.recorder.wait_for(1)[0].detail,
              "the outcome could not be written down in time");
    stuck.stuck = false;
    stuck.go.release();
    ASSERT_TRUE(GatewayWorld::eventually([&] { return ledger_->stats().running == 0; }));
    client.send(write("/buy", "k"));
    EXPECT_EQ(client.read()->field("Idempotent-Replayed"), "true");
}

}  // namespace
}  // namespace ration::testing
