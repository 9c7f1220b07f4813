// The arithmetic of one key's use, by tables of literal times.
#include "limits/use.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "limits/arithmetic.h"

namespace ration {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Nanos day = hours(24);

// Wall time 0 is an edge of every window; the monotonic clock has its own zero.
Now at(Nanos since) {
    return {Mono(hours(40) + since), Wall(since)};
}

const LimitRef::Entry& numbers(const Limit& limit) {
    return (*LimitRef::of(limit)).entry();
}

struct Step {
    Nanos at;
    std::uint32_t cost;
    Verdict verdict;
    std::uint64_t remaining;
    Nanos wait{0};
};

void run(const Limit& limit, const std::vector<Step>& steps) {
    Use use;
    for (const Step& step : steps) {
        SCOPED_TRACE(to_string(limit) + " at " + std::to_string(step.at.count()) + " ns");
        const Level level = take(numbers(limit), use, step.cost, at(step.at));
        EXPECT_EQ(level.verdict, step.verdict);
        EXPECT_EQ(level.remaining, step.remaining);
        EXPECT_EQ(level.wait, step.wait);
    }
}

constexpr Verdict yes = Verdict::admitted;
constexpr Verdict no = Verdict::refused;
constexpr Verdict never = Verdict::never;

TEST(Bucket, LongIdlenessIsAFullBucketAndNoMore) {
    run(token_bucket(1000, minutes(1)),
        {{seconds(0), 1, yes, 999}, {hours(12), 1, yes, 999}, {day * 3653, 1, yes, 999}});
}

TEST(Bucket, SlowRefillIsRemembered) {
    run(token_bucket(1, day * 30), {{seconds(0), 1, yes, 0},
                                    {day, 1, no, 0, day * 29},
                                    {day * 30 - Nanos(1), 1, no, 0, Nanos(1)},
                                    {day * 30, 1, yes, 0}});
    run(token_bucket(1, max_period, 20), {{seconds(0), 20, yes, 0},
                                          {seconds(0), 20, no, 0, max_full_refill},
                                          {max_full_refill, 20, yes, 0}});
}

TEST(Bucket, APartOfATokenIsKept) {
    run(token_bucket(1, seconds(1)),
        {{seconds(0), 1, yes, 0}, {Nanos(200'000'000), 1, no, 0, Nanos(800'000'000)}});
    run(token_bucket(2, seconds(6)), {{seconds(0), 1, yes, 1},
                                      {seconds(5), 1, yes, 1},
                                      {seconds(10), 1, yes, 1},
                                      {seconds(15), 1, yes, 1},
                                      {seconds(20), 1, yes, 1}});
}

TEST(Bucket, FastBucketsLimitToo) {
    Use use;
    int admitted = 0;
    for (int i = 0; i < 7000; ++i) {
        const Level level = take(numbers(token_bucket(6000, seconds(1))), use, 1, at(seconds(3)));
        admitted += level.verdict == yes ? 1 : 0;
        EXPECT_LT(level.wait, seconds(1));
    }
    EXPECT_EQ(admitted, 6000);
}

TEST(Bucket, CostsAboveCapacityNeverFit) {
    run(token_bucket(3, seconds(2)), {{seconds(0), 4, never, 3},
                                      {seconds(0), 3, yes, 0},
                                      {seconds(0), 1, no, 0, Nanos(666'666'667)},
                                      {Nanos(666'666'666), 1, no, 0, Nanos(1)},
                                      {Nanos(666'666'667), 1, yes, 0}});
    run(token_bucket(0, seconds(1)), {{seconds(0), 1, never, 0}, {seconds(9), 0, yes, 0}});
    run(token_bucket(5, seconds(1), 0), {{seconds(0), 1, never, 0}});
}

TEST(Bucket, StateStaysSmallForEver) {
    // A rate that divides nothing evenly, asked at random for years.
    const LimitRef::Entry& entry = numbers(token_bucket(999'983, seconds(7), 1'000'003));
    std::mt19937_64 random(3);
    Use use;
    Nanos now{0};
    for (int i = 0; i < 200'000; ++i) {
        now += Nanos(random() % (i % 100 == 0 ? 20'000'000'000 : 20'000));
        (void)take(entry, use, static_cast<std::uint32_t>(random() % 5000), at(now));
        ASSERT_LT(use.used, entry.limit.capacity + entry.rate_tokens);
    }
}

TEST(Bucket, SmallStepsAddUpToOneBigOne) {
    const LimitRef::Entry& entry = numbers(token_bucket(7, Nanos(11'000'001), 1000));
    Use asked_often;
    Use asked_once;
    (void)take(entry, asked_often, 1000, at(seconds(0)));
    (void)take(entry, asked_once, 1000, at(seconds(0)));
    for (int i = 1; i <= 100'000; ++i) {
        (void)take(entry, asked_often, 1000, at(Nanos(4'999) * i));
    }
    const Now end = at(Nanos(4'999) * 100'000);
    EXPECT_EQ(observe(entry, asked_often, 900, end), observe(entry, asked_once, 900, end));
}

TEST(Bucket, AnOlderReadingIsJudgedAtTheMomentItKnowsOf) {
    const LimitRef::Entry& entry = numbers(token_bucket(2, seconds(10)));
    Use use;
    (void)take(entry, use, 2, at(seconds(0)));
    EXPECT_EQ(take(entry, use, 1, at(seconds(5))).verdict, yes);
    // One token comes at 10 s. From a reading of 4 s that is 6 s away, though 5 s was seen.
    const Level older = take(entry, use, 1, at(seconds(4)));
    EXPECT_EQ(older.verdict, no);
    EXPECT_EQ(older.wait, seconds(6));
    EXPECT_EQ(take(entry, use, 1, at(seconds(10) - Nanos(1))).verdict, no);
    EXPECT_EQ(take(entry, use, 1, at(seconds(10))).verdict, yes);
}

TEST(Bucket, ReadingsAtTheEndsOfTheRangeDoNotWrap) {
    const LimitRef::Entry& entry = numbers(token_bucket(10, seconds(1)));
    Use use;
    const Now first{Mono::min(), Wall::min()};
    const Now last{Mono::max(), Wall::max()};
    EXPECT_EQ(take(entry, use, 4, first).remaining, 6U);
    EXPECT_EQ(take(entry, use, 4, last).remaining, 6U);
    EXPECT_EQ(take(entry, use, 4, first).remaining, 2U);
}

TEST(FixedWindow, EndsAtItsEdgeWhateverIsAsked) {
    run(fixed_window(1, hours(1)), {{seconds(0), 1, yes, 0},
                                    {seconds(2700), 1, no, 0, seconds(900)},
                                    {seconds(3600), 1, yes, 0}});
    run(fixed_window(150, minutes(1)), {{seconds(10), 1, yes, 149}, {seconds(70), 1, yes, 149}});
    run(fixed_window(10, minutes(1)), {{seconds(0), 8, yes, 2},
                                       {seconds(0), 5, no, 2, seconds(60)},
                                       {seconds(0), 1, yes, 1},
                                       {seconds(1), 11, never, 1}});
}

TEST(FixedWindow, LastsForYears) {
    run(fixed_window(5, day * 365), {{hours(3), 5, yes, 0},
                                     {day * 30, 1, no, 0, seconds(28'944'000)},
                                     {day * 364, 1, no, 0, day},
                                     {day * 365, 1, yes, 4}});
    Use use;
    const LimitRef::Entry& entry = numbers(fixed_window(50'000'000, day * 30));
    for (int i = 0; i < 1000; ++i) {
        (void)take(entry, use, 1, at(hours(1)));
    }
    EXPECT_EQ(take(entry, use, 1, at(day * 29)).used, 1001U);
}

TEST(FixedWindow, AlignsBeforeTheEpochToo) {
    run(fixed_window(1, minutes(1)), {{-seconds(61), 1, yes, 0},
                                      {-seconds(60), 1, yes, 0},
                                      {-Nanos(1), 1, no, 0, Nanos(1)},
                                      {Nanos(0), 1, yes, 0}});
}

TEST(FixedWindow, AttemptsSaturate) {
    const LimitRef::Entry& entry = numbers(fixed_window(max_amount, day, true));
    Use use;
    for (int i = 0; i < 6; ++i) {
        (void)take(entry, use, 1'000'000'000, at(seconds(1)));
    }
    EXPECT_EQ(use.used, 4'294'967'295U);
    EXPECT_EQ(take(entry, use, 1, at(seconds(1))).verdict, no);
}

TEST(SlidingCounter, WeighsTheOlderWindowExactly) {
    const Limit limit = sliding_counter(60, minutes(1));
    run(limit, {{seconds(30), 60, yes, 0},
                {seconds(72), 12, yes, 0},
                {seconds(72), 1, no, 0, seconds(1)},
                {seconds(73) - Nanos(1), 1, no, 0, Nanos(1)},
                {seconds(73), 1, yes, 0}});
    // What is used now waits into the next window, as far as it must.
    run(limit, {{seconds(30), 60, yes, 0},
                {seconds(30), 1, no, 0, seconds(31)},
                {seconds(30), 60, no, 0, seconds(90)},
                {seconds(120), 60, yes, 0}});
}

TEST(Carry, ABucketOwesWhatItOwedToTheFraction) {
    const LimitRef::Entry& slow = numbers(token_bucket(10, minutes(1)));
    const LimitRef::Entry& fast = numbers(token_bucket(20, minutes(1)));
    Use use;
    (void)take(slow, use, 6, at(seconds(0)));
    EXPECT_EQ(observe(fast, carry({slow, fast, at(seconds(0)).mono}, use, at(seconds(0))), 1,
                      at(seconds(0)))
                  .remaining,
              14U);
    // Half a token was earned by the change; the other half takes 1.5 s more.
    const Use owing = carry({slow, fast, at(seconds(3)).mono}, use, at(seconds(3)));
    EXPECT_EQ(observe(fast, owing, 1, at(seconds(3))).used, 6U);
    EXPECT_EQ(observe(fast, owing, 1, at(seconds(3))).next, Nanos(1'500'000'000));
    // Lowered below what is owed: nothing is forgotten.
    const LimitRef::Entry& low = numbers(token_bucket(2, minutes(1)));
    const Use late = carry({slow, low, at(seconds(0)).mono}, use, at(seconds(0)));
    EXPECT_EQ(observe(low, late, 1, at(seconds(0))).wait, minutes(2) + seconds(30));
}

TEST(Carry, ACallUnderNewNumbersWaitsForNothingOld) {
    // Idle since long before the change: full under the old rate, so nothing is carried.
    const LimitRef::Entry& slow = numbers(token_bucket(10, minutes(1)));
    const LimitRef::Entry& day_window = numbers(fixed_window(100, day));
    Use use;
    (void)take(slow, use, 10, at(seconds(0)));
    EXPECT_EQ(carry({slow, day_window, at(hours(1)).mono}, use, at(hours(2))), Use{});
    EXPECT_EQ(carry({slow, day_window, at(seconds(30)).mono}, use, at(hours(2))).used, 5U);
}

TEST(Carry, AWindowsCountMovesToTheWindowThatHoldsTheChange) {
    const LimitRef::Entry& hourly = numbers(fixed_window(10, hours(1)));
    const LimitRef::Entry& daily = numbers(fixed_window(100, day));
    Use use;
    (void)take(hourly, use, 7, at(minutes(50)));
    // Changed within the hour, asked after it: the day still holds the seven.
    EXPECT_EQ(carry({hourly, daily, at(minutes(55)).mono}, use, at(minutes(70))).used, 7U);
    // The hour was over before the change.
    EXPECT_EQ(carry({hourly, daily, at(minutes(65)).mono}, use, at(minutes(70))).used, 0U);
    // Of a window that counted attempts, only what was admitted becomes a bucket's debt.
    const LimitRef::Entry& attempts = numbers(fixed_window(10, hours(1), true));
    const LimitRef::Entry& bucket = numbers(token_bucket(20, hours(1)));
    Use many;
    for (int i = 0; i < 50; ++i) {
        (void)take(attempts, many, 1, at(minutes(5)));
    }
    EXPECT_EQ(carry({attempts, bucket, at(minutes(6)).mono}, many, at(minutes(6))).used, 10U);
}

TEST(UntilUnused, IsTheFirstMomentThatEqualsNeverSeen) {
    for (const Limit& limit : {token_bucket(7, seconds(11), 9), fixed_window(9, seconds(7)),
                               sliding_counter(9, seconds(7))}) {
        SCOPED_TRACE(to_string(limit));
        const LimitRef::Entry& entry = numbers(limit);
        Use use;
        EXPECT_EQ(until_unused(entry, use, at(seconds(1))), Nanos{0});
        (void)take(entry, use, 5, at(seconds(1)));
        const Nanos left = until_unused(entry, use, at(seconds(2)));
        EXPECT_GT(left, Nanos{0});
        EXPECT_NE(observe(entry, use, 1, at(seconds(2) + left - Nanos(1))).used, 0U);
        EXPECT_EQ(observe(entry, use, 1, at(seconds(2) + left)).used, 0U);
        EXPECT_EQ(until_unused(entry, use, at(seconds(2) + left)), Nanos{0});
    }
}

TEST(Arithmetic, Saturates) {
    EXPECT_EQ(saturating_sub(int64_min, 1), int64_min);
    EXPECT_EQ(saturating_sub(int64_max, -1), int64_max);
    EXPECT_EQ(saturating_add(int64_max, 1), int64_max);
    EXPECT_EQ(saturating_add(int64_min, -1), int64_min);
    EXPECT_EQ(mul_div_ceil(7, 3, 2), 11);
    EXPECT_EQ(mul_div_floor(7, 3, 2), 10);
    const std::uint64_t big = std::uint64_t{1} << 62;
    EXPECT_EQ(mul_div_ceil(big, 9, 9), static_cast<std::int64_t>(big));
    EXPECT_EQ(mul_div_ceil(big + 1, 9, 3 * big), 4);
    EXPECT_EQ(mul_div_floor(big + 1, 9, 3 * big), 3);
    EXPECT_EQ(mul_div_ceil(big, 3, 1), int64_max);
    EXPECT_EQ(mul_div_floor(big, 3, 1), int64_max);
    EXPECT_EQ(floor_to(-1, 60), -60);
    EXPECT_EQ(floor_to(-60, 60), -60);
    EXPECT_EQ(floor_to(59, 60), 0);
}

}  // namespace
}  // namespace ration
