// Times as text, exact to the nanosecond: decimal seconds, instants, HTTP dates, whole seconds.
//
// No binary fraction is involved: "0.1" is 100,000,000 ns. What does not fit the nanosecond range
// (years 1677 to 2262) or is finer than a nanosecond is an error, never rounded. Pure; parsing
// allocates only to say what is wrong.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "ration/time.h"

namespace ration {

inline constexpr std::size_t max_decimal_bytes = 32;       // of one written time
inline constexpr std::size_t max_number_text_bytes = 128;  // of one read

// "0.8", "20", "-1.5": no trailing zeros, no exponent.
[[nodiscard]] std::string_view decimal_seconds(Nanos value, std::span<char, max_decimal_bytes> out);

// A number as JSON writes it, in seconds: "12", "-0.25", "1.7e9".
[[nodiscard]] absl::StatusOr<Nanos> parse_decimal_seconds(std::string_view text);

// RFC 3339 with or without a fraction ("2026-03-08T06:59:59.5-05:00"), or epoch seconds as a
// decimal number. A leap second (23:59:60 UTC) is the moment after it, as in epoch seconds.
[[nodiscard]] absl::StatusOr<Wall> parse_instant(std::string_view text);

// "2026-03-08T11:59:59.5Z"; the fraction as long as needed, left out when it is zero.
[[nodiscard]] std::string_view rfc3339(Wall at, std::span<char, max_decimal_bytes> out);

// IMF-fixdate (RFC 9110 5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT"; fractions are cut.
[[nodiscard]] std::string_view http_date(Wall at, std::span<char, max_decimal_bytes> out);

// The least number of whole seconds that is not shorter; negative waits are none.
[[nodiscard]] std::uint64_t seconds_rounded_up(Nanos wait);

// The same for Retry-After: at least 1, as 0 would ask for an answer that is a refusal again.
[[nodiscard]] std::uint64_t retry_after_seconds(Nanos wait);

// Epoch seconds of a moment, rounded up; 0 before 1970.
[[nodiscard]] std::uint64_t epoch_seconds_rounded_up(Wall at);

// `at + by`, held at the last representable moment.
[[nodiscard]] Wall moment_after(Wall at, Nanos by);

}  // namespace ration
