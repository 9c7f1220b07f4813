// The sliding window: any span of `period` holds at most `amount` units, one record per unit.
//
// The records themselves live in a store; this is the arithmetic over any of them. A `Log` has
//   units()            units recorded, the expired ones already dropped
//   instant_of(k)      when the k-th oldest unit (from 1) was taken, k at most units()
//   newest()           when the newest unit was taken, units() above 0
// A unit whose age is exactly the period no longer counts. `pending` are units taken now and not
// yet recorded. Runs on the monotonic clock: its spans begin at no date.
#pragma once

#include <cstdint>

#include "limits/arithmetic.h"
#include "ration/limit.h"
#include "ration/time.h"

namespace ration {

template <typename Log>
class LogView {
public:
    LogView(const Limit& limit, const Log& log, std::uint64_t pending, Mono now)
        : limit_(limit), log_(log), pending_(pending), now_(now) {}

    [[nodiscard]] std::uint64_t in_use() const { return log_.units() + pending_; }
    [[nodiscard]] bool fits(std::uint32_t cost) const { return in_use() + cost <= limit_.amount; }

    // First nanosecond, from now, at which `cost` (at most the amount) fits.
    [[nodiscard]] Nanos wait(std::uint64_t cost) const {
        if (in_use() + cost <= limit_.amount) {
            return Nanos{0};
        }
        return until_gone(in_use() + cost - limit_.amount);
    }

    [[nodiscard]] Level level(Verdict verdict, std::uint32_t cost) const {
        Level level;
        level.verdict = verdict;
        level.limit = limit_.amount;
        level.used = in_use();
        level.remaining = level.used < level.limit ? level.limit - level.used : 0;
        if (verdict == Verdict::refused) {
            level.wait = wait(cost);
        }
        if (level.used != 0) {
            level.next = limit_.amount == 0 ? Nanos{0} : wait(level.remaining + 1);
            level.reset = pending_ != 0 ? limit_.period : expiry(log_.newest());
        }
        return level;
    }

private:
    [[nodiscard]] Nanos expiry(Mono taken) const {
        return Nanos(
            saturating_sub(saturating_add(taken.time_since_epoch().count(), limit_.period.count()),
                           now_.time_since_epoch().count()));
    }
    // Until the `count` oldest units have left.
    [[nodiscard]] Nanos until_gone(std::uint64_t count) const {
        return count > log_.units() ? limit_.period : expiry(log_.instant_of(count));
    }

    const Limit& limit_;
    const Log& log_;
    std::uint64_t pending_;
    Mono now_;
};

}  // namespace ration
