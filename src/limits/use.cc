// One switch over the kinds; the arithmetic of each is in its own header.
#include "limits/use.h"

#include <algorithm>
#include <limits>

#include "limits/arithmetic.h"
#include "limits/bucket.h"
#include "limits/sliding_counter.h"
#include "limits/window.h"

namespace ration {

namespace {

constexpr std::uint32_t uint32_max = std::numeric_limits<std::uint32_t>::max();

// A limit on how many are in flight: no clock, a slot comes free when it is given back.
Level in_flight_level(const Limit& limit, const Use& use, Verdict verdict) {
    Level level;
    level.verdict = verdict;
    level.limit = limit.amount;
    level.used = use.used;
    level.remaining = level.used < level.limit ? level.limit - level.used : 0;
    return level;
}

Verdict verdict_of(const Limit& limit, bool fits, std::uint32_t cost) {
    if (cost == 0 || fits) {
        return Verdict::admitted;
    }
    return cost > limit.capacity ? Verdict::never : Verdict::refused;
}

// Whether this verdict charges: admitted ones do; refused ones where attempts count.
bool charges(const Limit& limit, Verdict verdict) {
    return verdict == Verdict::admitted || (limit.count_attempts && verdict == Verdict::refused);
}

Nanos not_below_zero(std::int64_t nanos) {
    return Nanos(std::max<std::int64_t>(0, nanos));
}

// A part of a token: `parts` of `of`.
struct Part {
    std::uint64_t parts = 0;
    std::uint64_t of = 1;
};

// What a bucket without refill keeps of the next token; see `Use`.
constexpr auto resting_parts = static_cast<std::uint64_t>(max_period.count());

Part resting_part(const Use& use) {
    const bool kept = use.as_of < 0 && use.as_of > -max_period.count();
    return {.parts = kept ? static_cast<std::uint64_t>(-use.as_of) : 0, .of = resting_parts};
}

// A bucket's debt is a whole number of tokens less the part that was earned of one. The whole
// number stays; the part becomes the time in which the new rate earns as much of a token. (Dividing
// twice and rounding down each time rounds down once.)
Use carry_bucket(const ChangedNumbers& numbers, Use use, Now at) {
    const bool rested = numbers.from.rate_tokens == 0;
    const Bucket bucket(numbers.from, use, at.mono);
    const auto owed = static_cast<std::uint32_t>(bucket.owed());
    const Part part = rested ? resting_part(use)
                             : Part{.parts = bucket.part_earned(), .of = numbers.from.rate_nanos};
    if (owed == 0) {
        return {};
    }
    if (numbers.to.rate_tokens == 0) {
        return {.as_of = -mul_div_floor(part.parts, resting_parts, part.of), .used = owed};
    }
    const std::int64_t earning = mul_div_floor(part.parts, numbers.to.rate_nanos, part.of) /
                                 static_cast<std::int64_t>(numbers.to.rate_tokens);
    return {.as_of = saturating_sub(at.mono.time_since_epoch().count(), earning), .used = owed};
}

// Both counts stay, and so does the part of the window that is over: the older count keeps its
// weight. Such windows begin at no edge until the use has run out.
Use carry_counter(const ChangedNumbers& numbers, Use use, Now at) {
    const SlidingCounter counter(numbers.from, use, at.wall);
    if (counter.in_use() == 0) {
        return {};
    }
    const std::int64_t now = at.wall.time_since_epoch().count();
    const std::int64_t over = saturating_sub(now, use.as_of);
    if (over > 0) {
        const std::int64_t scaled =
            mul_div_floor(static_cast<std::uint64_t>(over),
                          static_cast<std::uint64_t>(numbers.to.limit.period.count()),
                          static_cast<std::uint64_t>(numbers.from.limit.period.count()));
        use.as_of = saturating_sub(now, scaled);
    }
    return use;
}

}  // namespace

Level take(const LimitRef::Entry& numbers, Use& use, std::uint32_t cost, Now now) {
    const Limit& limit = numbers.limit;
    switch (limit.kind) {
        case LimitKind::token_bucket: {
            Bucket bucket(numbers, use, now.mono);
            const Verdict verdict = verdict_of(limit, bucket.fits(cost), cost);
            if (verdict == Verdict::admitted && cost != 0) {
                bucket.take(cost);
            }
            return bucket.level(verdict, cost);
        }
        case LimitKind::fixed_window: {
            Window window(numbers, use, now.wall);
            const Verdict verdict = verdict_of(limit, window.fits(cost), cost);
            if (charges(limit, verdict)) {
                window.take(cost);
            }
            return window.level(verdict);
        }
        case LimitKind::sliding_counter: {
            SlidingCounter counter(numbers, use, now.wall);
            const Verdict verdict = verdict_of(limit, counter.fits(cost), cost);
            const Nanos wait = verdict == Verdict::refused ? counter.wait(cost) : Nanos{0};
            if (charges(limit, verdict)) {
                counter.take(cost);
            }
            Level level = counter.level(verdict, cost);
            // Where the refused attempt was counted, it waits for itself as well.
            level.wait = limit.count_attempts ? level.wait : wait;
            return level;
        }
        case LimitKind::concurrency: {
            const bool fits = std::uint64_t{use.used} + cost <= limit.amount;
            const Verdict verdict = verdict_of(limit, fits, cost);
            if (verdict == Verdict::admitted) {
                use.used += cost;
            }
            return in_flight_level(limit, use, verdict);
        }
        case LimitKind::sliding_window:
            break;
    }
    return Level{.verdict = Verdict::never};
}

Level observe(const LimitRef::Entry& numbers, Use use, std::uint32_t cost, Now now) {
    const Limit& limit = numbers.limit;
    switch (limit.kind) {
        case LimitKind::token_bucket: {
            const Bucket bucket(numbers, use, now.mono);
            return bucket.level(verdict_of(limit, bucket.fits(cost), cost), cost);
        }
        case LimitKind::fixed_window: {
            const Window window(numbers, use, now.wall);
            return window.level(verdict_of(limit, window.fits(cost), cost));
        }
        case LimitKind::sliding_counter: {
            const SlidingCounter counter(numbers, use, now.wall);
            return counter.level(verdict_of(limit, counter.fits(cost), cost), cost);
        }
        case LimitKind::concurrency: {
            const bool fits = std::uint64_t{use.used} + cost <= limit.amount;
            return in_flight_level(limit, use, verdict_of(limit, fits, cost));
        }
        case LimitKind::sliding_window:
            break;
    }
    return Level{.verdict = Verdict::never};
}

Level force(const LimitRef::Entry& numbers, Use& use, std::uint32_t cost, Now now) {
    switch (numbers.limit.kind) {
        case LimitKind::token_bucket:
            if (cost != 0) {
                Bucket(numbers, use, now.mono).take(cost);
            }
            break;
        case LimitKind::fixed_window:
            Window(numbers, use, now.wall).take(cost);
            break;
        case LimitKind::sliding_counter:
            SlidingCounter(numbers, use, now.wall).take(cost);
            break;
        case LimitKind::concurrency:
            use.used = saturating_add(use.used, cost);
            break;
        case LimitKind::sliding_window:
            break;
    }
    return observe(numbers, use, 0, now);
}

Level give_back(const LimitRef::Entry& numbers, Use& use, const GivenBack& units, Now now) {
    const auto& [cost, taken] = units;
    switch (numbers.limit.kind) {
        case LimitKind::token_bucket:
            Bucket(numbers, use, now.mono).give_back(cost);
            break;
        case LimitKind::fixed_window: {
            Window window(numbers, use, now.wall);
            if (!taken || window.holds(taken->wall)) {
                window.give_back(cost);
            }
            break;
        }
        case LimitKind::sliding_counter: {
            SlidingCounter counter(numbers, use, now.wall);
            counter.give_back(cost, taken ? taken->wall : Wall::max());
            break;
        }
        case LimitKind::concurrency:
            use.used -= std::min(use.used, cost);
            break;
        case LimitKind::sliding_window:
            break;
    }
    return observe(numbers, use, 0, now);
}

Nanos until_unused(const LimitRef::Entry& numbers, const Use& use, Now now) {
    const Limit& limit = numbers.limit;
    switch (limit.kind) {
        case LimitKind::token_bucket: {
            const std::int64_t elapsed =
                saturating_sub(now.mono.time_since_epoch().count(), use.as_of);
            if (use.used != 0 && numbers.rate_tokens == 0) {
                return Nanos::max();
            }
            const std::int64_t full = mul_div_ceil(use.used, numbers.rate_nanos,
                                                   std::max<std::uint64_t>(1, numbers.rate_tokens));
            return use.used == 0 ? Nanos{0} : not_below_zero(saturating_sub(full, elapsed));
        }
        case LimitKind::fixed_window:
            return use.used == 0 ? Nanos{0}
                                 : not_below_zero(saturating_sub(
                                       saturating_add(use.as_of, limit.period.count()),
                                       now.wall.time_since_epoch().count()));
        case LimitKind::sliding_counter: {
            Use copy = use;
            return SlidingCounter(numbers, copy, now.wall).until_unused();
        }
        case LimitKind::concurrency:
            return use.used == 0 ? Nanos{0} : Nanos::max();
        case LimitKind::sliding_window:
            break;
    }
    return Nanos::max();
}

std::uint32_t units_in_use(const LimitRef::Entry& numbers, const Use& use, Now at) {
    const std::uint64_t used = observe(numbers, use, 0, at).used;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(used, uint32_max));
}

