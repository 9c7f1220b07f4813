// The conformance suite of counters: a store is done when it passes.
//
// Every test opens a fresh store by the parameter's factory and drives it by literal times, which
// the store must judge by. In one test program of the store:
//
//   INSTANTIATE_TEST_SUITE_P(Memory, CountersConformance, testing::Values(StoreUnderTest{
//       .name = "memory", .tick = Nanos(1), .open = [] { ... }}), store_name);
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "ration/counters.h"

namespace ration {

struct StoreUnderTest {
    std::string name;
    Nanos tick;  // the finest step of time the store tells apart
    std::function<std::unique_ptr<Counters>()> open;
};

inline void PrintTo(const StoreUnderTest& store, std::ostream* out) {
    *out << store.name;
}

inline std::string store_name(const testing::TestParamInfo<StoreUnderTest>& info) {
    return info.param.name;
}

// An exact UTC day, and a monotonic reading that has nothing to do with it.
inline constexpr Now day_start{Mono(std::chrono::hours(1000)),
                               Wall(std::chrono::seconds(1'700'006'400))};

[[nodiscard]] inline Now at(Nanos since_start) {
    return later(day_start, since_start);
}
[[nodiscard]] inline Now at_ms(std::int64_t ms) {
    return at(std::chrono::milliseconds(ms));
}

[[nodiscard]] inline LimitRef ref(const Limit& limit) {
    absl::StatusOr<LimitRef> made = LimitRef::of(limit);
    EXPECT_TRUE(made.ok()) << made.status();
    return *made;
}

// What one request is charged for; the limit's identity is the key up to the first '/'.
struct Want {
    std::string_view key;
    LimitRef limit;
    std::uint32_t cost = 1;
    ChargeOp op = ChargeOp::take;
    std::optional<Now> taken{};
};

class CountersConformance : public testing::TestWithParam<StoreUnderTest> {
protected:
    void SetUp() override {
        counters = GetParam().open();
        ASSERT_NE(counters, nullptr);
    }

    Outcome apply(std::initializer_list<Want> wants, Now now, Mono since = Mono{}) {
        std::vector<Charge> charges;
        for (const Want& want : wants) {
            charges.push_back({.key = want.key,
                               .rule_bytes = static_cast<std::uint16_t>(want.key.find('/') + 1),
                               .op = want.op,
                               .cost = want.cost,
                               .limit = want.limit,
                               .taken = want.taken,
                               .numbers_since = since});
        }
        Outcome outcome = counters->apply_one({.charges = charges, .lease = 7}, now);
        EXPECT_EQ(outcome.status, absl::StatusCode::kOk);
        EXPECT_EQ(outcome.count, charges.size());
        return outcome;
    }
    Level take(LimitRef limit, Now now, std::uint32_t cost = 1, std::string_view key = "r/k") {
        return apply({{.key = key, .limit = limit, .cost = cost}}, now).levels[0];
    }
    Level look(LimitRef limit, Now now, std::uint32_t cost = 1, std::string_view key = "r/k") {
        return apply({{.key = key, .limit = limit, .cost = cost, .op = ChargeOp::observe}}, now)
            .levels[0];
    }
    Level give(LimitRef limit, Now now, std::uint32_t cost = 1,
               std::optional<Now> taken = std::nullopt) {
        return apply({{.key = "r/k",
                       .limit = limit,
                       .cost = cost,
                       .op = ChargeOp::give_back,
                       .taken = taken}},
                     now)
            .levels[0];
    }
    int admitted_of(int requests, LimitRef limit, Now now, std::string_view key = "r/k") {
        int admitted = 0;
        for (int i = 0; i < requests; ++i) {
            admitted += take(limit, now, 1, key).verdict == Verdict::admitted ? 1 : 0;
        }
        return admitted;
    }
    // The wait told to a refused cost admits it, and a tick less does not.
    void expect_exact_wait(LimitRef limit, Now now, std::uint32_t cost) {
        const Level refused = look(limit, now, cost);
        ASSERT_EQ(refused.verdict, Verdict::refused);
        ASSERT_GT(refused.wait, Nanos{0});
        EXPECT_EQ(look(limit, later(now, refused.wait - GetParam().tick), cost).verdict,
                  Verdict::refused);
        EXPECT_EQ(look(limit, later(now, refused.wait), cost).verdict, Verdict::admitted);
    }

    std::unique_ptr<Counters> counters;
};

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// ---- each kind by itself ----

TEST_P(CountersConformance, BucketStartsFullAndRefillsContinuously) {
    const LimitRef limit = ref(token_bucket(60, minutes(1)));
    EXPECT_EQ(admitted_of(60, limit, at_ms(0)), 60);
    int admitted = 0;
    for (std::int64_t ms = 500; ms <= 10'000; ms += 500) {
        admitted += take(limit, at_ms(ms)).verdict == Verdict::admitted ? 1 : 0;
    }
    EXPECT_EQ(admitted, 10);
}

TEST_P(CountersConformance, BucketTellsWholeTokensLeft) {
    const LimitRef limit = ref(token_bucket(10, seconds(30)));
    const std::vector<std::uint64_t> left{9, 8, 7, 7, 6, 5, 5, 4, 3, 3, 2};
    for (std::size_t second = 0; second < left.size(); ++second) {
        const Level level = take(limit, at(seconds(second)));
        EXPECT_EQ(level.verdict, Verdict::admitted);
        EXPECT_EQ(level.remaining, left[second]) << "at " << second << " s";
    }
}

TEST_P(CountersConformance, BucketLevelIsExact) {
    const LimitRef limit = ref(token_bucket(60, minutes(1), 10));
    const Level first = take(limit, at_ms(0), 4);
    EXPECT_EQ(
        first,
        (Level{.limit = 10, .remaining = 6, .used = 4, .next = seconds(1), .reset = seconds(4)}));
    const Level refused = take(limit, at_ms(1'500), 9);
    EXPECT_EQ(refused, (Level{.verdict = Verdict::refused,
                              .limit = 10,
                              .remaining = 7,
                              .used = 3,
                              .wait = std::chrono::milliseconds(1'500),
                              .next = std::chrono::milliseconds(500),
                              .reset = std::chrono::milliseconds(2'500)}));
}

TEST_P(CountersConformance, BucketIgnoresWallTimeAndOlderReadings) {
    const LimitRef limit = ref(token_bucket(10, seconds(10)));
    EXPECT_EQ(take(limit, at(seconds(20))).remaining, 9U);
    const Now wall_back{at(seconds(20)).mono, at(seconds(20)).wall - hours(48)};
    EXPECT_EQ(take(limit, wall_back).remaining, 8U);
    EXPECT_EQ(take(limit, at(seconds(13))).remaining, 7U) << "an older reading earns nothing";
    EXPECT_EQ(take(limit, at(seconds(20))).remaining, 6U) << "nor does coming back from it";
    EXPECT_EQ(admitted_of(7, limit, at(seconds(20))), 6);
    EXPECT_EQ(take(limit, at(seconds(21))).verdict, Verdict::admitted);
}

TEST_P(CountersConformance, WindowsAreHalfOpenAndAlignedToUtc) {
    const LimitRef limit = ref(fixed_window(2, seconds(10), true));
    const std::vector<std::pair<std::int64_t, bool>> rows{
        {0, true}, {10'000, true}, {10'001, true}, {10'002, false}, {20'001, true}};
    for (const auto& [ms, admitted] : rows) {
        EXPECT_EQ(take(limit, at_ms(ms)).verdict == Verdict::admitted, admitted) << ms << " ms";
    }
    EXPECT_EQ(look(limit, at_ms(20'002)).reset, std::chrono::milliseconds(9'998));
}

TEST_P(CountersConformance, WindowLetsADoubleBurstThroughAtItsEdge) {
    const LimitRef limit = ref(fixed_window(60, minutes(1)));
    EXPECT_EQ(admitted_of(60, limit, at_ms(59'500)), 60);
    EXPECT_EQ(admitted_of(60, limit, at_ms(60'000)), 60);
    const Level refused = take(limit, at_ms(60'000));
    EXPECT_EQ(refused.verdict, Verdict::refused);
    EXPECT_EQ(refused.wait, seconds(60));
}

TEST_P(CountersConformance, WindowCountingAttemptsGoesOnPastItsLimit) {
    const LimitRef limit = ref(fixed_window(3, minutes(1), true));
    const std::vector<std::uint64_t> left{2, 1, 0, 0, 0};
    for (std::size_t i = 0; i < left.size(); ++i) {
        const Level level = take(limit, at(seconds(1)));
        EXPECT_EQ(level.verdict == Verdict::admitted, i < 3);
        EXPECT_EQ(level.remaining, left[i]);
        EXPECT_EQ(level.used, i + 1);
        EXPECT_EQ(level.reset, seconds(59));
    }
}

TEST_P(CountersConformance, SlidingWindowCountsEachUnitForExactlyItsPeriod) {
    const LimitRef limit = ref(sliding_window(2, minutes(1)));
    const std::vector<std::pair<std::int64_t, bool>> rows{
        {0, true}, {1'000, true}, {60'000, true}, {60'500, false}, {61'000, true}};
    for (const auto& [ms, admitted] : rows) {
        EXPECT_EQ(take(limit, at_ms(ms)).verdict == Verdict::admitted, admitted) << ms << " ms";
    }
}

TEST_P(CountersConformance, SlidingWindowWaitsForTheOldestUnitThatIsInTheWay) {
    const LimitRef limit = ref(sliding_window(5, minutes(1)));
    EXPECT_EQ(take(limit, at(seconds(0)), 2).remaining, 3U);
    EXPECT_EQ(take(limit, at(seconds(10)), 2).remaining, 1U);
    EXPECT_EQ(take(limit, at(seconds(20)), 2).wait, seconds(40));
    EXPECT_EQ(look(limit, at(seconds(20)), 4).wait, seconds(50));
    EXPECT_EQ(admitted_of(100, ref(sliding_window(20, minutes(1))), at_ms(500), "r/many"), 20);
}

TEST_P(CountersConformance, SlidingCounterWeighsTheOlderWindow) {
    const LimitRef limit = ref(sliding_counter(60, minutes(1)));
    EXPECT_EQ(admitted_of(60, limit, at(seconds(59))), 60);
    EXPECT_EQ(admitted_of(20, limit, at(seconds(72))), 12);
    const Level refused = take(limit, at(seconds(72)));
    EXPECT_EQ(refused.verdict, Verdict::refused);
    EXPECT_EQ(refused.used, 60U);
    EXPECT_EQ(refused.wait, seconds(1));
}

TEST_P(CountersConformance, ConcurrencyFreesASlotWhenItIsGivenBack) {
    const LimitRef limit = ref(concurrency(2));
    EXPECT_EQ(take(limit, at_ms(0)).remaining, 1U);
    EXPECT_EQ(take(limit, at_ms(0)).remaining, 0U);
    EXPECT_EQ(take(limit, at(hours(100))).verdict, Verdict::refused);
    EXPECT_EQ(give(limit, at(hours(100))).remaining, 1U);
    EXPECT_EQ(take(limit, at(hours(100))).verdict, Verdict::admitted);
    EXPECT_EQ(give(limit, at(hours(100)), 9).used, 0U);
    EXPECT_EQ(look(limit, at(hours(100))).remaining, 2U);
}

// ---- costs ----

TEST_P(CountersConformance, CostsAboveCapacityCanNeverFitAndTakeNothing) {
    for (const Limit& numbers : {token_bucket(10, minutes(1)), fixed_window(10, minutes(1)),
                                 fixed_window(10, minutes(1), true), sliding_window(10, minutes(1)),
                                 sliding_counter(10, minutes(1)), concurrency(10)}) {
        const std::string key = "r/" + to_string(numbers);
        const LimitRef limit = ref(numbers);
        EXPECT_EQ(take(limit, at_ms(0), 5, key).verdict, Verdict::admitted) << key;
        const Level never = take(limit, at_ms(0), 100, key);
        EXPECT_EQ(never.verdict, Verdict::never) << key;
        EXPECT_EQ(never.wait, Nanos{0}) << key;
        EXPECT_EQ(never.used, 5U) << key;
        EXPECT_EQ(take(limit, at_ms(0), 5, key).verdict, Verdict::admitted) << key;
        EXPECT_EQ(take(limit, at_ms(0), 1, key).verdict, Verdict::refused) << key;
    }
}

TEST_P(CountersConformance, ALimitOfZeroAdmitsNothingEver) {
    for (const Limit& numbers :
         {token_bucket(0, seconds(1)), fixed_window(0, seconds(1)), sliding_window(0, seconds(1)),
          sliding_counter(0, seconds(1)), concurrency(0)}) {
        const std::string key = "r/" + to_string(numbers);
        EXPECT_EQ(take(ref(numbers), at_ms(0), 1, key).verdict, Verdict::never) << key;
        EXPECT_EQ(take(ref(numbers), at(hours(9)), 1, key).verdict, Verdict::never) << key;
        EXPECT_EQ(take(ref(numbers), at(hours(9)), 0, key).verdict, Verdict::admitted) << key;
    }
}

TEST_P(CountersConformance, ACostOfZeroIsAdmittedAndTakesNothing) {
    const LimitRef limit = ref(token_bucket(2, minutes(1)));
    EXPECT_EQ(take(limit, at_ms(0), 0).used, 0U);
    EXPECT_EQ(take(limit, at_ms(0), 2).remaining, 0U);
    const Level level = take(limit, at_ms(0), 0);
    EXPECT_EQ(level.verdict, Verdict::admitted);
    EXPECT_EQ(level.used, 2U);
}

// ---- waits ----

TEST_P(CountersConformance, TheToldWaitIsTheTrueWait) {
    const LimitRef odd = ref(token_bucket(10, seconds(13), 1));
    EXPECT_EQ(take(odd, at_ms(0)).verdict, Verdict::admitted);
    EXPECT_EQ(take(odd, at_ms(1'299)).verdict, Verdict::refused);
    expect_exact_wait(odd, at_ms(700), 1);
    EXPECT_EQ(take(odd, at_ms(1'300)).verdict, Verdict::admitted);
}

TEST_P(CountersConformance, TheToldWaitIsTheTrueWaitForEveryKind) {
    for (const Limit& numbers : {token_bucket(7, seconds(11), 9), fixed_window(9, seconds(7)),
                                 fixed_window(9, seconds(7), true), sliding_window(9, seconds(7)),
                                 sliding_counter(9, seconds(7))}) {
        SCOPED_TRACE(to_string(numbers));
        counters = GetParam().open();
        const LimitRef limit = ref(numbers);
        for (const std::int64_t ms : {0, 1'333, 2'001, 5'999, 7'250}) {
            (void)take(limit, at_ms(ms), 3);
        }
        const Level level = look(limit, at_ms(8'000), 9);
        if (level.verdict == Verdict::refused) {
            expect_exact_wait(limit, at_ms(8'000), 9);
        }
        (void)take(limit, at_ms(8'000), 2);
        expect_exact_wait(limit, at_ms(8'100), 9);
    }
}

TEST_P(CountersConformance, ABurstOfRefusalsLeavesWhatSilenceWould) {
    for (const Limit& numbers :
         {token_bucket(10, seconds(13)), fixed_window(10, seconds(13)),
          sliding_window(10, seconds(13)), sliding_counter(10, seconds(13)), concurrency(10)}) {
        SCOPED_TRACE(to_string(numbers));
        counters = GetParam().open();
        const LimitRef limit = ref(numbers);
        EXPECT_EQ(take(limit, at_ms(100), 9, "r/loud").verdict, Verdict::admitted);
        EXPECT_EQ(take(limit, at_ms(100), 9, "r/silent").verdict, Verdict::admitted);
        for (int i = 0; i < 50; ++i) {
            EXPECT_EQ(take(limit, at_ms(200 + i), 7, "r/loud").verdict, Verdict::refused);
        }
        EXPECT_EQ(look(limit, at_ms(900), 7, "r/loud"), look(limit, at_ms(900), 7, "r/silent"));
    }
}

}  // namespace ration

#include "counters/conformance_transactions.h"
