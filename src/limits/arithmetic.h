// Integer arithmetic that cannot wrap: products pass through 128 bits, results saturate.
#pragma once

#include <cstdint>
#include <limits>

namespace ration {

__extension__ using i128 = __int128;
__extension__ using u128 = unsigned __int128;

inline constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t int64_min = std::numeric_limits<std::int64_t>::min();

[[nodiscard]] inline std::int64_t saturating_sub(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (!__builtin_sub_overflow(a, b, &result)) {
        return result;
    }
    return b < 0 ? int64_max : int64_min;
}

[[nodiscard]] inline std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (!__builtin_add_overflow(a, b, &result)) {
        return result;
    }
    return b > 0 ? int64_max : int64_min;
}

[[nodiscard]] inline std::uint32_t saturating_add(std::uint32_t a, std::uint32_t b) {
    std::uint32_t result = 0;
    return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<std::uint32_t>::max()
                                                 : result;
}

// The largest multiple of `step` (above 0) that is not above `value`; right for negative values.
[[nodiscard]] inline std::int64_t floor_to(std::int64_t value, std::int64_t step) {
    std::int64_t rest = value % step;
    if (rest < 0) {
        rest += step;
    }
    return saturating_sub(value, rest);
}

// floor(a * b / c) and ceil(a * b / c) for c above 0, saturating at int64_max.
[[nodiscard]] inline std::int64_t mul_div_floor(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    std::uint64_t product = 0;
    if (!__builtin_mul_overflow(a, b, &product)) {
        const std::uint64_t quotient = c == 1 ? product : product / c;
        return quotient > static_cast<std::uint64_t>(int64_max)
                   ? int64_max
                   : static_cast<std::int64_t>(quotient);
    }
    const u128 quotient = static_cast<u128>(a) * b / c;
    return quotient > static_cast<u128>(int64_max) ? int64_max
                                                   : static_cast<std::int64_t>(quotient);
}

[[nodiscard]] inline std::int64_t mul_div_ceil(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    std::uint64_t product = 0;
    if (!__builtin_mul_overflow(a, b, &product) &&
        product <= static_cast<std::uint64_t>(int64_max)) {
        if (c == 1) {
            return static_cast<std::int64_t>(product);
        }
        return static_cast<std::int64_t>(product / c + (product % c != 0 ? 1 : 0));
    }
    const u128 whole = static_cast<u128>(a) * b;
    const u128 quotient = whole / c + (whole % c != 0 ? 1 : 0);
    return quotient > static_cast<u128>(int64_max) ? int64_max
                                                   : static_cast<std::int64_t>(quotient);
}

}  // namespace ration
