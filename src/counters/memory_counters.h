// The memory counters' class, for those who need more of it than the interface: tests.
#pragma once

#include <atomic>
#include <memory>

#include "counters/shard.h"
#include "ration/counters.h"

namespace ration {

class MemoryCounters final : public Counters {
public:
    // As `open_memory_counters`.
    [[nodiscard]] static absl::StatusOr<std::unique_ptr<MemoryCounters>> open(
        const MemoryCountersOptions& options);

    void apply(std::span<const Transaction> transactions, Now now,
               std::span<Outcome> outcomes) override;
    void sweep(Now now, std::size_t budget) override;
    [[nodiscard]] CounterStats stats() const override;

    // Calls `pause` in every transaction between judging and storing, so that others run into the
    // locks that are held then. Set before any other thread uses the counters.
    void pause_while_locked(void (*pause)()) { tables_->while_locked = pause; }

    // How often a lock was held by somebody else when asked for.
    [[nodiscard]] std::uint64_t contended() const;

private:
    explicit MemoryCounters(std::unique_ptr<Tables> tables) : tables_(std::move(tables)) {}

    std::unique_ptr<Tables> tables_;
    std::atomic<std::uint32_t> sweep_shard_{0};
};

}  // namespace ration
