// Changes of a limit's numbers against exact fractions: what a caller owes is the same before and
// after, and each told moment follows from it to the nanosecond.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cstdlib>
#include <limits>

#include "limits/use.h"
#include "ration/counters.h"

namespace ration {
namespace {

[[maybe_unused]] const int runs_set = setenv("RC_PARAMS", "max_success=1000", 0);

using Exact = boost::multiprecision::cpp_rational;
using Whole = boost::multiprecision::cpp_int;

Now at_ns(std::int64_t ns) {
    return {Mono(Nanos(ns)), Wall(Nanos(ns))};
}

Whole ceil_of(const Exact& value) {
    const Whole up = numerator(value);
    const Whole down = denominator(value);
    return up <= 0 ? Whole(-(-up / down)) : Whole((up + down - 1) / down);
}

// From one in ten years to a million a second, and nothing at all.
Limit any_bucket() {
    if (*rc::gen::inRange(0, 8) == 0) {
        return token_bucket(0, std::chrono::seconds(1));
    }
    const auto amount = *rc::gen::inRange<std::uint64_t>(1, 60);
    const Nanos period =
        *rc::gen::oneOf(rc::gen::map(rc::gen::inRange<std::int64_t>(60'000, 1'000'000),
                                     [](auto n) { return Nanos(n); }),
                        rc::gen::just(Nanos(static_cast<std::int64_t>(amount) * 1000)),
                        rc::gen::map(rc::gen::inRange<std::int64_t>(1, 9'000),
                                     [](auto n) { return Nanos(std::chrono::seconds(n)); }),
                        rc::gen::map(rc::gen::inRange<std::int64_t>(1, 3654),
                                     [](auto n) { return Nanos(std::chrono::hours(24) * n); }));
    const auto capacity =
        *rc::gen::inRange<std::uint64_t>(0, std::min<std::uint64_t>(60, 20 * amount) + 1);
    return token_bucket(amount, period, capacity);
}

// Tokens owed, exactly, and how much more a store may count for its whole nanoseconds.
class Debt {
public:
    explicit Debt(const Limit& limit) : limit_(limit) {}
    void come_into_force(const Limit& limit, std::int64_t now) {
        const Exact old_rate = rate();
        pass(now);
        limit_ = limit;
        if (rate() != old_rate) {
            // A bucket at rest keeps its part of a token in fractions of its own.
            more_ += limit.amount == 0 ? Exact(1, max_period.count()) : rate();
        }
    }
    void pass(std::int64_t now) {
        owed_ = std::max<Exact>(0, owed_ - Exact(now - now_) * rate());
        now_ = now;
    }
    void take(std::uint64_t cost) { owed_ += cost; }

    [[nodiscard]] Exact least() const { return owed_; }
    [[nodiscard]] Exact most() const { return owed_ + more_; }
    [[nodiscard]] Exact rate() const { return Exact(limit_.amount, limit_.period.count()); }
    [[nodiscard]] const Limit& limit() const { return limit_; }

private:
    Limit limit_;
    std::int64_t now_ = 0;
    Exact owed_ = 0;
    Exact more_ = 0;
};

void check_told(Nanos told, const Exact& least, const Exact& most) {
    if (most > Exact(std::numeric_limits<std::int64_t>::max() / 2)) {
        return;
    }
    RC_ASSERT(Whole(told.count()) >= std::max<Whole>(0, ceil_of(least)));
    RC_ASSERT(Whole(told.count()) <= std::max<Whole>(0, ceil_of(most)));
}

void check_level(const Level& level, const Debt& debt, std::uint64_t cost) {
    const std::uint64_t capacity = debt.limit().capacity;
    RC_ASSERT(Whole(level.used) >= ceil_of(debt.least()));
    RC_ASSERT(Whole(level.used) <= ceil_of(debt.most()));
    RC_ASSERT(level.remaining == capacity - std::min(capacity, level.used));
    if (level.verdict == Verdict::refused) {
        RC_ASSERT(debt.most() + cost > capacity);
        const Exact over = Exact(cost) - Exact(capacity);
        check_told(level.wait, (debt.least() + over) / debt.rate(),
                   (debt.most() + over) / debt.rate());
    } else if (level.verdict == Verdict::admitted && cost != 0) {
        RC_ASSERT(debt.least() <= capacity);
    }
    if (debt.limit().amount != 0) {
        check_told(level.reset, debt.least() / debt.rate(), debt.most() / debt.rate());
    }
}

std::int64_t any_pause(const Limit& limit) {
    const std::int64_t period = limit.period.count();
    const auto amount = static_cast<std::int64_t>(std::max<std::uint64_t>(1, limit.amount));
    const auto part = *rc::gen::inRange<std::int64_t>(0, 300);
    return *rc::gen::element<std::int64_t>(0, 1, period / amount - 1, period / amount / 300 * part,
                                           period / 300 * part);
}

RC_GTEST_PROP(ChangedNumbers, ABucketOwesWhatItOwed, ()) {
    const auto counters =
        *open_memory_counters({.max_bytes = min_counter_bytes, .log_bytes = min_log_bytes});
    Limit limit = any_bucket();
    Debt kept(limit);  // as last written: numbers that nobody was charged by leave no trace
    std::int64_t now = 0;
    Mono since{};
    const int steps = *rc::gen::inRange(2, 40);
    for (int step = 0; step < steps && now < std::int64_t{2} << 60; ++step) {
        if (*rc::gen::inRange(0, 4) == 0) {
            limit = any_bucket();
            since = at_ns(now).mono;
        }
        now += any_pause(limit);
        Debt debt = kept;
        if (!(limit == kept.limit())) {
            debt.come_into_force(limit, since.time_since_epoch().count());
        }
        debt.pass(now);
        const auto op =
            *rc::gen::element(ChargeOp::take, ChargeOp::take, ChargeOp::observe, ChargeOp::force);
        const auto cost =
            *rc::gen::inRange<std::uint32_t>(0, static_cast<std::uint32_t>(limit.capacity) + 2);
        const Charge charge{.key = "r/k",
                            .rule_bytes = 2,
                            .op = op,
                            .cost = cost,
                            .limit = *LimitRef::of(limit),
                            .numbers_since = since};
        RC_LOG() << "at " << now << ": " << static_cast<int>(op) << " " << cost << " of "
                 << to_string(limit) << ", since " << since.time_since_epoch().count() << "\n";
        const Level level = counters->apply_one({.charges = {&charge, 1}}, at_ns(now)).levels[0];
        const bool takes =
            op == ChargeOp::force || (op == ChargeOp::take && level.verdict == Verdict::admitted);
        debt.take(takes ? cost : 0);
        kept = takes && cost != 0 ? debt : kept;
        check_level(level, debt, takes ? 0 : cost);
        if (takes && op == ChargeOp::take && cost != 0) {
            RC_ASSERT(debt.least() <= limit.capacity);  // never earlier than the rules say
        }
    }
}

// The weight of the older count is the same fraction, but for the last nanosecond.
RC_GTEST_PROP(ChangedNumbers, ASlidingCounterHasAsMuchOfItsWindowBehindIt, ()) {
    const auto period = [] {
        return Nanos(
            *rc::gen::oneOf(rc::gen::inRange<std::int64_t>(60'000, 1'000'000),
                            rc::gen::inRange<std::int64_t>(1'000'000, max_period.count())));
    };
    const LimitRef from = *LimitRef::of(sliding_counter(50, period()));
    const LimitRef to =
        *LimitRef::of(sliding_counter(*rc::gen::inRange<std::uint64_t>(0, 50), period()));
    RC_PRE(from->period != to->period);
    const std::int64_t before = from->period.count();
    const std::int64_t after = to->period.count();
    const Use use{.as_of = before * 7,
                  .used = *rc::gen::inRange<std::uint32_t>(0, 60),
                  .before = *rc::gen::inRange<std::uint32_t>(1, 60)};
    const std::int64_t passed = *rc::gen::inRange<std::int64_t>(0, before);
    const Now changed = at_ns(use.as_of + passed);
    const Now now = later(changed, Nanos(*rc::gen::inRange<std::int64_t>(0, after)));
    const Use carried = carry({from.entry(), to.entry(), changed.mono}, use, now);
    RC_ASSERT(carried.used == use.used);
    RC_ASSERT(carried.before == use.before);
    const Whole behind = Whole(changed.wall.time_since_epoch().count()) - carried.as_of;
    RC_ASSERT(behind * before <= Whole(passed) * after);
    RC_ASSERT((behind + 1) * before > Whole(passed) * after);
}

using std::chrono::hours;
using std::chrono::seconds;

struct Change {
    Limit from;
    std::uint32_t used;  // at 0
    Nanos changed;
    Limit to;
    std::uint32_t cost;
    Nanos told;  // at the change; 0: admitted
};

TEST(ChangedNumbers, AToldWaitChangesWithTheRateAlone) {
    constexpr Nanos day = hours(24);
    const Change rows[] = {
        {token_bucket(1, day * 30), 1, day * 30 - seconds(10), token_bucket(1, day * 29), 1,
         Nanos(9'666'666'667)},
        {token_bucket(1, day * 30), 1, day * 30 - seconds(10), token_bucket(1, day * 60), 1,
         seconds(20)},
        {token_bucket(2, seconds(8)), 2, seconds(3), token_bucket(2, seconds(7)), 1,
         Nanos(875'000'000)},
        // Raised and lowered: what is owed stays, to the fraction.
        {token_bucket(1, seconds(10)), 1, seconds(9), token_bucket(2, seconds(20), 2), 2,
         seconds(1)},
        {token_bucket(1, seconds(10), 5), 5, seconds(9), token_bucket(1, seconds(10), 2), 1,
         seconds(31)},
        {token_bucket(1, seconds(10), 5), 1, seconds(9), token_bucket(1, seconds(5), 9), 9,
         Nanos(500'000'000)},
        // The ends of the range, and a debt past what nanoseconds can say.
        {token_bucket(1, max_period), 1, max_period / 2, token_bucket(1'000'000, seconds(1), 1), 1,
         Nanos(500)},
        {token_bucket(1'000'000, seconds(1), 1), 1, Nanos(500), token_bucket(1, max_period), 1,
         max_period / 2},
        {token_bucket(100, seconds(100)), 100, seconds(0), token_bucket(1, max_period), 1,
         Nanos::max()},
        {sliding_counter(1, seconds(10)), 1, seconds(19), sliding_counter(1, seconds(20)), 1,
         seconds(2)},
        {fixed_window(1, seconds(60)), 1, seconds(30), fixed_window(1, seconds(40)), 1,
         seconds(10)},
    };
    for (const Change& row : rows) {
        SCOPED_TRACE(to_string(row.from) + " to " + to_string(row.to));
        const LimitRef::Entry& from = LimitRef::of(row.from)->entry();
        const LimitRef::Entry& to = LimitRef::of(row.to)->entry();
        Use use;
        (void)force(from, use, row.used, at_ns(0));
        const Now changed = at_ns(row.changed.count());
        const Use carried = carry({from, to, changed.mono}, use, changed);
        EXPECT_EQ(observe(to, carried, row.cost, changed).wait, row.told);
    }
}

TEST(ChangedNumbers, ALimitOfNothingInBetweenForgetsNothing) {
    const LimitRef::Entry& bucket = LimitRef::of(token_bucket(1, hours(720)))->entry();
    const LimitRef::Entry& none = LimitRef::of(token_bucket(0, seconds(1)))->entry();
    const LimitRef::Entry& none_too = LimitRef::of(token_bucket(0, hours(1)))->entry();
    Use use;
    (void)take(bucket, use, 1, at_ns(0));
    const Now closed = later(at_ns(0), hours(720) - seconds(10));
    const Now open = later(closed, hours(5));
    Use resting = carry({bucket, none, closed.mono}, use, closed);
    resting = carry({none, none_too, closed.mono}, resting, later(closed, hours(1)));
    EXPECT_EQ(observe(none_too, resting, 1, open).verdict, Verdict::never);
    const Use again = carry({none_too, bucket, open.mono}, resting, open);
    EXPECT_EQ(observe(bucket, again, 1, open).wait, seconds(10) + Nanos(1));
    // What is charged at rest is owed from then on, and earns nothing before.
    Use charged;
    (void)force(none, charged, 1, closed);
    EXPECT_EQ(observe(bucket, carry({none, bucket, open.mono}, charged, open), 1, open).wait,
              hours(720));
}

// A request that is settled under the numbers it was admitted by, after they had changed.
TEST(ChangedNumbers, OlderNumbersDoNotReachBackBehindNewerOnes) {
    const auto counters =
        *open_memory_counters({.max_bytes = min_counter_bytes, .log_bytes = min_log_bytes});
    const LimitRef fast = *LimitRef::of(token_bucket(60, hours(1)));
    const LimitRef slow = *LimitRef::of(token_bucket(60, hours(24 * 3600)));
    const Now start = at_ns(hours(900).count());
    const Now changed = later(start, std::chrono::minutes(30) + seconds(1));
    const auto used = [&](LimitRef limit, std::uint32_t cost, Mono since, Now now) {
        const Charge charge{.key = "r/k",
                            .rule_bytes = 2,
                            .op = ChargeOp::force,
                            .cost = cost,
                            .limit = limit,
                            .numbers_since = since};
        return counters->apply_one({.charges = {&charge, 1}}, now).levels[0].used;
    };
    EXPECT_EQ(used(fast, 60, Mono{}, start), 60U);
    EXPECT_EQ(used(slow, 1, changed.mono, changed), 31U);
    EXPECT_EQ(used(fast, 1, changed.mono, changed), 32U);
    EXPECT_EQ(used(slow, 1, changed.mono, changed), 33U);
}

}  // namespace
}  // namespace ration
