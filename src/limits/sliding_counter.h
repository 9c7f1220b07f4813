// The sliding counter: two window counts, the older weighted by the part of it still in sight.
//
// At t in the window [start, start + P) the use is used + before * (start + P - t) / P, exactly. It
// only falls as time passes and does not jump at the edge, where `used` becomes `before` with full
// weight; so the first instant at which a cost fits is found by solving for the weight.
#pragma once

#include <algorithm>
#include <cstdint>

#include "limits/arithmetic.h"
#include "limits/use.h"

namespace ration {

class SlidingCounter {
public:
    SlidingCounter(const LimitRef::Entry& numbers, Use& use, Wall now);

    // Whole units in use, rounded up.
    [[nodiscard]] std::uint64_t in_use() const { return use_.used + weighted_before(); }
    [[nodiscard]] bool fits(std::uint32_t cost) const { return in_use() + cost <= limit_.amount; }
    void take(std::uint32_t cost) { use_.used = saturating_add(use_.used, cost); }
    // Lowers the window that holds `taken`.
    void give_back(std::uint32_t cost, Wall taken);
    // First nanosecond, from now, at which `cost` (at most the amount) fits.
    [[nodiscard]] Nanos wait(std::uint64_t cost) const;
    [[nodiscard]] Nanos until_unused() const;
    [[nodiscard]] Level level(Verdict verdict, std::uint32_t cost) const;

private:
    // What is left of the running window; all of it for a reading from before it.
    [[nodiscard]] std::int64_t left() const {
        return std::min(period_, saturating_sub(saturating_add(use_.as_of, period_), now_));
    }
    [[nodiscard]] std::uint64_t weighted_before() const {
        return static_cast<std::uint64_t>(mul_div_ceil(
            use_.before, static_cast<std::uint64_t>(left()), static_cast<std::uint64_t>(period_)));
    }

    const Limit& limit_;
    Use& use_;
    std::int64_t now_;
    std::int64_t period_;
};

}  // namespace ration
