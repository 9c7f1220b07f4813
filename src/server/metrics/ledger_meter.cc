#include "server/metrics/ledger_meter.h"

namespace ration {

void LedgerMeter::on_batch(const LedgerBatch& batch) {
    note(batch.status);
    if (batch.status.ok()) {
        commits_.fetch_add(1, std::memory_order_relaxed);
        batch_size_.add(std::chrono::seconds(batch.size));
        commit_.add(batch.took);
    }
}

void LedgerMeter::on_reserved(const LedgerReply& reply) {
    const std::size_t verdict =
        reply.status.ok() ? static_cast<std::size_t>(reply.reserved.verdict) : reserve_verdicts;
    reserved_[verdict].fetch_add(1, std::memory_order_relaxed);
}

void LedgerMeter::on_sweep(const absl::Status& status) {
    note(status);
    if (status.ok()) {
        sweeps_.fetch_add(1, std::memory_order_relaxed);
    }
}

void LedgerMeter::on_stats(const LedgerStats& stats) {
    const std::lock_guard lock(mutex_);
    stats_ = stats;
}

void LedgerMeter::note(const absl::Status& status) {
    const std::lock_guard lock(mutex_);
    healthy_ = status.ok();
    if (!status.ok()) {
        ++failures_;
        last_error_ = std::string(status.message());
    }
}

LedgerTotals LedgerMeter::totals() const {
    LedgerTotals totals;
    for (std::size_t i = 0; i < reserved_.size(); ++i) {
        totals.reserved[i] = reserved_[i].load(std::memory_order_relaxed);
    }
    batch_size_.merge_into(totals.batch_size);
    commit_.merge_into(totals.commit);
    totals.commits = commits_.load(std::memory_order_relaxed);
    totals.held = held_.load(std::memory_order_relaxed);
    totals.sweeps = sweeps_.load(std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    totals.failures = failures_;
    totals.healthy = healthy_;
    totals.last_error = last_error_;
    totals.stats = stats_;
    return totals;
}

}  // namespace ration
