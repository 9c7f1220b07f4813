// One warning when the counters stop answering, one line when they answer again: requests are far
// too many to log each, and an outage must not pass unsaid.
//
// Thread rule: one thread. Units: running totals of requests, as in MetricsTotals.
#pragma once

#include <cstdint>

#include "server/process/log.h"

namespace ration {

class StoreWatch {
public:
    explicit StoreWatch(Log& log) : log_(log) {}

    // Called every second or so with the totals so far.
    void look(std::uint64_t answers, std::uint64_t failures);

private:
    Log& log_;
    std::uint64_t answers_ = 0;
    std::uint64_t failures_ = 0;
    bool down_ = false;
};

}  // namespace ration
