// Ten million addresses against counters bounded at 64 MiB: memory stays under the bound, a busy
// caller's bucket is not reset, what was dropped or shared is counted.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>

#include "ration/counters.h"

namespace ration {
namespace {

constexpr std::uint64_t addresses = 10'000'000;
constexpr std::uint64_t bound = 64ULL << 20;
constexpr Now start{Mono(std::chrono::hours(5)), Wall(std::chrono::seconds(1'700'006'400))};

std::uint64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t size = 0;
    std::uint64_t resident = 0;
    statm >> size >> resident;
    return resident * 4096;
}

// The sanitizers keep memory of their own for every page; only the bound itself is theirs to see.
constexpr bool sanitized =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#else
    false;
#endif

class Flood : public testing::Test {
protected:
    void SetUp() override {
        before = resident_bytes();
        counters = *open_memory_counters({.max_bytes = bound});
    }
    bool take(std::string_view key, Now now) {
        const Charge charge{.key = key, .rule_bytes = 5, .limit = limit};
        const Transaction transaction{.charges = {&charge, 1}};
        counters->apply({&transaction, 1}, now, {&outcome, 1});
        EXPECT_EQ(outcome.status, absl::StatusCode::kOk);
        return outcome.admitted;
    }
    void expect_bounded() {
        const CounterStats stats = counters->stats();
        EXPECT_LE(stats.bytes, bound);
        EXPECT_LE(stats.keys, stats.capacity + 4096);
        if (!sanitized) {
            EXPECT_LE(resident_bytes() - before, bound + (1U << 20));
        }
    }

    LimitRef limit = *LimitRef::of(token_bucket(10, std::chrono::minutes(1)));
    std::unique_ptr<Counters> counters;
    Outcome outcome;
    std::uint64_t before = 0;
};

TEST_F(Flood, WithinASecondEveryKeyIsInDebtAndNewcomersShare) {
    for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(take("addr/busy", start));
    }
    std::string key = "addr/";
    for (std::uint64_t i = 0; i < addresses; ++i) {
        key.resize(5);
        key += std::to_string(i);
        (void)take(key, later(start, Nanos(100) * i));
    }
    // A second has passed: the busy caller has earned a sixth of a token.
    EXPECT_FALSE(take("addr/busy", later(start, std::chrono::seconds(1))));
    EXPECT_EQ(outcome.levels[0].wait, std::chrono::seconds(5));
    const CounterStats stats = counters->stats();
    EXPECT_GT(stats.overflowed, addresses - stats.capacity - 1);
    EXPECT_EQ(stats.evictions, 0U);
    expect_bounded();
}

TEST_F(Flood, OverTenMinutesKeysThatAreFullAgainMakeRoom) {
    std::string key = "addr/";
    std::uint64_t busy_admitted = 0;
    for (std::uint64_t i = 0; i < addresses; ++i) {
        const Now now = later(start, Nanos(60'000) * i);
        key.resize(5);
        key += std::to_string(i);
        (void)take(key, now);
        if (i % 10'000 == 0) {
            busy_admitted += take("addr/busy", now) ? 1U : 0U;
        }
    }
    // Ten at once, and one more every six seconds of the ten minutes: never a full bucket extra.
    EXPECT_EQ(busy_admitted, 10 + 99U);
    const CounterStats stats = counters->stats();
    EXPECT_GT(stats.evictions, addresses / 2);
    EXPECT_EQ(stats.overflowed, 0U) << "a sixth of a minute's newcomers fit";
    expect_bounded();
}

}  // namespace
}  // namespace ration
