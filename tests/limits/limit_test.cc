// Which numbers a limit may have, how it is told to people, and that equal limits are one.
#include "ration/limit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace ration {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Nanos year_tenth = max_period / 100;

struct Case {
    Limit limit;
    std::string reason;  // part of the error; empty: valid
};

TEST(Validate, BoundsAreIncludedAndOnePastThemIsNot) {
    const std::vector<Case> cases{
        {token_bucket(1, max_period), ""},
        {token_bucket(1, max_period + Nanos(1)), "10 years"},
        {token_bucket(1'000'000, seconds(1)), ""},
        {token_bucket(1'000'001, seconds(1)), "1000000 per second"},
        {token_bucket(1, Nanos(1000)), ""},
        {token_bucket(1, Nanos(999)), "1000000 per second"},
        {token_bucket(4'000'000'000, seconds(1)), "at most 1000000000"},
        {token_bucket(max_amount, seconds(1000)), ""},
        {token_bucket(max_amount + 1, hours(1)), "at most 1000000000"},
        {token_bucket(1, seconds(1), max_amount), ""},
        {token_bucket(1, seconds(1), max_amount + 1), "burst"},
        {token_bucket(1, max_period, 20), ""},
        {token_bucket(1, max_period, 21), "200 years"},
        {token_bucket(1, year_tenth, max_amount), "200 years"},
        {token_bucket(0, seconds(1)), ""},
        {token_bucket(0, seconds(1), 5), "refills nothing"},
        {token_bucket(5, seconds(1), 0), ""},
        {token_bucket(1, Nanos{0}), "longer than 0"},
        {token_bucket(1, Nanos{-1}), "longer than 0"},
        {fixed_window(60, minutes(1), true), ""},
        {fixed_window(50'000'000, hours(720)), ""},
        {fixed_window(5, hours(24) * 365), ""},
        {fixed_window(0, seconds(1)), ""},
        {fixed_window(1, max_period + Nanos(1)), "10 years"},
        {sliding_window(max_sliding_amount, minutes(1)), ""},
        {sliding_window(max_sliding_amount + 1, minutes(1)), "at most 100000"},
        {sliding_counter(max_amount, hours(24)), ""},
        {concurrency(0), ""},
        {concurrency(max_amount), ""},
        {concurrency(max_amount + 1), "at most 1000000000"},
        {{.kind = LimitKind::concurrency, .amount = 1, .capacity = 1, .period = seconds(1)},
         "no period"},
        {{.kind = LimitKind::fixed_window, .amount = 1, .capacity = 2, .period = seconds(1)},
         "burst"},
        {{.count_attempts = true, .amount = 1, .capacity = 1, .period = seconds(1)}, "attempts"},
    };
    for (const Case& item : cases) {
        const absl::Status status = validate(item.limit);
        if (item.reason.empty()) {
            EXPECT_TRUE(status.ok()) << to_string(item.limit) << ": " << status;
        } else {
            EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << to_string(item.limit);
            EXPECT_NE(status.message().find(item.reason), absl::string_view::npos) << status;
        }
        EXPECT_EQ(LimitRef::of(item.limit).ok(), status.ok());
    }
}

TEST(ToString, IsForPeople) {
    EXPECT_EQ(to_string(token_bucket(60, minutes(1))), "60/min");
    EXPECT_EQ(to_string(token_bucket(10, seconds(13), 40)), "10 per 13s, burst 40");
    EXPECT_EQ(to_string(token_bucket(5, milliseconds(1500))), "5 per 1500ms");
    EXPECT_EQ(to_string(token_bucket(1, hours(24))), "1/day");
    EXPECT_EQ(to_string(token_bucket(1, hours(24) * 30)), "1 per 30d");
    EXPECT_EQ(to_string(fixed_window(60, minutes(1), true)),
              "60/min (fixed window), counting attempts");
    EXPECT_EQ(to_string(sliding_window(2, hours(1))), "2/h (sliding window)");
    EXPECT_EQ(to_string(sliding_counter(2, seconds(1))), "2/s (sliding counter)");
    EXPECT_EQ(to_string(concurrency(100)), "100 in flight");
}

TEST(LimitRef, EqualLimitsAreOne) {
    const LimitRef one = *LimitRef::of(token_bucket(60, minutes(1)));
    const LimitRef same = *LimitRef::of(token_bucket(60, seconds(60), 60));
    const LimitRef other = *LimitRef::of(fixed_window(60, minutes(1)));
    EXPECT_EQ(one, same);
    EXPECT_EQ(&*one, &*same);
    EXPECT_FALSE(one == other);
    EXPECT_EQ(LimitRef::from_id(other.id()), other);
    EXPECT_EQ(one->amount, 60U);
    EXPECT_FALSE(LimitRef());
}

TEST(LimitRef, RatesAreInLowestTerms) {
    const LimitRef::Entry& entry = (*LimitRef::of(token_bucket(60, minutes(1)))).entry();
    EXPECT_EQ(entry.rate_tokens, 1U);
    EXPECT_EQ(entry.rate_nanos, 1'000'000'000U);
    const LimitRef::Entry& seven = (*LimitRef::of(token_bucket(7, Nanos(11'000)))).entry();
    EXPECT_EQ(seven.rate_tokens, 7U);
    EXPECT_EQ(seven.rate_nanos, 11'000U);
    EXPECT_EQ((*LimitRef::of(token_bucket(0, seconds(1)))).entry().rate_tokens, 0U);
}

TEST(LimitRef, ThreadsThatInternTheSameLimitsAgree) {
    constexpr std::uint64_t count = 5000;
    std::vector<std::vector<std::uint32_t>> ids(4, std::vector<std::uint32_t>(count));
    {
        std::vector<std::jthread> threads;
        for (std::vector<std::uint32_t>& mine : ids) {
            threads.emplace_back([&mine] {
                for (std::uint64_t i = 0; i < count; ++i) {
                    const Limit limit = token_bucket(i + 1, hours(77));
                    const LimitRef ref = *LimitRef::of(limit);
                    mine[i] = *LimitRef::from_id(ref.id()) == limit ? ref.id() : 0xffffffff;
                }
            });
        }
    }
    for (const std::vector<std::uint32_t>& mine : ids) {
        EXPECT_EQ(mine, ids[0]);
    }
    EXPECT_EQ(std::count(ids[0].begin(), ids[0].end(), 0xffffffffU), 0);
}

}  // namespace
}  // namespace ration
