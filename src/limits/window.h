// The fixed window: a count and the start of the window it belongs to.
//
// Windows are [k * period, (k + 1) * period) since 1970-01-01T00:00:00Z: the edge is in the new
// one. A reading from before the stored window counts as its first instant.
#pragma once

#include <algorithm>
#include <cstdint>

#include "limits/arithmetic.h"
#include "limits/use.h"

namespace ration {

class Window {
public:
    Window(const LimitRef::Entry& numbers, Use& use, Wall now)
        : limit_(numbers.limit), use_(use), now_(now.time_since_epoch().count()) {
        const std::int64_t period = limit_.period.count();
        if (use_.used == 0 || now_ >= saturating_add(use_.as_of, period)) {
            use_ = {.as_of = floor_to(now_, period)};
        }
    }

    [[nodiscard]] bool fits(std::uint32_t cost) const {
        return std::uint64_t{use_.used} + cost <= limit_.amount;
    }
    void take(std::uint32_t cost) { use_.used = saturating_add(use_.used, cost); }
    void give_back(std::uint32_t cost) { use_.used -= std::min(use_.used, cost); }

    [[nodiscard]] bool holds(Wall moment) const {
        return moment.time_since_epoch().count() >= use_.as_of;
    }

    [[nodiscard]] Nanos until_end() const {
        return Nanos(saturating_sub(saturating_add(use_.as_of, limit_.period.count()), now_));
    }

    [[nodiscard]] Level level(Verdict verdict) const {
        Level level;
        level.verdict = verdict;
        level.limit = limit_.amount;
        level.used = use_.used;
        level.remaining = level.used < level.limit ? level.limit - level.used : 0;
        level.reset = until_end();
        level.wait = verdict == Verdict::refused ? level.reset : Nanos{0};
        level.next = use_.used != 0 ? level.reset : Nanos{0};
        return level;
    }

private:
    const Limit& limit_;
    Use& use_;
    std::int64_t now_;
};

}  // namespace ration
