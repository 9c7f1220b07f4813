// One warning when the counters stop answering, one line when they answer again: requests are far
// too many to log each, and an outage must not pass unsaid.
//
// Thread rule: one thread but for `down`. Units: running totals of requests, as in MetricsTotals.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "server/process/log.h"

namespace ration {

class StoreWatch {
public:
    explicit StoreWatch(Log& log) : log_(log) {}

    // Called every second or so with the totals so far.
    // `trouble`: what the store last had to say for itself, for the warning.
    void look(std::uint64_t answers, std::uint64_t failures, const std::string& trouble = {});

    // As of the last look; any thread.
    [[nodiscard]] bool down() const { return down_.load(std::memory_order_relaxed); }

private:
    Log& log_;
    std::uint64_t answers_ = 0;
    std::uint64_t failures_ = 0;
    std::atomic<bool> down_{false};
};

}  // namespace ration
