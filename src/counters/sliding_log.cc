#include "counters/sliding_log.h"

#include <algorithm>

#include "limits/arithmetic.h"

namespace ration {

Mono SlidingLog::instant_of(std::uint64_t k) const {
    std::uint64_t passed = 0;
    for (std::uint32_t number = first_; number != 0; number = pool_[number].next) {
        const Block& block = pool_[number];
        for (std::uint16_t i = block.begin; i < block.end; ++i) {
            passed += block.units[i];
            if (passed >= k) {
                return Mono(Nanos(block.instants[i]));
            }
        }
    }
    return newest();
}

Mono SlidingLog::newest() const {
    // Units may have been taken off the newest records; an instant that holds none is harmless.
    const Block& last = pool_[pool_[first_].last != 0 ? pool_[first_].last : first_];
    return last.end == 0 ? Mono::min() : Mono(Nanos(last.instants[last.end - 1U]));
}

void SlidingLog::drop_first() {
    const std::uint32_t old = first_;
    Block& next = pool_[pool_[old].next];
    next.total = pool_[old].total;
    next.last = pool_[old].last == pool_[old].next ? 0 : pool_[old].last;
    first_ = pool_[old].next;
    pool_.give(old);
}

void SlidingLog::expire(Mono now, Nanos period) {
    const std::int64_t last_gone = saturating_sub(now.time_since_epoch().count(), period.count());
    for (;;) {
        Block& block = pool_[first_];
        while (block.begin < block.end && block.instants[block.begin] <= last_gone) {
            block.total -= block.units[block.begin];
            ++block.begin;
        }
        if (block.begin < block.end) {
            return;
        }
        if (block.next == 0) {
            block.begin = block.end = 0;
            return;
        }
        drop_first();
    }
}

void SlidingLog::push(Mono now, std::uint32_t units, BlockPool::Use use) {
    std::uint32_t last = pool_[first_].last != 0 ? pool_[first_].last : first_;
    pool_[first_].total += units;
    const std::int64_t instant = now.time_since_epoch().count();
    if (pool_[last].end != 0 && pool_[last].instants[pool_[last].end - 1U] >= instant) {
        pool_[last].units[pool_[last].end - 1U] += units;
        return;
    }
    if (pool_[last].end == Block::records) {
        const std::uint32_t added = pool_.take(use);
        if (added == 0) {
            pool_[last].instants[Block::records - 1] = instant;
            pool_[last].units[Block::records - 1] += units;
            return;
        }
        pool_[last].next = added;
        pool_[first_].last = added;
        last = added;
    }
    Block& block = pool_[last];
    block.instants[block.end] = instant;
    block.units[block.end] = units;
    ++block.end;
}

void SlidingLog::remove(std::uint32_t units, const std::optional<Mono>& taken) {
    if (taken) {
        remove_from(units, *taken);
    } else if (units != 0 && this->units() != 0) {
        const std::uint64_t kept = this->units() - std::min<std::uint64_t>(units, this->units());
        // The newest `units` begin inside the record of this unit: take the rest of it first.
        std::uint64_t passed = 0;
        for (std::uint32_t number = first_; number != 0; number = pool_[number].next) {
            Block& block = pool_[number];
            for (std::uint16_t i = block.begin; i < block.end; ++i) {
                const std::uint64_t stays =
                    passed >= kept ? 0 : std::min<std::uint64_t>(kept - passed, block.units[i]);
                passed += block.units[i];
                block.units[i] = static_cast<std::uint32_t>(stays);
            }
        }
        pool_[first_].total = static_cast<std::uint32_t>(kept);
    }
}

void SlidingLog::remove_from(std::uint32_t units, Mono taken) {
    const std::int64_t instant = taken.time_since_epoch().count();
    for (std::uint32_t number = first_; number != 0 && units != 0; number = pool_[number].next) {
        Block& block = pool_[number];
        for (std::uint16_t i = block.begin; i < block.end && units != 0; ++i) {
            if (block.instants[i] >= instant) {
                const std::uint32_t gone = std::min(units, block.units[i]);
                block.units[i] -= gone;
                pool_[first_].total -= gone;
                units -= gone;
            }
        }
    }
}

void SlidingLog::clear() {
    std::uint32_t number = pool_[first_].next;
    while (number != 0) {
        const std::uint32_t next = pool_[number].next;
        pool_.give(number);
        number = next;
    }
    pool_[first_] = Block{};
}

void SlidingLog::release() {
    while (first_ != 0) {
        const std::uint32_t next = pool_[first_].next;
        pool_.give(first_);
        first_ = next;
    }
}

}  // namespace ration
