// Random limits, costs and times against the slow exact oracle: verdicts, numbers, and each told
// moment from both sides, one nanosecond apart. Transactions of several limits are all or nothing.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "counters/oracle.h"
#include "ration/counters.h"

namespace ration {
namespace {

// A thousand runs of each property unless the environment says otherwise (RC_PARAMS=seed=...).
[[maybe_unused]] const int runs_set = setenv("RC_PARAMS", "max_success=1000", 0);

// Both clocks start at a window edge of every period used here: 0.
Now at_ns(std::int64_t ns) {
    return {Mono(Nanos(ns)), Wall(Nanos(ns))};
}

std::unique_ptr<Counters> open() {
    return *open_memory_counters({.max_bytes = min_counter_bytes, .log_bytes = min_log_bytes});
}

Limit any_limit() {
    const auto kind = *rc::gen::element(LimitKind::token_bucket, LimitKind::fixed_window,
                                        LimitKind::sliding_window, LimitKind::sliding_counter);
    const std::uint64_t amount = *rc::gen::inRange<std::uint64_t>(1, 40);
    // Short odd periods, whole seconds, and years.
    const Nanos period =
        *rc::gen::oneOf(rc::gen::map(rc::gen::inRange<std::int64_t>(40'000, 1'000'000),
                                     [](auto n) { return Nanos(n); }),
                        rc::gen::map(rc::gen::inRange<std::int64_t>(1, 100),
                                     [](auto n) { return Nanos(std::chrono::seconds(n)); }),
                        rc::gen::map(rc::gen::inRange<std::int64_t>(1, 3653),
                                     [](auto n) { return Nanos(std::chrono::hours(24) * n); }));
    switch (kind) {
        case LimitKind::fixed_window:
            return fixed_window(amount, period);
        case LimitKind::sliding_window:
            return sliding_window(amount, period);
        case LimitKind::sliding_counter:
            return sliding_counter(amount, period);
        case LimitKind::token_bucket:
        case LimitKind::concurrency:
            break;
    }
    // Twenty periods to be full again, at most: 200 years.
    return token_bucket(
        amount, period,
        *rc::gen::inRange<std::uint64_t>(1, std::min<std::uint64_t>(60, 20 * amount)));
}

// Tests stay below this, so that no told moment is past what nanoseconds can say (292 years).
constexpr std::int64_t last_moment = std::int64_t{3} << 60;

// A pause that means something to `limit`: nothing, a nanosecond, a part or some of its periods.
std::int64_t any_pause(const Limit& limit) {
    const std::int64_t period = limit.period.count();
    const auto part = *rc::gen::inRange<std::int64_t>(0, 300);
    return *rc::gen::element<std::int64_t>(
        0, 0, 1, period / static_cast<std::int64_t>(limit.amount), period / 1000 * part / 4,
        period - 1, period, period / 100 * part);
}

// `told` is the first moment at which `holds`.
template <typename Holds>
void check_first(Nanos told, std::int64_t now, const Holds& holds) {
    RC_ASSERT(told > Nanos{0});
    RC_ASSERT(holds(now + told.count()));
    RC_ASSERT(!holds(now + told.count() - 1));
}

void check_level(const Level& level, const Oracle& oracle, std::int64_t now, std::uint64_t cost) {
    const Limit& limit = oracle.limit();
    const std::uint64_t used = oracle.whole_used(now);
    RC_ASSERT(level.limit == limit.capacity);
    RC_ASSERT(level.used == used);
    RC_ASSERT(level.remaining == (used < limit.capacity ? limit.capacity - used : 0));
    if (level.verdict == Verdict::refused) {
        check_first(level.wait, now, [&](std::int64_t t) { return oracle.fits(t, cost); });
    } else {
        RC_ASSERT(level.wait == Nanos{0});
    }
    if (used == 0) {
        RC_ASSERT(level.next == Nanos{0});
    } else if (limit.kind != LimitKind::concurrency) {
        check_first(level.next, now,
                    [&](std::int64_t t) { return oracle.fits(t, level.remaining + 1); });
    }
    if (limit.kind == LimitKind::fixed_window) {
        RC_ASSERT(level.reset.count() == limit.period.count() - now % limit.period.count());
    } else if (used != 0) {
        check_first(level.reset, now, [&](std::int64_t t) { return oracle.used(t) == 0; });
    } else {
        RC_ASSERT(level.reset == Nanos{0});
    }
}

RC_GTEST_PROP(CountersProperty, OneKeyDoesWhatTheOracleSays, ()) {
    const auto counters = open();
    const Limit numbers = any_limit();
    const LimitRef limit = *LimitRef::of(numbers);
    Oracle oracle(numbers);
    std::int64_t now = *rc::gen::inRange<std::int64_t>(0, numbers.period.count());
    const int steps = *rc::gen::inRange(1, 60);
    for (int i = 0; i < steps && now < last_moment; ++i) {
        now += any_pause(numbers);
        const auto cost =
            *rc::gen::inRange<std::uint32_t>(0, static_cast<std::uint32_t>(numbers.capacity) + 2);
        const bool look = *rc::gen::inRange(0, 5) == 0;
        const Charge charge{.key = "rule/key",
                            .rule_bytes = 5,
                            .op = look ? ChargeOp::observe : ChargeOp::take,
                            .cost = cost,
                            .limit = limit};
        const bool fits = oracle.fits(now, cost);
        const Outcome outcome = counters->apply_one({.charges = {&charge, 1}}, at_ns(now));
        const Verdict expected = fits                      ? Verdict::admitted
                                 : cost > numbers.capacity ? Verdict::never
                                                           : Verdict::refused;
        RC_ASSERT(outcome.levels[0].verdict == expected);
        if (fits && !look) {
            oracle.take(now, cost);
        }
        check_level(outcome.levels[0], oracle, now, cost);
    }
}

RC_GTEST_PROP(CountersProperty, SeveralLimitsAreChargedTogetherOrNotAtAll, ()) {
    const auto counters = open();
    const std::array<std::string, 4> keys{"a/k", "b/k", "c/k", "d/k"};
    std::vector<Limit> numbers;
    std::vector<Oracle> oracles;
    std::vector<LimitRef> limits;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        numbers.push_back(any_limit());
        oracles.emplace_back(numbers.back());
        limits.push_back(*LimitRef::of(numbers.back()));
    }
    std::int64_t now = 0;
    const int steps = *rc::gen::inRange(1, 40);
    for (int step = 0; step < steps && now < last_moment; ++step) {
        now += any_pause(numbers[*rc::gen::inRange<std::size_t>(0, keys.size())]);
        // The same key may come up twice: both charges count.
        const auto picks = *rc::gen::container<std::vector<std::size_t>>(
            *rc::gen::inRange<std::size_t>(1, 6), rc::gen::inRange<std::size_t>(0, keys.size()));
        std::vector<Charge> charges;
        std::vector<Oracle> tried = oracles;
        bool all_fit = true;
        for (const std::size_t pick : picks) {
            const auto cost = *rc::gen::inRange<std::uint32_t>(0, 6);
            charges.push_back(
                {.key = keys[pick], .rule_bytes = 2, .cost = cost, .limit = limits[pick]});
            const bool fits = tried[pick].fits(now, cost);
            all_fit = all_fit && fits;
            if (fits) {
                tried[pick].take(now, cost);
            }
        }
        const Outcome outcome = counters->apply_one({.charges = charges}, at_ns(now));
        RC_ASSERT(outcome.admitted == all_fit);
        if (all_fit) {
            oracles = tried;
        }
        for (std::size_t i = 0; i < keys.size(); ++i) {
            const Charge look{
                .key = keys[i], .rule_bytes = 2, .op = ChargeOp::observe, .limit = limits[i]};
            const Level level = counters->apply_one({.charges = {&look, 1}}, at_ns(now)).levels[0];
            check_level(level, oracles[i], now, 1);
        }
    }
}

}  // namespace
}  // namespace ration
