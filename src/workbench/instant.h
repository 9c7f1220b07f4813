// Moments and spans as people and logs write them, exact to the nanosecond.
//
// Everything is decimal text in and decimal text out: no double is involved, so "0.1" is exactly
// 100,000,000 ns. Digits finer than a nanosecond are rounded to the nearest one, since programs
// that print doubles write 1.2999999999999998 for 1.3. Pure; any thread. Errors are InvalidArgument
// with a reason that can stand behind `file:line:column: `.
//
//   parse_instant("2026-03-01T12:00:00.25Z")   == parse_instant("1772366400.25")
//   decimal_seconds(std::chrono::milliseconds(800)) == "0.8"
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ration/time.h"

namespace ration {

// Moments outside [1970, 2200) are refused: waits of ten years can still be added to any of them.
inline constexpr Wall earliest_instant{};
inline constexpr Wall latest_instant{std::chrono::sys_days{std::chrono::year{2200} / 1 / 1}};

// A JSON number (sign, fraction and exponent allowed) taken as seconds; within +/- 230 years.
[[nodiscard]] absl::StatusOr<Nanos> parse_seconds(std::string_view number);

// RFC 3339 ("2026-03-01T12:00:00.25+01:00") or seconds since 1970-01-01T00:00:00Z.
[[nodiscard]] absl::StatusOr<Wall> read_instant(std::string_view text);

// "1.5s", "250ms", "10us", "1ns", "2m" or "2min", "1h", "3d", "1h30m", "0:01:00.5" (h:mm:ss), or
// bare seconds "1.5". One sign may stand in front.
[[nodiscard]] absl::StatusOr<Nanos> parse_span(std::string_view text);

// Seconds in as few digits as are exact: "0.8", "1", "-2.000000001".
[[nodiscard]] std::string decimal_seconds(Nanos span);

// "2026-03-01T12:00:00Z", with as many fraction digits as are needed.
[[nodiscard]] std::string rfc3339(Wall moment);

}  // namespace ration
