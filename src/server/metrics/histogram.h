// Counts of durations in fixed, log-linear steps: a histogram that many threads may add to.
//
// Units: nanoseconds in and bucket bounds; the sum is kept in the histogram's own unit so that it
// does not wrap where single values may be weeks long. A bound belongs to its bucket (value <=
// bound), as Prometheus reads `le`. Thread rule: any thread may call anything; a reading taken
// while others add may lack their latest values but never invents one. Nothing fails or allocates.
//
//   ration::Histogram latency(ration::latency_scale);
//   latency.add(std::chrono::microseconds(170));
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "ration/time.h"

namespace ration {

inline constexpr std::size_t max_buckets = 64;  // bounded ones; one more takes what is above

// The upper bounds of a histogram's buckets, ascending, and the unit of its sum.
struct HistogramScale {
    std::array<std::int64_t, max_buckets> bounds{};  // nanoseconds
    std::size_t size = 0;
    std::int64_t sum_unit = 1;  // nanoseconds
};

// `from` times each of `steps`, decade by decade, up to and including `to`.
[[nodiscard]] constexpr HistogramScale log_linear_scale(Nanos from, Nanos to,
                                                        std::span<const int> steps,
                                                        Nanos sum_unit) {
    HistogramScale scale;
    scale.sum_unit = sum_unit.count();
    for (std::int64_t decade = from.count(); scale.size < max_buckets; decade *= 10) {
        for (const int step : steps) {
            const std::int64_t bound = decade * step;
            if (bound > to.count() || scale.size == max_buckets) {
                return scale;
            }
            scale.bounds[scale.size++] = bound;
        }
    }
    return scale;
}

inline constexpr std::array every_step{1, 2, 3, 4, 5, 6, 7, 8, 9};
inline constexpr std::array coarse_steps{1, 2, 5};

// How long requests take: 10 us to 100 s in nine steps a decade.
inline constexpr HistogramScale latency_scale = log_linear_scale(
    std::chrono::microseconds(10), std::chrono::seconds(100), every_step, Nanos(1));
// How long refused callers are told to wait: 1 ms to 10,000,000 s (116 days) in three steps.
inline constexpr HistogramScale wait_scale =
    log_linear_scale(std::chrono::milliseconds(1), std::chrono::seconds(10'000'000), coarse_steps,
                     std::chrono::milliseconds(1));

// One reading; several may be merged.
struct HistogramCounts {
    std::array<std::uint64_t, max_buckets + 1> buckets{};  // the last bucket is the unbounded one
    std::uint64_t sum = 0;                                 // in the scale's unit

    [[nodiscard]] std::uint64_t total() const;
};

class Histogram {
public:
    // `scale` must outlive the histogram.
    explicit Histogram(const HistogramScale& scale) : scale_(&scale) {}

    // Negative values count as zero.
    void add(Nanos value);
    void merge_into(HistogramCounts& counts) const;
    [[nodiscard]] const HistogramScale& scale() const { return *scale_; }

private:
    const HistogramScale* scale_;
    std::array<std::atomic<std::uint64_t>, max_buckets + 1> buckets_{};
    std::atomic<std::uint64_t> sum_{0};
};

}  // namespace ration
