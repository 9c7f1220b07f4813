// The token bucket, exact for ever.
//
// Problem: refill is a rational number of tokens per nanosecond; neither a double nor a count of
// nanoseconds per token holds it. Idea: keep what was owed as a whole number of tokens at a whole
// nanosecond. With the rate in lowest terms, P tokens per Q nanoseconds, what is owed at t is
//
//     max(0, used - (t - as_of) * P / Q)
//
// Taking only adds to `used`; an empty debt starts again at t. Every Q nanoseconds earn exactly P
// tokens, so both numbers can be moved on by whole steps without rounding, and `used` stays
// below capacity + P plus what was charged by force. Comparing whole tokens with a rational needs
// only its floor.
#pragma once

#include <algorithm>
#include <cstdint>

#include "limits/arithmetic.h"
#include "limits/use.h"

namespace ration {

// A bucket's use at one moment; brings the use up to date when made.
class Bucket {
public:
    Bucket(const LimitRef::Entry& numbers, Use& use, Mono now)
        : numbers_(numbers), use_(use), now_(now.time_since_epoch().count()) {
        bring_up_to_date();
    }

    // Whole tokens owed, rounded up.
    [[nodiscard]] std::uint64_t owed() const { return use_.used - earned_; }
    [[nodiscard]] bool fits(std::uint32_t cost) const {
        return owed() + cost <= numbers_.limit.capacity;
    }

    // What does not fit is owed past the capacity.
    void take(std::uint32_t cost) {
        if (use_.used == 0) {
            use_.as_of = now_;
            elapsed_ = 0;
        }
        use_.used = saturating_add(use_.used, cost);
    }

    void give_back(std::uint32_t cost) {
        if (owed() <= cost) {
            clear();
        } else {
            use_.used -= cost;
        }
    }

    // What has been earned of the next whole token, in 1 / rate_nanos tokens. (With one token a
    // step nothing whole is earned inside it.)
    [[nodiscard]] std::uint64_t part_earned() const {
        if (use_.used == 0 || elapsed_ <= 0) {
            return 0;
        }
        return static_cast<std::uint64_t>(static_cast<u128>(elapsed_) * numbers_.rate_tokens %
                                          numbers_.rate_nanos);
    }

    // First nanosecond, from now, at which `cost` (at most the capacity) fits.
    [[nodiscard]] Nanos wait(std::uint64_t cost) const {
        return until_earned(use_.used + cost - numbers_.limit.capacity);
    }

    [[nodiscard]] Level level(Verdict verdict, std::uint32_t cost) const {
        const std::uint64_t capacity = numbers_.limit.capacity;
        Level level;
        level.verdict = verdict;
        level.limit = capacity;
        level.used = owed();
        level.remaining = level.used < capacity ? capacity - level.used : 0;
        if (verdict == Verdict::refused) {
            level.wait = wait(cost);
        }
        if (use_.used != 0) {
            level.next = capacity == 0 ? Nanos{0} : wait(level.remaining + 1);
            level.reset = until_earned(use_.used);
        }
        return level;
    }

private:
    // From now until `tokens` have been earned since `as_of`.
    [[nodiscard]] Nanos until_earned(std::uint64_t tokens) const {
        if (numbers_.rate_tokens == 0) {
            return Nanos(int64_max);
        }
        return Nanos(saturating_sub(mul_div_ceil(tokens, numbers_.rate_nanos, numbers_.rate_tokens),
                                    elapsed_));
    }

    void clear() {
        use_ = Use{};
        earned_ = 0;
        elapsed_ = 0;
    }

    void bring_up_to_date() {
        if (use_.used == 0 || numbers_.rate_tokens == 0) {
            return;
        }
        elapsed_ = saturating_sub(now_, use_.as_of);
        const auto step = static_cast<std::int64_t>(numbers_.rate_nanos);
        if (elapsed_ >= step) {
            const std::int64_t steps = elapsed_ / step;
            std::uint64_t whole = 0;
            if (__builtin_mul_overflow(static_cast<std::uint64_t>(steps), numbers_.rate_tokens,
                                       &whole) ||
                whole >= use_.used) {
                return clear();
            }
            use_.used -= static_cast<std::uint32_t>(whole);
            use_.as_of += steps * step;
            elapsed_ -= steps * step;
        }
        if (elapsed_ > 0 && numbers_.rate_tokens > 1) {
            earned_ = static_cast<std::uint64_t>(mul_div_floor(
                static_cast<std::uint64_t>(elapsed_), numbers_.rate_tokens, numbers_.rate_nanos));
            if (earned_ >= use_.used) {
                clear();
            }
        }
    }

    const LimitRef::Entry& numbers_;
    Use& use_;
    std::int64_t now_;
    std::int64_t elapsed_ = 0;  // since `as_of`; negative for a reading older than that
    std::uint64_t earned_ = 0;  // whole tokens earned in `elapsed_`
};

}  // namespace ration
