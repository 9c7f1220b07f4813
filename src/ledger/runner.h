// Turns the blocking ledger into an awaited one: a queue, one thread, and what was queued while the
// last commit ran goes into the next one, with what comes back at once from those that the last one
// answered (see Gathering).
//
// The waiting side has the deadline. A job whose waiter has given up is undone when its answer
// comes late (a reservation is settled as not sent), so a slow store is a failed store and leaves
// nothing behind. A contended reservation whose `hold_until` lies ahead is *held*: nothing is
// written, it is judged again after every batch that settled something, and answered as contended
// at its deadline. After a failed batch the ledger is swept, and so tried, until it works again.
//
// Thread rule: `submit` and `LedgerJob::abandon` from any thread; `LedgerJob::done` is called on
// the runner's thread and must not block. Ownership: the runner shares each job until it is
// answered; the ledger and the clock must outlive the runner. Destruction answers what is queued
// and stops.
//
//   auto job = std::make_shared<CreateJob>(...);       // owns the bytes that its request views
//   if (!runner.submit(job)) return unavailable();     // queue full
//   ... done() posts to the event loop; job->reply has the answer
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "ledger/gathering.h"
#include "ration/ledger.h"

namespace ration {

class LedgerJob {
public:
    virtual ~LedgerJob() = default;

    LedgerRequest request;  // views into the job's own storage
    LedgerReply reply;
    std::optional<Mono> hold_until;  // a contended reservation may wait that long

    // Called once, unless abandoned first; `reply` is complete.
    virtual void done() = 0;

    // The waiter gives up: false when `done` was or is being called.
    bool abandon();

private:
    friend class LedgerRunner;
    enum class State : int { waiting, answered, abandoned };
    bool answer();  // false when abandoned
    std::atomic<State> state_{State::waiting};
};

// One commit, or what was to be one.
struct LedgerBatch {
    std::size_t size = 0;
    Nanos took{0};
    absl::Status status;
};

// Hears what the runner does, on its thread; must not block.
class LedgerObserver {
public:
    virtual ~LedgerObserver() = default;
    virtual void on_batch(const LedgerBatch& batch) = 0;
    // Once for each reservation that is answered.
    virtual void on_reserved(const LedgerReply& reply) = 0;
    virtual void on_held() = 0;  // a contended one begins to wait
    virtual void on_sweep(const absl::Status& status) = 0;
    // After every batch and sweep that changed its health, else about every second.
    virtual void on_stats(const LedgerStats& stats) = 0;
};

struct LedgerRunnerOptions {
    std::size_t max_queue = 10'000;  // jobs waiting; more are refused
    std::size_t max_batch = 512;     // jobs in one commit
    std::size_t max_held = 1'024;    // contended jobs waiting; more are answered at once
    Nanos sweep_every = std::chrono::seconds(10);
    Nanos try_again = std::chrono::seconds(1);       // after a failure, instead of `sweep_every`
    Nanos sweep_on = std::chrono::milliseconds(20);  // after a sweep that left something
    std::size_t sweep_budget = 500;
    bool own_thread = true;  // false: nothing happens but in `turn`, for simulations
    LedgerObserver* observer = nullptr;
};

class LedgerRunner {
public:
    LedgerRunner(Ledger& ledger, const Clock& clock, const LedgerRunnerOptions& options = {});
    ~LedgerRunner();
    LedgerRunner(const LedgerRunner&) = delete;
    LedgerRunner& operator=(const LedgerRunner&) = delete;

    // False when the queue is full or the runner is stopping: `done` will not be called. What
    // ends an attempt is queued however full it is: there is at most one for each attempt.
    [[nodiscard]] bool submit(std::shared_ptr<LedgerJob> job);

    // Without a thread of its own: one batch, as the thread would do it now. True when the next one
    // is due at once. What is queued when the runner ends gets no answer, as in a crash.
    bool turn();

    [[nodiscard]] std::size_t queued() const;
    [[nodiscard]] std::size_t held() const { return held_count_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t undone() const { return undone_.load(std::memory_order_relaxed); }

private:
    using Jobs = std::vector<std::shared_ptr<LedgerJob>>;

    void run();
    void perform_next(Jobs& batch);
    [[nodiscard]] bool wait_for_work(Jobs& batch);
    void gather(std::unique_lock<std::mutex>& lock);
    void take_queued(Jobs& batch);
    [[nodiscard]] bool undoes_next() const { return !to_undo_.empty() && !failed_; }
    [[nodiscard]] Nanos patience() const;
    void perform(Jobs& batch);
    void deliver(std::shared_ptr<LedgerJob> job, LedgerReply reply);
    void retry_held(Jobs& batch, bool all);
    void sweep_when_due();
    void note_health(bool good);
    void tell_stats(const Now& now);

    Ledger& ledger_;
    const Clock& clock_;
    const LedgerRunnerOptions options_;

    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::shared_ptr<LedgerJob>> queue_;
    bool stopping_ = false;

    // The runner's thread only.
    Jobs held_;
    std::vector<AttemptId> to_undo_;
    bool failed_ = false;   // the last batch; what is to be undone then waits for the next one
    bool settled_ = false;  // the last batch settled something: held jobs get another chance
    Mono next_sweep_{};
    Mono next_stats_{};
    bool healthy_ = true;
    Gathering gathering_{options_.max_batch};
    std::vector<LedgerRequest> requests_;
    std::vector<LedgerReply> replies_;

    std::atomic<std::size_t> held_count_{0};
    std::atomic<std::uint64_t> undone_{0};
    std::thread thread_;
};

}  // namespace ration
