// Counts what happens at the ledger: for /metrics, /readyz, the log and the admin API.
//
// None of them asks the ledger itself, which may be waiting for a broken disk. Units: as named;
// batch sizes go through a histogram of durations as seconds, so that its bounds and sum read as
// plain numbers. Thread rule: `on_...` on the runner's thread, `totals` from any. Nothing fails.
//
//   ration::LedgerMeter meter;
//   ration::LedgerRunner runner(ledger, clock, {.observer = &meter});
//   ration::LedgerTotals totals = meter.totals();
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "ledger/runner.h"
#include "server/metrics/histogram.h"

namespace ration {

inline constexpr std::size_t reserve_verdicts =
    static_cast<std::size_t>(ReserveVerdict::contended) + 1;

// The names of ReserveVerdict, in its order, and of a reservation that got no answer.
inline constexpr std::array<const char*, reserve_verdicts + 1> verdict_names{
    "started",  "replay",          "mismatch",      "in_progress", "in_doubt",   "probe",
    "not_kept", "ceiling_reached", "quota_reached", "contended",   "unavailable"};

// Jobs in one commit, 1 to 1000, as seconds.
inline constexpr HistogramScale batch_scale = log_linear_scale(
    std::chrono::seconds(1), std::chrono::seconds(1000), coarse_steps, std::chrono::seconds(1));

struct LedgerTotals {
    std::array<std::uint64_t, reserve_verdicts + 1> reserved{};  // answered reservations
    HistogramCounts batch_size;                                  // of commits
    HistogramCounts commit;                                      // how long they took
    std::uint64_t commits = 0;
    std::uint64_t failures = 0;  // batches and sweeps
    std::uint64_t held = 0;      // contended reservations that waited
    std::uint64_t sweeps = 0;
    bool healthy = true;     // the last batch or sweep did not fail
    std::string last_error;  // of the last failure, while not healthy and afterwards
    LedgerStats stats;       // as of a second ago at most
    std::size_t queued = 0;
    std::size_t holding = 0;  // contended reservations that wait now
};

class LedgerMeter final : public LedgerObserver {
public:
    void on_batch(const LedgerBatch& batch) override;
    void on_reserved(const LedgerReply& reply) override;
    void on_held() override { held_.fetch_add(1, std::memory_order_relaxed); }
    void on_sweep(const absl::Status& status) override;
    void on_stats(const LedgerStats& stats) override;

    // All but the queue, which the runner knows.
    [[nodiscard]] LedgerTotals totals() const;

private:
    void note(const absl::Status& status);

    Histogram batch_size_{batch_scale};
    Histogram commit_{latency_scale};
    std::array<std::atomic<std::uint64_t>, reserve_verdicts + 1> reserved_{};
    std::atomic<std::uint64_t> commits_{0};
    std::atomic<std::uint64_t> held_{0};
    std::atomic<std::uint64_t> sweeps_{0};
    mutable std::mutex mutex_;  // guards what follows
    std::uint64_t failures_ = 0;
    bool healthy_ = true;
    std::string last_error_;
    LedgerStats stats_;
};

}  // namespace ration
