// Threads on the same keys with the clock held still: exactly the limit is admitted. Where it is
// the meeting that matters, whoever holds a lock lets the others run into it, and a run counts only
// when that was seen to happen.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include "counters/memory_counters.h"

namespace ration {
namespace {

constexpr Now still{Mono(std::chrono::hours(5)), Wall(std::chrono::seconds(1'700'000'000))};
constexpr int max_rounds = 100'000;  // eleven years of hours: no reading wraps

LimitRef ref(const Limit& limit) {
    return *LimitRef::of(limit);
}

std::unique_ptr<MemoryCounters> open() {
    return *MemoryCounters::open({.max_bytes = 4U << 20, .shards = 4});
}

// Every holder of a lock lets the others run first.
std::unique_ptr<MemoryCounters> open_paused() {
    auto counters = open();
    counters->pause_while_locked([] { std::this_thread::yield(); });
    return counters;
}

// Runs `round(thread, round)` on every thread, in step, until `done` after a round.
template <typename Round, typename Done>
int in_step(int threads, const Round& round, const Done& done) {
    std::atomic<bool> stop{false};
    int rounds = 0;
    auto between = [&]() noexcept { stop = done(++rounds) || rounds == max_rounds; };
    std::barrier gate(threads, between);
    std::vector<std::jthread> running;
    for (int thread = 0; thread < threads; ++thread) {
        running.emplace_back([&, thread] {
            for (int i = 0; !stop; ++i) {
                round(thread, i);
                gate.arrive_and_wait();
            }
        });
    }
    running.clear();
    return rounds;
}

class Race : public testing::TestWithParam<int> {};

TEST_P(Race, ExactlyTheLimitIsAdmittedOnOneKey) {
    for (const Limit& numbers :
         {token_bucket(500, std::chrono::hours(1)), fixed_window(500, std::chrono::hours(1)),
          fixed_window(500, std::chrono::hours(1), true),
          sliding_window(500, std::chrono::hours(1)), sliding_counter(500, std::chrono::hours(1)),
          concurrency(500)}) {
        SCOPED_TRACE(to_string(numbers));
        const auto counters = open();
        const LimitRef limit = ref(numbers);
        std::atomic<int> admitted{0};
        std::vector<std::jthread> threads;
        for (int thread = 0; thread < GetParam(); ++thread) {
            threads.emplace_back([&] {
                for (int i = 0; i < 1000 / GetParam() + 500; ++i) {
                    const Charge charge{.key = "r/k", .rule_bytes = 2, .limit = limit};
                    admitted += counters->apply_one({.charges = {&charge, 1}}, still).admitted;
                }
            });
        }
        threads.clear();
        EXPECT_EQ(admitted, 500);
    }
}

// Each round is another hour: every window and bucket is fresh again, on the same few keys.
Now hour(int round) {
    return later(still, std::chrono::hours(1) * round);
}
constexpr int units_per_round = 16;

TEST_P(Race, TheLastUnitIsSpentOnce) {
    const auto counters = open_paused();
    const LimitRef limit = ref(fixed_window(1, std::chrono::hours(1)));
    std::atomic<int> admitted{0};
    int wrong = 0;
    const int rounds = in_step(
        GetParam(),
        [&](int, int round) {
            for (int unit = 0; unit < units_per_round; ++unit) {
                const std::string key = "r/" + std::to_string(unit);
                const Charge charge{.key = key, .rule_bytes = 2, .limit = limit};
                admitted += counters->apply_one({.charges = {&charge, 1}}, hour(round)).admitted;
            }
        },
        [&](int round) {
            wrong += admitted.exchange(0) == units_per_round ? 0 : 1;
            return round >= 20 && counters->contended() > 0;
        });
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(counters->contended(), 0U) << "no two threads met in " << rounds << " rounds";
}

// Threads charge two limits in opposite orders. Were a charge ever made for one limit only, the
// two would end apart; were locks taken in the order of the charges, this would never end.
TEST_P(Race, TwoLimitsAreChargedInOneStep) {
    const auto counters = open_paused();
    const LimitRef scarce = ref(token_bucket(units_per_round, std::chrono::hours(1)));
    const LimitRef ample = ref(token_bucket(1000, std::chrono::hours(1)));
    std::atomic<int> admitted{0};
    int wrong = 0;
    const int rounds = in_step(
        GetParam(),
        [&](int thread, int round) {
            Charge charges[] = {{.key = "a/k", .rule_bytes = 2, .limit = scarce},
                                {.key = "b/k", .rule_bytes = 2, .limit = ample}};
            if (thread % 2 == 1) {
                std::swap(charges[0], charges[1]);
            }
            for (int i = 0; i < units_per_round; ++i) {
                admitted += counters->apply_one({.charges = charges}, hour(round)).admitted;
            }
        },
        [&](int round) {
            const Charge look{
                .key = "b/k", .rule_bytes = 2, .op = ChargeOp::observe, .limit = ample};
            const Level level =
                counters->apply_one({.charges = {&look, 1}}, hour(round - 1)).levels[0];
            wrong +=
                admitted.exchange(0) == units_per_round && level.used == units_per_round ? 0 : 1;
            return round >= 20 && counters->contended() > 0;
        });
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(counters->contended(), 0U) << "no two threads met in " << rounds << " rounds";
}

// Of many callers at once, in every phase each exactly what its bucket has: its level and its time
// are never of different moments.
TEST(RaceOfCallers, EachHasItsOwnBucketWhoeverElseIsServed) {
    constexpr int callers = 10'000;
    constexpr int threads = 16;
    const auto counters = *MemoryCounters::open({.max_bytes = 4U << 20, .shards = 8});
    const LimitRef limit = ref(token_bucket(60, std::chrono::minutes(1)));
    struct Phase {
        Nanos at;
        int asks;
        int admitted;
    };
    for (const Phase& phase : {Phase{Nanos(0), 61, 60}, Phase{std::chrono::milliseconds(500), 1, 0},
                               Phase{std::chrono::seconds(1), 2, 1}}) {
        std::vector<std::atomic<int>> admitted(callers);
        std::vector<std::jthread> running;
        for (int thread = 0; thread < threads; ++thread) {
            running.emplace_back([&, thread] {
                for (int i = thread; i < phase.asks * callers; i += threads) {
                    const std::string key = "r/" + std::to_string(i / phase.asks);
                    const Charge charge{.key = key, .rule_bytes = 2, .limit = limit};
                    admitted[static_cast<std::size_t>(i / phase.asks)] +=
                        counters->apply_one({.charges = {&charge, 1}}, later(still, phase.at))
                            .admitted;
                }
            });
        }
        running.clear();
        EXPECT_TRUE(std::all_of(admitted.begin(), admitted.end(), [&](const auto& count) {
            return count == phase.admitted;
        })) << phase.at.count();
    }
    EXPECT_EQ(counters->stats().overflowed, 0U);
}

INSTANTIATE_TEST_SUITE_P(Threads, Race, testing::Values(2, 8));

}  // namespace
}  // namespace ration
