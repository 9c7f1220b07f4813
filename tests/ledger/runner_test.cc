// The queue in front of the ledger: group commit, held reservations, late answers undone.
#include "ledger/runner.h"

#include <algorithm>
#include <future>
#include <semaphore>

#include "base/manual_clock.h"
#include "ledger/faulty_ledger.h"
#include "ledger/ledger_world.h"
#include "ledger/ledger_wrapper.h"

namespace ration {
namespace {

struct WaitingJob : LedgerJob {
    std::promise<void> finished;
    CeilingUse ceiling;
    void done() override { finished.set_value(); }
    const LedgerReply& wait() {
        EXPECT_EQ(finished.get_future().wait_for(20s), std::future_status::ready);
        return reply;
    }
};

std::shared_ptr<WaitingJob> reserving(std::uint64_t at_most, std::optional<Mono> hold = {}) {
    auto job = std::make_shared<WaitingJob>();
    job->ceiling = daily("caller", at_most);
    job->request = Reserve{std::nullopt, {&job->ceiling, 1}, {}};
    job->hold_until = hold;
    return job;
}

std::shared_ptr<WaitingJob> settling(AttemptId attempt, SettleKind kind) {
    auto job = std::make_shared<WaitingJob>();
    job->request = Settle{attempt, kind, nullptr, {}};
    return job;
}

// Lets a test stop the ledger inside a commit.
class GatedLedger final : public LedgerWrapper {
public:
    using LedgerWrapper::LedgerWrapper;
    void apply(std::span<const LedgerRequest> requests, Wall now,
               std::span<LedgerReply> replies) override {
        entered.release();
        go.acquire();
        largest_batch = std::max(largest_batch, requests.size());
        LedgerWrapper::apply(requests, now, replies);
    }

    std::counting_semaphore<> entered{0};
    std::counting_semaphore<> go{0};
    std::size_t largest_batch = 0;
};

class Runner : public testing::Test {
protected:
    std::unique_ptr<Ledger> ledger_ = *open_sqlite_ledger({":memory:", {}});
    ManualClock clock_{Now{Mono(1h), noon}};
};

TEST_F(Runner, WhatQueuedDuringACommitGoesIntoTheNext) {
    GatedLedger gated(*ledger_);
    LedgerRunner runner(gated, clock_);
    std::vector<std::shared_ptr<WaitingJob>> jobs = {reserving(100)};
    ASSERT_TRUE(runner.submit(jobs[0]));
    gated.entered.acquire();
    for (int i = 0; i < 20; ++i) {
        jobs.push_back(reserving(100));
        ASSERT_TRUE(runner.submit(jobs.back()));
    }
    gated.go.release(100);
    for (const auto& job : jobs) {
        EXPECT_EQ(job->wait().reserved.verdict, ReserveVerdict::started);
    }
    EXPECT_EQ(gated.largest_batch, 20U);
    EXPECT_EQ(ledger_->stats().commits, 2U);
}

TEST_F(Runner, AHeldReservationStartsWhenAPlaceIsReleased) {
    LedgerRunner runner(*ledger_, clock_);
    const auto first = reserving(1);
    ASSERT_TRUE(runner.submit(first));
    const AttemptId attempt = first->wait().reserved.attempt;
    const auto second = reserving(1, clock_.now().mono + 500ms);
    ASSERT_TRUE(runner.submit(second));
    while (runner.held() == 0) {
        std::this_thread::yield();
    }
    ASSERT_TRUE(runner.submit(settling(attempt, SettleKind::failed)));
    EXPECT_EQ(second->wait().reserved.verdict, ReserveVerdict::started);
}

TEST_F(Runner, AHeldReservationIsRefusedAsReachedWhenThePlaceWasWritten) {
    LedgerRunner runner(*ledger_, clock_);
    const auto first = reserving(1);
    ASSERT_TRUE(runner.submit(first));
    const AttemptId attempt = first->wait().reserved.attempt;
    const auto second = reserving(1, clock_.now().mono + 500ms);
    ASSERT_TRUE(runner.submit(second));
    ASSERT_TRUE(runner.submit(settling(attempt, SettleKind::written)));
    EXPECT_EQ(second->wait().reserved.verdict, ReserveVerdict::ceiling_reached);
}

TEST_F(Runner, AtItsDeadlineAHeldReservationIsAnsweredAsContended) {
    LedgerRunner runner(*ledger_, clock_);
    const auto first = reserving(1);
    ASSERT_TRUE(runner.submit(first));
    (void)first->wait();
    const auto second = reserving(1, clock_.now().mono + 500ms);
    ASSERT_TRUE(runner.submit(second));
    while (runner.held() == 0) {
        std::this_thread::yield();
    }
    clock_.advance(500ms);
    EXPECT_EQ(second->wait().reserved.verdict, ReserveVerdict::contended);
    EXPECT_EQ(runner.held(), 0U);
}

TEST_F(Runner, AnAbandonedReservationIsUndoneWhenItComesLate) {
    GatedLedger gated(*ledger_);
    LedgerRunner runner(gated, clock_);
    const auto late = reserving(1);
    ASSERT_TRUE(runner.submit(late));
    gated.entered.acquire();
    EXPECT_TRUE(late->abandon());
    gated.go.release(100);
    while (runner.undone() == 0) {
        std::this_thread::yield();
    }
    EXPECT_FALSE(late->abandon());
    EXPECT_EQ(ledger_->stats().running, 0U);
    const auto next = reserving(1);
    ASSERT_TRUE(runner.submit(next));
    EXPECT_EQ(next->wait().reserved.verdict, ReserveVerdict::started);
}

// A runner whose ledger stands inside a commit while the queue is filled to its bound.
class FullQueue : public Runner {
protected:
    static constexpr std::size_t most = 3;

