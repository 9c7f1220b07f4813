// A limit's numbers as the script counts: whole microseconds, exact in doubles.
#pragma once

#include <cstdint>
#include <optional>

#include "ration/limit.h"

namespace ration {

struct RedisNumbers {
    std::uint8_t kind = 0;  // of the script; 8 more: attempts count
    double a = 0;           // capacity or amount
    double b = 0;           // bucket: tokens per `c`; else the period
    double c = 0;           // bucket: microseconds
};

// Nothing when the script could not be exact (`fits_redis` says why).
[[nodiscard]] std::optional<RedisNumbers> redis_numbers(const LimitRef::Entry& numbers);

}  // namespace ration
