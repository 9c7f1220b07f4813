#include "server/metrics/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace ration {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

HistogramCounts counts_of(const Histogram& histogram) {
    HistogramCounts counts;
    histogram.merge_into(counts);
    return counts;
}

TEST(Histogram, ScalesAreLogLinear) {
    ASSERT_EQ(latency_scale.size, max_buckets);
    EXPECT_EQ(Nanos(latency_scale.bounds[0]), microseconds(10));
    EXPECT_EQ(Nanos(latency_scale.bounds[8]), microseconds(90));
    EXPECT_EQ(Nanos(latency_scale.bounds[9]), microseconds(100));
    EXPECT_EQ(Nanos(latency_scale.bounds[63]), seconds(100));
    EXPECT_EQ(Nanos(wait_scale.bounds[wait_scale.size - 1]), seconds(10'000'000));
    for (std::size_t i = 1; i < wait_scale.size; ++i) {
        EXPECT_LT(wait_scale.bounds[i - 1], wait_scale.bounds[i]);
    }
}

TEST(Histogram, ABoundBelongsToItsBucket) {
    const struct {
        std::int64_t nanos;
        std::size_t bucket;
    } cases[] = {
        {-5, 0},
        {0, 0},
        {10'000, 0},
        {10'001, 1},
        {100'000, 9},
        {100'000'000'000, 63},
        {100'000'000'001, max_buckets},
    };
    for (const auto& one : cases) {
        Histogram histogram(latency_scale);
        histogram.add(Nanos(one.nanos));
        const HistogramCounts counts = counts_of(histogram);
        EXPECT_EQ(counts.buckets[one.bucket], 1U) << one.nanos;
        EXPECT_EQ(counts.total(), 1U);
        EXPECT_EQ(counts.sum, static_cast<std::uint64_t>(std::max<std::int64_t>(one.nanos, 0)));
    }
}

TEST(Histogram, WaitsAboveEveryBoundAreKeptToo) {
    Histogram histogram(wait_scale);
    histogram.add(seconds(20'000'000));
    const HistogramCounts counts = counts_of(histogram);
    EXPECT_EQ(counts.buckets[max_buckets], 1U);
    EXPECT_EQ(counts.sum, 20'000'000'000U);  // milliseconds
}

TEST(Histogram, NothingIsLostBetweenThreads) {
    Histogram histogram(latency_scale);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 10'000; ++i) {
                histogram.add(microseconds(i % 200));
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(counts_of(histogram).total(), 40'000U);
}

}  // namespace
}  // namespace ration