    void fill() {
        runner_.emplace(gated_, clock_, LedgerRunnerOptions{.max_queue = most});
        ASSERT_TRUE(runner_->submit(reserving(100)));
        gated_.entered.acquire();
        for (std::size_t i = 0; i < most; ++i) {
            ASSERT_TRUE(runner_->submit(reserving(100)));
        }
    }
    void TearDown() override { gated_.go.release(100); }

    GatedLedger gated_{*ledger_};
    std::optional<LedgerRunner> runner_;
};

TEST_F(FullQueue, RefusesOneMore) {
    fill();
    EXPECT_FALSE(runner_->submit(reserving(100)));
    EXPECT_EQ(runner_->queued(), most);
}

// However full it is, what ends an attempt is taken: there is one for each. A delete that only
// lowers a quota is not, for nothing else bounds how many of those come while the disk hangs.
TEST_F(FullQueue, TakesWhatEndsAnAttemptAndNoOtherChange) {
    const AttemptId attempt = ledger_->apply_one(reserving(100)->request, noon).reserved.attempt;
    fill();
    const QuotaChange lower{"calendars", "cal_1", false};
    const auto deleting = std::make_shared<WaitingJob>();
    deleting->request = Settle{0, SettleKind::written, nullptr, {&lower, 1}};
    EXPECT_FALSE(runner_->submit(deleting));
    const auto doubt = std::make_shared<WaitingJob>();
    doubt->request = SettleDoubt{attempt, true};
    EXPECT_FALSE(runner_->submit(doubt));
    const auto ending = settling(attempt, SettleKind::written);
    EXPECT_TRUE(runner_->submit(ending));
    EXPECT_EQ(runner_->queued(), most + 1);
    gated_.go.release(100);
    EXPECT_TRUE(ending->wait().status.ok());
    EXPECT_EQ(ledger_->stats().running, most + 1);
}

// Counts what it hears.
struct Listener : LedgerObserver {
    void on_batch(const LedgerBatch& batch) override {
        EXPECT_GT(batch.size, 0U);
        (batch.status.ok() ? commits : failures) += 1;
    }
    void on_reserved(const LedgerReply& reply) override {
        if (reply.status.ok() && reply.reserved.verdict == ReserveVerdict::contended) {
            ++contended;
        }
    }
    void on_held() override { ++held; }
    void on_sweep(const absl::Status& status) override { (status.ok() ? good : bad) += 1; }
    void on_stats(const LedgerStats& stats) override { healthy = stats.healthy; }

