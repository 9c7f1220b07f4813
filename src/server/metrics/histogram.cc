#include "server/metrics/histogram.h"

#include <algorithm>
#include <numeric>

namespace ration {

std::uint64_t HistogramCounts::total() const {
    return std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0});
}

void Histogram::add(Nanos value) {
    const std::int64_t nanos = std::max<std::int64_t>(value.count(), 0);
    const auto begin = scale_->bounds.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(scale_->size);
    const auto bucket = std::lower_bound(begin, end, nanos);
    // What is above every bound lands in the array's last bucket, whatever the scale's size.
    const std::size_t index =
        bucket == end ? max_buckets : static_cast<std::size_t>(bucket - begin);
    buckets_[index].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(static_cast<std::uint64_t>(nanos / scale_->sum_unit), std::memory_order_relaxed);
}

void Histogram::merge_into(HistogramCounts& counts) const {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
        counts.buckets[i] += buckets_[i].load(std::memory_order_relaxed);
    }
    counts.sum += sum_.load(std::memory_order_relaxed);
}

}  // namespace ration
