#include "ledger/runner.h"

#include <algorithm>
#include <utility>

namespace ration {

namespace {

constexpr Nanos stats_every = std::chrono::seconds(1);

// Frees places or settles them: what a contended reservation waits for.
bool settles(const LedgerRequest& request) {
    return std::holds_alternative<Settle>(request) ||
           std::holds_alternative<SettleDoubt>(request) ||
           std::holds_alternative<StateMembers>(request);
}

// There is at most one for each attempt, so they need no bound of their own. A delete that only
// lowers a quota has no attempt: nothing else bounds how many of those wait.
bool ends_attempt(const LedgerRequest& request) {
    const Settle* settle = std::get_if<Settle>(&request);
    return settle != nullptr && settle->attempt != 0;
}

}  // namespace

bool LedgerJob::abandon() {
    State expected = State::waiting;
    return state_.compare_exchange_strong(expected, State::abandoned);
}

bool LedgerJob::answer() {
    State expected = State::waiting;
    return state_.compare_exchange_strong(expected, State::answered);
}

LedgerRunner::LedgerRunner(Ledger& ledger, const Clock& clock, const LedgerRunnerOptions& options)
    : ledger_(ledger), clock_(clock), options_(options) {
    next_sweep_ = clock_.now().mono + options_.sweep_every;
    if (options_.own_thread) {
        thread_ = std::thread([this] { run(); });
    }
}

LedgerRunner::~LedgerRunner() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

bool LedgerRunner::submit(std::shared_ptr<LedgerJob> job) {
    {
        const std::lock_guard lock(mutex_);
        if (stopping_ || (queue_.size() >= options_.max_queue && !ends_attempt(job->request))) {
            return false;
        }
        queue_.push_back(std::move(job));
    }
    wake_.notify_one();
    return true;
}

std::size_t LedgerRunner::queued() const {
    const std::lock_guard lock(mutex_);
    return queue_.size();
}

void LedgerRunner::run() {
    Jobs batch;
    tell_stats(clock_.now());
    while (wait_for_work(batch)) {
        perform_next(batch);
    }
    // Nobody settles any more: what is held gets its answer now.
    for (std::shared_ptr<LedgerJob>& job : std::exchange(held_, {})) {
        LedgerReply reply = job->reply;
        deliver(std::move(job), std::move(reply));
    }
}

bool LedgerRunner::turn() {
    Jobs batch;
    {
        const std::lock_guard lock(mutex_);
        take_queued(batch);
    }
    perform_next(batch);
    return settled_ || undoes_next() || queued() > 0;
}

void LedgerRunner::perform_next(Jobs& batch) {
    retry_held(batch, std::exchange(settled_, false));
    perform(batch);
    batch.clear();
    sweep_when_due();
}

// True with a batch (perhaps empty, when a held job's deadline came); false when told to stop and
// nothing is queued.
bool LedgerRunner::wait_for_work(Jobs& batch) {
    std::unique_lock lock(mutex_);
    if (queue_.empty() && !stopping_ && !undoes_next() && !settled_) {
        wake_.wait_for(lock, patience());
    }
    gather(lock);
    take_queued(batch);
    return !batch.empty() || !stopping_;
}

void LedgerRunner::gather(std::unique_lock<std::mutex>& lock) {
    if (stopping_ || !gathering_.begin(queue_.size(), clock_.now().mono)) {
        return;
    }
    do {
        lock.unlock();
        std::this_thread::sleep_for(Gathering::step);
        lock.lock();
    } while (!stopping_ && gathering_.more(queue_.size(), clock_.now().mono));
    gathering_.end(queue_.size());
}

// With the lock held.
void LedgerRunner::take_queued(Jobs& batch) {
    while (!queue_.empty() && batch.size() < options_.max_batch) {
        batch.push_back(std::move(queue_.front()));
        queue_.pop_front();
    }
}

Nanos LedgerRunner::patience() const {
    const Mono now = clock_.now().mono;
    Mono earliest = next_sweep_;
    for (const std::shared_ptr<LedgerJob>& job : held_) {
        earliest = std::min(earliest, *job->hold_until);
    }
    return std::clamp(earliest - now, Nanos(std::chrono::milliseconds(1)),
                      Nanos(std::chrono::seconds(1)));
}

// Puts held jobs in front of the batch: all of them, or those whose deadline has come.
void LedgerRunner::retry_held(Jobs& batch, bool all) {
    if (held_.empty()) {
        return;
    }
    const Mono now = clock_.now().mono;
    const auto ready = std::stable_partition(held_.begin(), held_.end(), [&](const auto& job) {
        return !all && *job->hold_until > now;
    });
    batch.insert(batch.begin(), ready, held_.end());
    held_.erase(ready, held_.end());
    held_count_.store(held_.size(), std::memory_order_relaxed);
}

void LedgerRunner::perform(Jobs& batch) {
    requests_.clear();
    for (const AttemptId attempt : to_undo_) {
        requests_.emplace_back(Settle{attempt, SettleKind::not_sent, nullptr, {}});
    }
    const std::size_t undoing = requests_.size();
    for (const std::shared_ptr<LedgerJob>& job : batch) {
        requests_.push_back(job->request);
    }
    if (requests_.empty()) {
        return;
    }
    replies_.assign(requests_.size(), LedgerReply{});
    const Now before = clock_.now();
    ledger_.apply(requests_, before.wall, replies_);
    const Nanos took = clock_.now().mono - before.mono;
    gathering_.committed(batch.size(), queued(), took);
    note_health(replies_.front().status.ok());
    if (options_.observer != nullptr) {
        options_.observer->on_batch({requests_.size(), took, replies_.front().status});
    }
    failed_ = !replies_.front().status.ok();
    if (!failed_) {
        settled_ = std::any_of(requests_.begin(), requests_.end(), settles);
        undone_.fetch_add(undoing, std::memory_order_relaxed);
        to_undo_.clear();
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
        deliver(std::move(batch[i]), std::move(replies_[undoing + i]));
    }
}

void LedgerRunner::deliver(std::shared_ptr<LedgerJob> job, LedgerReply reply) {
    const bool contended = reply.status.ok() && std::holds_alternative<Reserve>(job->request) &&
                           reply.reserved.verdict == ReserveVerdict::contended;
    const bool again = job->reply.reserved.verdict == ReserveVerdict::contended;
    if (contended && job->hold_until && *job->hold_until > clock_.now().mono &&
        held_.size() < options_.max_held) {
        job->reply = std::move(reply);
        if (!again && options_.observer != nullptr) {
            options_.observer->on_held();
        }
        held_.push_back(std::move(job));
        held_count_.store(held_.size(), std::memory_order_relaxed);
        return;
    }
    const AttemptId started = reply.status.ok() && std::holds_alternative<Reserve>(job->request)
                                  ? reply.reserved.attempt
                                  : 0;
    job->reply = std::move(reply);
    if (options_.observer != nullptr && std::holds_alternative<Reserve>(job->request)) {
        options_.observer->on_reserved(job->reply);
    }
    if (job->answer()) {
        job->done();
    } else if (started != 0) {
        to_undo_.push_back(started);
    }
}

void LedgerRunner::sweep_when_due() {
    const Now now = clock_.now();
    if (now.mono >= next_sweep_) {
        const absl::StatusOr<bool> more = ledger_.sweep(now.wall, options_.sweep_budget);
        const bool left = more.ok() && *more;
        next_sweep_ = now.mono + (left ? options_.sweep_on : options_.sweep_every);
        note_health(more.ok());
        if (options_.observer != nullptr) {
            options_.observer->on_sweep(more.status());
        }
    }
    tell_stats(now);
}

// While the ledger fails, sweeps come sooner: they find out when it works again.
void LedgerRunner::note_health(bool good) {
    if (!good) {
        next_sweep_ = std::min(next_sweep_, clock_.now().mono + options_.try_again);
    }
    if (std::exchange(healthy_, good) != good) {
        next_stats_ = {};
    }
}

void LedgerRunner::tell_stats(const Now& now) {
    if (options_.observer != nullptr && now.mono >= next_stats_) {
        next_stats_ = now.mono + stats_every;
        options_.observer->on_stats(ledger_.stats());
    }
}

}  // namespace ration