    std::atomic<int> commits{0}, failures{0}, contended{0}, held{0}, good{0}, bad{0};
    std::atomic<bool> healthy{true};
};

TEST_F(Runner, AnObserverHearsOfBatchesHoldsAndAnswers) {
    Listener listener;
    LedgerRunnerOptions options;
    options.observer = &listener;
    {
        LedgerRunner runner(*ledger_, clock_, options);
        const auto first = reserving(1);
        ASSERT_TRUE(runner.submit(first));
        (void)first->wait();
        const auto second = reserving(1, clock_.now().mono + 500ms);
        ASSERT_TRUE(runner.submit(second));
        while (runner.held() == 0) {
            std::this_thread::yield();
        }
        // Something settles, and it is judged again: still one hold.
        const auto other = reserving(5);
        ASSERT_TRUE(
            runner.submit(settling(first->reply.reserved.attempt + 1000, SettleKind::failed)));
        ASSERT_TRUE(runner.submit(other));
        clock_.advance(500ms);
        EXPECT_EQ(second->wait().reserved.verdict, ReserveVerdict::contended);
    }
    EXPECT_EQ(listener.held, 1);
    EXPECT_EQ(listener.contended, 1);
    EXPECT_GE(listener.commits, 2);
    EXPECT_EQ(listener.failures, 0);
}

TEST_F(Runner, AfterAFailureTheLedgerIsTriedUntilItWorks) {
    FaultyLedger faulty(*ledger_);
    Listener listener;
    LedgerRunnerOptions options;
    options.observer = &listener;
    options.sweep_every = 1h;
    options.try_again = 1s;
    LedgerRunner runner(faulty, clock_, options);
    faulty.set_down(true);
    const auto refused = reserving(1);
    ASSERT_TRUE(runner.submit(refused));
    EXPECT_EQ(refused->wait().status.code(), absl::StatusCode::kUnavailable);
    const auto advance_until = [&](const auto& reached) {
        while (!reached()) {
            clock_.advance(100ms);
            std::this_thread::yield();
        }
    };
    advance_until([&] { return listener.bad > 1; });
    EXPECT_FALSE(listener.healthy);
    faulty.set_down(false);
    advance_until([&] { return listener.healthy.load(); });
    const int sweeps = listener.good;
    EXPECT_GE(sweeps, 1);
    EXPECT_EQ(listener.failures, 1);
    const auto admitted = reserving(1);
    ASSERT_TRUE(runner.submit(admitted));
    EXPECT_EQ(admitted->wait().reserved.verdict, ReserveVerdict::started);
}

// A day of many keys must not outgrow what is swept.
TEST_F(Runner, SweepingGoesOnUntilNothingExpiredIsLeft) {
    for (int i = 0; i < 100; ++i) {
        const std::string identity = "k" + std::to_string(i);
        const Reserved begun = ledger_->apply_one(Reserve{key(identity), {}, {}}, noon).reserved;
        ASSERT_TRUE(
            ledger_->apply_one(Settle{begun.attempt, SettleKind::written, nullptr, {}}, noon)
                .status.ok());
    }
    LedgerRunnerOptions options;
    options.sweep_budget = 10;
    options.own_thread = false;
    LedgerRunner runner(*ledger_, clock_, options);
    clock_.advance(25h);
    for (int i = 0; i < 10; ++i) {
        runner.turn();
        EXPECT_EQ(ledger_->stats().swept, 10U * static_cast<unsigned>(i + 1));
        clock_.advance(options.sweep_on);
    }
    // That one did not know yet that it was the last; the next looks, and rests.
    runner.turn();
    EXPECT_EQ(ledger_->rows()->attempts, 0U);
}

TEST_F(Runner, BeyondTheHeldBoundContentionIsAnsweredAtOnce) {
    LedgerRunnerOptions options;
    options.max_held = 1;
    LedgerRunner runner(*ledger_, clock_, options);
    const auto first = reserving(1);
    ASSERT_TRUE(runner.submit(first));
    (void)first->wait();
    const auto held = reserving(1, clock_.now().mono + 500ms);
    const auto beyond = reserving(1, clock_.now().mono + 500ms);
    ASSERT_TRUE(runner.submit(held));
    ASSERT_TRUE(runner.submit(beyond));
    EXPECT_EQ(beyond->wait().reserved.verdict, ReserveVerdict::contended);
    EXPECT_EQ(runner.held(), 1U);
}

}  // namespace
}  // namespace ration
