// One shard of the memory counters, and all of them together.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "counters/block_pool.h"
#include "counters/key_hash.h"
#include "counters/pages.h"
#include "counters/slot_table.h"
#include "counters/spin_lock.h"
#include "limits/arithmetic.h"
#include "limits/use.h"

namespace ration {

// Everything but the lock is read and written under the lock.
struct alignas(128) Shard {
    SpinLock lock;
    SlotTable table{nullptr, SlotTable::margin, 0};
    std::uint32_t hand = 0;  // the sweep's next slot
    // One pass of the hand over the whole shard that found nothing to drop says until when no
    // other pass can.
    std::uint32_t pass_slots = 0;
    Nanos pass_earliest = Nanos::max();
    Mono hopeless_until = Mono::min();
    std::uint64_t evictions = 0;
    std::uint64_t overflowed = 0;
    std::uint64_t contended = 0;

    void acquire() {
        const bool waited = lock.lock();
        contended += waited ? 1 : 0;
    }
    // Some key's use shrank other than by time passing.
    void hope() {
        pass_slots = 0;
        pass_earliest = Nanos::max();
        hopeless_until = Mono::min();
    }
};

struct Tables {
    KeyHash hash;
    Pages slots;
    BlockPool pool;
    std::unique_ptr<Shard[]> shards;  // one more than `shard_count`: the overflow buckets
    std::uint32_t shard_count = 1;
    unsigned shard_bits = 0;
    std::uint64_t bytes = 0;
    // Sync point of tests that force a race: called between judging and storing.
    void (*while_locked)() = nullptr;
    std::atomic<bool> overflow_used{false};  // set once, under the overflow shard's lock

    Tables(KeyHash key_hash, Pages slot_pages, Pages log_pages, std::uint32_t reserved_blocks)
        : hash(key_hash),
          slots(std::move(slot_pages)),
          pool(std::move(log_pages), reserved_blocks) {}

    [[nodiscard]] std::uint32_t shard_of(std::uint64_t key) const {
        return shard_bits == 0 ? 0 : static_cast<std::uint32_t>(key >> (64 - shard_bits));
    }
};

// The use a slot stands for; a sliding window's has only `as_of`.
[[nodiscard]] Use use_in(const Slot& slot, const LimitRef::Entry& numbers, BlockPool& pool);

// Frees the slot at `position` and its blocks.
void drop(Shard& shard, std::uint32_t position, BlockPool& pool);

struct Reclaim {
    std::uint32_t budget;                      // slots to look at, at most
    std::span<const std::uint64_t> keep = {};  // hashes of those that stay
};
// Looks at slots from the hand on and drops those that are back to never-seen. Returns how many.
std::uint32_t reclaim(Shard& shard, BlockPool& pool, Now now, const Reclaim& what);

}  // namespace ration
