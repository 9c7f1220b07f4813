#include "counters/redis/monitor.h"

namespace ration {

void RedisMonitor::answered(Nanos took) {
    add(answered_, 1);
    add(latency_sum_, static_cast<std::uint64_t>(took.count() > 0 ? took.count() : 0));
    for (std::size_t i = 0; i < redis_latency_buckets; ++i) {
        if (took.count() <= redis_latency_bounds[i]) {
            return add(latency_[i], 1);
        }
    }
}

void RedisMonitor::trouble(std::string_view what) {
    const std::lock_guard lock(mutex_);
    trouble_ = what;
}

RedisStats RedisMonitor::stats() const {
    const auto read = [](const Count& count) { return count.load(std::memory_order_relaxed); };
    RedisStats stats;
    stats.answered = read(answered_);
    for (std::size_t i = 0; i < redis_failures; ++i) {
        stats.failed[i] = read(failed_[i]);
    }
    stats.connects = read(connects_);
    stats.connections = read(connections_);
    stats.ready = read(ready_);
    stats.script_loads = read(script_loads_);
    stats.waiting = read(waiting_);
    for (std::size_t i = 0; i < redis_latency_buckets; ++i) {
        stats.latency[i] = read(latency_[i]);
    }
    stats.latency_sum = read(latency_sum_);
    const std::lock_guard lock(mutex_);
    stats.trouble = trouble_;
    return stats;
}

}  // namespace ration
