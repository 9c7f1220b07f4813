// Counters in the memory of this process: a fixed number of slots in shards, each behind a small
// lock. How one transaction runs is in transaction.cc, how keys leave in reclaim.cc.
#include "counters/memory_counters.h"

#include <sodium.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "counters/transaction.h"

namespace ration {

namespace {

constexpr std::uint64_t slots_per_shard = 8192;  // aimed at
constexpr std::uint32_t most_automatic_shards = 256;
constexpr std::uint32_t sweep_stretch = 256;  // slots looked at under one lock

// How the memory is divided.
struct Plan {
    std::uint64_t log_bytes = 0;
    std::uint32_t shards = 1;
    std::uint32_t shard_slots = 0;
    std::uint32_t overflow_slots = 0;
};

absl::StatusOr<Plan> make_plan(const MemoryCountersOptions& options) {
    Plan plan;
    if (options.max_bytes < min_counter_bytes || options.max_bytes > max_counter_bytes) {
        return absl::InvalidArgumentError(absl::StrCat("counters have from ", min_counter_bytes,
                                                       " to ", max_counter_bytes, " bytes, got ",
                                                       options.max_bytes));
    }
    plan.log_bytes =
        options.log_bytes != 0 ? options.log_bytes : std::max(min_log_bytes, options.max_bytes / 8);
    if (plan.log_bytes < min_log_bytes || plan.log_bytes > options.max_bytes / 2) {
        return absl::InvalidArgumentError(absl::StrCat("log_bytes must be from ", min_log_bytes,
                                                       " to half of max_bytes, got ",
                                                       options.log_bytes));
    }
    if (options.shards != 0 &&
        (!std::has_single_bit(options.shards) || options.shards > max_shards)) {
        return absl::InvalidArgumentError(absl::StrCat("shards must be a power of two up to ",
                                                       max_shards, ", got ", options.shards));
    }
    const std::uint64_t left = options.max_bytes - plan.log_bytes;
    plan.overflow_slots =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(left / sizeof(Slot) / 64, 256, 4096));
    const std::uint64_t slots = left / sizeof(Slot) - plan.overflow_slots;
    plan.shards = options.shards != 0
                      ? options.shards
                      : std::min(most_automatic_shards,
                                 static_cast<std::uint32_t>(std::bit_floor(
                                     std::max<std::uint64_t>(1, slots / slots_per_shard))));
    const std::uint64_t for_shards = (plan.shards + 1) * sizeof(Shard) / sizeof(Slot) + 1;
    const std::uint64_t per_shard = (slots - std::min(slots, for_shards)) / plan.shards;
    if (per_shard < SlotTable::min_slots) {
        return absl::InvalidArgumentError(absl::StrCat(plan.shards, " shards leave less than ",
                                                       SlotTable::min_slots, " slots to each"));
    }
    plan.shard_slots =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(per_shard, std::uint32_t{1} << 31));
    return plan;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryCounters>> MemoryCounters::open(
    const MemoryCountersOptions& options) {
    const absl::StatusOr<Plan> plan = make_plan(options);
    if (!plan.ok()) {
        return plan.status();
    }
    if (sodium_init() < 0) {
        return absl::InternalError("the operating system gives no random numbers");
    }
    const std::uint64_t slots =
        std::uint64_t{plan->shards} * plan->shard_slots + plan->overflow_slots;
    absl::StatusOr<Pages> slot_pages = Pages::reserve(slots * sizeof(Slot));
    if (!slot_pages.ok()) {
        return slot_pages.status();
    }
    absl::StatusOr<Pages> log_pages =
        Pages::reserve(plan->log_bytes / sizeof(Block) * sizeof(Block));
    if (!log_pages.ok()) {
        return log_pages.status();
    }
    const auto blocks = static_cast<std::uint32_t>(plan->log_bytes / sizeof(Block));
    auto tables = std::make_unique<Tables>(
        options.hash_key ? KeyHash(*options.hash_key) : KeyHash(), std::move(*slot_pages),
        std::move(*log_pages), std::min(plan->overflow_slots, blocks / 8));
    tables->shard_count = plan->shards;
    tables->shard_bits = static_cast<unsigned>(std::countr_zero(plan->shards));
    tables->shards = std::make_unique<Shard[]>(plan->shards + 1);
    auto* slot = static_cast<Slot*>(tables->slots.data());
    for (std::uint32_t i = 0; i < plan->shards; ++i, slot += plan->shard_slots) {
        tables->shards[i].table = SlotTable(slot, plan->shard_slots, tables->shard_bits);
    }
    tables->shards[plan->shards].table = SlotTable(slot, plan->overflow_slots, 0);
    tables->bytes =
        tables->slots.bytes() + tables->pool.bytes() + (plan->shards + 1) * sizeof(Shard);
    return std::unique_ptr<MemoryCounters>(new MemoryCounters(std::move(tables)));
}

void MemoryCounters::apply(std::span<const Transaction> transactions, Now now,
                           std::span<Outcome> outcomes) {
    for (std::size_t i = 0; i < transactions.size(); ++i) {
        if (!take_in_slot(*tables_, transactions[i], now, outcomes[i])) {
            TransactionRun(*tables_, transactions[i], now).execute(outcomes[i]);
        }
    }
}

void MemoryCounters::sweep(Now now, std::size_t budget) {
    const std::uint32_t count = tables_->shard_count + 1;
    while (budget != 0) {
        Shard& shard =
            tables_->shards[sweep_shard_.fetch_add(1, std::memory_order_relaxed) % count];
        // A whole shard where the budget allows: its hand then ends where it began.
        std::size_t share = std::min<std::size_t>(budget, shard.table.slot_count());
        budget -= share;
        while (share != 0) {
            const auto stretch =
                static_cast<std::uint32_t>(std::min<std::size_t>(share, sweep_stretch));
            shard.acquire();
            reclaim(shard, tables_->pool, now, {.budget = stretch});
            shard.lock.unlock();
            share -= stretch;
        }
    }
}

CounterStats MemoryCounters::stats() const {
    CounterStats stats;
    stats.bytes = tables_->bytes;
    for (std::uint32_t i = 0; i <= tables_->shard_count; ++i) {
        Shard& shard = tables_->shards[i];
        shard.acquire();
        stats.keys += shard.table.keys();
        stats.evictions += shard.evictions;
        stats.overflowed += shard.overflowed;
        stats.capacity += i < tables_->shard_count ? shard.table.max_keys() : 0;
        shard.lock.unlock();
    }
    return stats;
}

std::uint64_t MemoryCounters::contended() const {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i <= tables_->shard_count; ++i) {
        Shard& shard = tables_->shards[i];
        shard.acquire();
        sum += shard.contended;
        shard.lock.unlock();
    }
    return sum;
}

absl::StatusOr<std::unique_ptr<Counters>> open_memory_counters(
    const MemoryCountersOptions& options) {
    absl::StatusOr<std::unique_ptr<MemoryCounters>> counters = MemoryCounters::open(options);
    if (!counters.ok()) {
        return counters.status();
    }
    return std::unique_ptr<Counters>(*std::move(counters));
}

}  // namespace ration
