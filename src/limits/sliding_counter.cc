#include "limits/sliding_counter.h"

namespace ration {

SlidingCounter::SlidingCounter(const LimitRef::Entry& numbers, Use& use, Wall now)
    : limit_(numbers.limit),
      use_(use),
      now_(now.time_since_epoch().count()),
      period_(numbers.limit.period.count()) {
    if (use_.used == 0 && use_.before == 0) {
        use_.as_of = floor_to(now_, period_);
        return;
    }
    const std::int64_t passed = saturating_sub(now_, use_.as_of);
    if (passed >= saturating_add(period_, period_) || (passed >= period_ && use_.used == 0)) {
        use_ = {.as_of = floor_to(now_, period_)};
    } else if (passed >= period_) {
        use_ = {.as_of = use_.as_of + period_, .used = 0, .before = use_.used};
    }
}

void SlidingCounter::give_back(std::uint32_t cost, Wall taken) {
    const std::int64_t when = taken.time_since_epoch().count();
    if (when >= use_.as_of) {
        use_.used -= std::min(use_.used, cost);
    } else if (when >= saturating_sub(use_.as_of, period_)) {
        use_.before -= std::min(use_.before, cost);
    }
}

Nanos SlidingCounter::wait(std::uint64_t cost) const {
    const auto period = static_cast<std::uint64_t>(period_);
    const std::int64_t end = saturating_sub(saturating_add(use_.as_of, period_), now_);
    if (use_.used + cost <= limit_.amount) {
        // Inside the running window, when the older one's weight has fallen to the free room.
        if (use_.before == 0) {
            return Nanos{0};
        }
        const std::uint64_t room = limit_.amount - use_.used - cost;
        return Nanos(std::max<std::int64_t>(
            0, saturating_sub(end, std::min(period_, mul_div_floor(room, period, use_.before)))));
    }
    // In the next window, where what is used now is the older count.
    const std::uint64_t room = limit_.amount - cost;
    const std::int64_t in_sight = std::min(period_, mul_div_floor(room, period, use_.used));
    return Nanos(saturating_add(end, period_ - in_sight));
}

Nanos SlidingCounter::until_unused() const {
    const std::int64_t end = saturating_sub(saturating_add(use_.as_of, period_), now_);
    if (use_.used != 0) {
        return Nanos(saturating_add(end, period_));
    }
    return use_.before != 0 ? Nanos(end) : Nanos{0};
}

Level SlidingCounter::level(Verdict verdict, std::uint32_t cost) const {
    Level level;
    level.verdict = verdict;
    level.limit = limit_.amount;
    level.used = in_use();
    level.remaining = level.used < level.limit ? level.limit - level.used : 0;
    if (verdict == Verdict::refused) {
        level.wait = wait(cost);
    }
    if (level.used != 0 && level.remaining < level.limit) {
        level.next = wait(level.remaining + 1);
    }
    level.reset = until_unused();
    return level;
}

}  // namespace ration
