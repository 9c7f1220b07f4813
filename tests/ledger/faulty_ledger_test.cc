// The wrapper that other tests lean on: which call fails, and what a failed batch leaves behind.
#include "ledger/faulty_ledger.h"

#include <gtest/gtest.h>

#include "ledger/ledger_world.h"

namespace ration {
namespace {

class Faulty : public testing::Test {
protected:
    absl::Status begin(std::string_view name) {
        const LedgerReply reply = faulty_.apply_one(Reserve{key(name), {}, {}}, noon);
        attempt_ = reply.reserved.attempt;
        return reply.status;
    }
    absl::Status settle(SettleKind kind) {
        return faulty_.apply_one(Settle{attempt_, kind, nullptr, {}}, noon).status;
    }

    std::unique_ptr<Ledger> ledger_ = *open_sqlite_ledger({":memory:", {}});
    FaultyLedger faulty_{*ledger_};
    AttemptId attempt_ = 0;
};

TEST_F(Faulty, OnlyTheNamedCallsFail) {
    faulty_.fail(LedgerOperation::reserve, 2, 2);
    EXPECT_TRUE(begin("a").ok());
    EXPECT_EQ(begin("b").code(), absl::StatusCode::kUnavailable);
    EXPECT_FALSE(faulty_.stats().healthy);
    EXPECT_EQ(begin("c").code(), absl::StatusCode::kUnavailable);
    EXPECT_TRUE(begin("d").ok());
    EXPECT_TRUE(faulty_.stats().healthy);
    EXPECT_EQ(faulty_.calls(LedgerOperation::reserve), 4U);
    EXPECT_EQ(faulty_.stats().failures, 2U);
    EXPECT_EQ(faulty_.stats().running, 2U);
}

TEST_F(Faulty, ABatchFailsAsAWholeAndLeavesItsAttemptsInDoubt) {
    ASSERT_TRUE(begin("a").ok());
    faulty_.fail(LedgerOperation::settle, 1);
    const std::array<LedgerRequest, 2> batch = {Reserve{key("b"), {}, {}},
                                                Settle{attempt_, SettleKind::written, nullptr, {}}};
    std::array<LedgerReply, 2> replies;
    faulty_.apply(batch, noon, replies);
    EXPECT_EQ(replies[0].status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(replies[1].status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(ledger_->stats().running, 0U);
    EXPECT_EQ(ledger_->stats().doubtful, 1U);
    ASSERT_TRUE(begin("a").ok());
    EXPECT_TRUE(settle(SettleKind::written).ok());
}

TEST_F(Faulty, WhileDownEverythingFails) {
    faulty_.set_down(true);
    faulty_.set_reason("no space left on device");
    EXPECT_EQ(begin("a").message(), "no space left on device");
    EXPECT_FALSE(faulty_.sweep(noon, 10).ok());
    EXPECT_FALSE(faulty_.level(daily("caller", 1)).ok());
    EXPECT_FALSE(faulty_.members("q", {}, 10).ok());
    EXPECT_FALSE(faulty_.level(QuotaUse{"q", 1}).ok());
    EXPECT_FALSE(faulty_.rows().ok());
    EXPECT_FALSE(faulty_.blocks().ok());
    EXPECT_EQ(faulty_.stats().last_error, "no space left on device");
    faulty_.set_down(false);
    EXPECT_TRUE(begin("a").ok());
    EXPECT_TRUE(faulty_.sweep(noon, 10).ok());
}

}  // namespace
}  // namespace ration
