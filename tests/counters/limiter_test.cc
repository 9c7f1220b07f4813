// The library's front door.
#include "ration/limiter.h"

#include <gtest/gtest.h>

#include "counters/failing_counters.h"

namespace ration {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Now start{Mono(hours(5)), Wall(seconds(1'700'006'400))};

TEST(Limiter, TenLinesLimitAFunction) {
    auto limiter = Limiter::create("emails", token_bucket(10, minutes(1)));
    ASSERT_TRUE(limiter.ok()) << limiter.status();
    int sent = 0;
    for (int i = 0; i < 12; ++i) {
        const Taken taken = limiter->take("user-17");
        if (taken.allowed) {
            ++sent;
        } else {
            EXPECT_GT(taken.wait, Nanos{0});
            EXPECT_LE(taken.wait, seconds(6));
            EXPECT_LE(taken.retry_after_seconds(), 6);
            EXPECT_GE(taken.retry_after_seconds(), 1);
        }
    }
    EXPECT_GE(sent, 10);
    EXPECT_TRUE(limiter->take("user-18").allowed);
}

TEST(Limiter, TellsTheExactWaitAndWhatIsLeft) {
    const auto limiter = Limiter::create("emails", token_bucket(10, minutes(1)));
    const Taken first = limiter->take("u", 7, start);
    EXPECT_TRUE(first.allowed);
    EXPECT_EQ(first.remaining, 3U);
    EXPECT_EQ(first.retry_after_seconds(), 0);
    const Taken refused = limiter->take("u", 4, later(start, std::chrono::milliseconds(5'500)));
    EXPECT_FALSE(refused.allowed);
    EXPECT_EQ(refused.wait, std::chrono::milliseconds(500));
    EXPECT_EQ(refused.retry_after_seconds(), 1);
    EXPECT_TRUE(limiter->look("u", 4, later(start, seconds(6))).allowed);
    EXPECT_TRUE(limiter->take("u", 4, later(start, seconds(6))).allowed);
    const Taken never = limiter->take("u", 11, start);
    EXPECT_TRUE(never.never);
    EXPECT_EQ(never.wait, Nanos{0});
    EXPECT_EQ(never.retry_after_seconds(), 0);
    limiter->give_back("u", 2, later(start, seconds(6)));
    EXPECT_EQ(limiter->look("u", 1, later(start, seconds(6))).remaining, 2U);
}

TEST(Limiter, SeveralLimitsAreChargedTogether) {
    const auto limiter =
        Limiter::create("emails", {token_bucket(10, minutes(1)), token_bucket(30, minutes(30))});
    int admitted = 0;
    for (int i = 0; i < 31; ++i) {
        admitted += limiter->take("u", 1, start).allowed ? 1 : 0;
    }
    EXPECT_EQ(admitted, 10);
    // The long bucket still holds 20: ten minutes later ten more, limited by the short one.
    EXPECT_EQ(limiter->take("u", 1, later(start, seconds(60))).remaining, 9U);
    const Taken refused = limiter->take("u", 10, later(start, seconds(60)));
    EXPECT_EQ(refused.wait, seconds(6));
}

TEST(Limiter, LimitersOfDifferentNamesShareCountersButNoBuckets) {
    std::shared_ptr<Counters> counters = *open_memory_counters({});
    const auto one = Limiter::create("one", token_bucket(1, minutes(1)), counters);
    const auto two = Limiter::create("two", token_bucket(1, minutes(1)), counters);
    const auto one_again = Limiter::create("one", token_bucket(1, minutes(1)), counters);
    EXPECT_TRUE(one->take("u", 1, start).allowed);
    EXPECT_TRUE(two->take("u", 1, start).allowed);
    EXPECT_FALSE(one_again->take("u", 1, start).allowed);
    EXPECT_EQ(counters->stats().keys, 2U);
}

TEST(Limiter, KeysMayBeAnyBytesOfAnyLength) {
    const auto limiter = Limiter::create("n", concurrency(1));
    const std::string_view hostile[] = {"",
                                        "\x1f",
                                        "a\x1f",
                                        {"\0", 1},
                                        "0\x1f"
                                        "a"};
    for (const std::string_view key : hostile) {
        EXPECT_TRUE(limiter->take(key, 1, start).allowed);
        EXPECT_FALSE(limiter->take(key, 1, start).allowed);
    }
    for (std::size_t size = max_key_bytes - 80; size < max_key_bytes + 3; ++size) {
        const std::string a(size, 'x');
        EXPECT_TRUE(limiter->take(a, 1, start).allowed) << size;
        EXPECT_FALSE(limiter->take(a, 1, start).allowed) << size;
    }
}

TEST(Limiter, NamesAndLimitsAreChecked) {
    const Limit limit = token_bucket(1, minutes(1));
    EXPECT_TRUE(Limiter::create(std::string(max_limiter_name_bytes, 'n'), limit).ok());
    EXPECT_FALSE(Limiter::create(std::string(max_limiter_name_bytes + 1, 'n'), limit).ok());
    EXPECT_FALSE(Limiter::create("", limit).ok());
    EXPECT_FALSE(Limiter::create("a\x1f", limit).ok());
    EXPECT_FALSE(Limiter::create("a", token_bucket(1, Nanos{0})).ok());
    EXPECT_FALSE(Limiter::create("a", std::initializer_list<Limit>{}).ok());
    EXPECT_TRUE(Limiter::create("a", {limit, limit, limit, limit, limit, limit, limit, limit, limit,
                                      limit, limit, limit, limit, limit, limit, limit})
                    .ok());
    EXPECT_FALSE(
        Limiter::create("a", {limit, limit, limit, limit, limit, limit, limit, limit, limit, limit,
                              limit, limit, limit, limit, limit, limit, limit})
            .ok());
}

TEST(Limiter, CountersThatGiveNoAnswerAreNeitherYesNorNo) {
    std::unique_ptr<Counters> memory = *open_memory_counters({});
    const auto failing = std::make_shared<FailingCounters>(*memory);
    const auto limiter = Limiter::create("a", token_bucket(1, minutes(1)), failing);
    failing->set_down(true);
    const Taken taken = limiter->take("u", 1, start);
    EXPECT_FALSE(taken.allowed);
    EXPECT_FALSE(taken.never);
    EXPECT_EQ(taken.status, absl::StatusCode::kUnavailable);
    EXPECT_EQ(taken.retry_after_seconds(), 0);
    failing->set_down(false);
    EXPECT_TRUE(limiter->take("u", 1, start).allowed);
}

}  // namespace
}  // namespace ration
