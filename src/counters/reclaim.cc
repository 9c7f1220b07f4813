// Dropping keys that carry no information any more.
//
// A clock hand walks each shard: a few slots on every insertion into a shard more than half full,
// up to `make_room`'s budget when one is full, and as many as `sweep` is told. At the bound a pass
// that found nothing is not repeated before the first moment at which it could find something, so
// a flood of newcomers costs each of them a glance, not a scan.
#include <algorithm>

#include "counters/shard.h"
#include "counters/sliding_log.h"
#include "limits/arithmetic.h"

namespace ration {

namespace {

// Wall time may jump forward, so a pass is believed for a second at most.
constexpr Nanos max_belief = std::chrono::seconds(1);

Nanos until_droppable(const Slot& slot, BlockPool& pool, Now now) {
    const LimitRef::Entry& numbers = LimitRef::from_id(slot.limit).entry();
    if (numbers.limit.kind == LimitKind::sliding_window) {
        const std::int64_t age = saturating_sub(now.mono.time_since_epoch().count(), slot.as_of);
        return Nanos(std::max<std::int64_t>(0, saturating_sub(numbers.limit.period.count(), age)));
    }
    return until_unused(numbers, use_in(slot, numbers, pool), now);
}

bool is_in(std::span<const std::uint64_t> hashes, std::uint64_t hash) {
    return std::find(hashes.begin(), hashes.end(), hash) != hashes.end();
}

void note_pass(Shard& shard, Now now) {
    if (++shard.pass_slots < shard.table.slot_count()) {
        return;
    }
    const Nanos wait = std::min(shard.pass_earliest, max_belief);
    shard.hope();
    shard.hopeless_until = now.mono + wait;
}

}  // namespace

Use use_in(const Slot& slot, const LimitRef::Entry& numbers, BlockPool& pool) {
    if (numbers.limit.kind == LimitKind::sliding_counter) {
        const Block& block = pool[slot.used];
        return {.as_of = slot.as_of, .used = block.units[0], .before = block.units[1]};
    }
    return {.as_of = slot.as_of, .used = slot.used};
}

void drop(Shard& shard, std::uint32_t position, BlockPool& pool) {
    const Slot& slot = shard.table.at(position);
    const LimitKind kind = LimitRef::from_id(slot.limit)->kind;
    if (kind == LimitKind::sliding_window) {
        SlidingLog(pool, slot.used).release();
    } else if (kind == LimitKind::sliding_counter) {
        pool.give(slot.used);
    }
    shard.table.erase(position);
}

std::uint32_t reclaim(Shard& shard, BlockPool& pool, Now now, const Reclaim& what) {
    std::uint32_t dropped = 0;
    for (std::uint32_t budget = what.budget; budget != 0; --budget) {
        if (shard.hand >= shard.table.slot_count()) {
            shard.hand = 0;
        }
        const Slot& slot = shard.table.at(shard.hand);
        if (slot.hash != 0) {
            const Nanos left = until_droppable(slot, pool, now);
            if (left == Nanos{0} && !is_in(what.keep, slot.hash)) {
                drop(shard, shard.hand, pool);
                shard.hope();
                ++shard.evictions;
                ++dropped;
                continue;  // its successor may have moved here
            }
            shard.pass_earliest = std::min(shard.pass_earliest, left);
        }
        ++shard.hand;
        note_pass(shard, now);
    }
    return dropped;
}

}  // namespace ration