Use use_of(const LimitRef::Entry& numbers, std::uint32_t units, Now at) {
    if (units == 0) {
        return {};
    }
    if (numbers.limit.kind == LimitKind::token_bucket) {
        return {.as_of = at.mono.time_since_epoch().count(), .used = units};
    }
    if (numbers.limit.kind == LimitKind::concurrency) {
        return {};
    }
    return {.as_of = floor_to(at.wall.time_since_epoch().count(), numbers.limit.period.count()),
            .used = units};
}

Now change_moment(Now now, Mono since, Mono written) {
    const Mono at = std::max(std::min(since, now.mono), written);
    const std::int64_t ago =
        saturating_sub(now.mono.time_since_epoch().count(), at.time_since_epoch().count());
    return {at, Wall(Nanos(saturating_sub(now.wall.time_since_epoch().count(), ago)))};
}

Use carry(const ChangedNumbers& numbers, const Use& use, Now now) {
    const Limit& from = numbers.from.limit;
    const Limit& to = numbers.to.limit;
    if (from.kind == LimitKind::concurrency || to.kind == LimitKind::concurrency) {
        return from.kind == to.kind ? use : Use{};
    }
    if (from.kind == LimitKind::token_bucket) {
        if (to.kind == from.kind && numbers.from.rate_tokens == numbers.to.rate_tokens &&
            numbers.from.rate_nanos == numbers.to.rate_nanos) {
            return use;
        }
        const Now at = change_moment(now, numbers.since, Mono(Nanos(use.as_of)));
        if (to.kind == from.kind) {
            return carry_bucket(numbers, use, at);
        }
        return use_of(numbers.to, units_in_use(numbers.from, use, at), at);
    }
    if (from.kind == to.kind && from.period == to.period) {
        return use;
    }
    // A window that began after the change was written under the old numbers all the same.
    Now at = change_moment(now, numbers.since, Mono::min());
    const Wall begun{Nanos(use.as_of)};
    if (at.wall < begun) {
        at = change_moment(now, now.mono - (now.wall - std::min(begun, now.wall)), Mono::min());
    }
    if (to.kind == from.kind && to.kind == LimitKind::sliding_counter) {
        return carry_counter(numbers, use, at);
    }
    std::uint32_t units = units_in_use(numbers.from, use, at);
    if (to.kind != from.kind && from.count_attempts) {
        // Only attempts that were admitted are use; the rest was counted to refuse.
        units = static_cast<std::uint32_t>(std::min<std::uint64_t>(units, from.amount));
    }
    return use_of(numbers.to, units, at);
}

}  // namespace ration
