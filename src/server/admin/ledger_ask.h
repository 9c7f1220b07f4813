// One question to the ledger from a thread that can wait for its answer.
//
// Thread rule: any thread but the runner's. Private to src/server/admin.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "ledger/runner.h"

namespace ration {

// Owns what `request` views; made with make_shared, filled, then given to `ask_ledger`.
class WaitingJob : public LedgerJob {
public:
    void done() override {
        const std::lock_guard lock(mutex_);
        answered_ = true;
        answered_changed_.notify_all();
    }
    // False when there is none in time; then `done` will not be called any more.
    [[nodiscard]] bool wait(Nanos patience) {
        std::unique_lock lock(mutex_);
        if (answered_changed_.wait_for(lock, patience, [this] { return answered_; })) {
            return true;
        }
        lock.unlock();
        if (abandon()) {
            return false;
        }
        lock.lock();
        answered_changed_.wait(lock, [this] { return answered_; });
        return true;
    }

private:
    std::mutex mutex_;
    std::condition_variable answered_changed_;
    bool answered_ = false;
};

// The reply, or why there is none (Unavailable).
[[nodiscard]] inline absl::StatusOr<LedgerReply> ask_ledger(LedgerRunner& runner,
                                                            const std::shared_ptr<WaitingJob>& job,
                                                            Nanos patience) {
    if (!runner.submit(job)) {
        return absl::UnavailableError("the ledger's queue is full");
    }
    if (!job->wait(patience)) {
        return absl::UnavailableError("the ledger did not answer in time");
    }
    if (!job->reply.status.ok()) {
        return job->reply.status;
    }
    return job->reply;
}

}  // namespace ration
