// HTTP-date in its three forms (RFC 9110 5.6.7):
//   Mon, 30 Nov 2026 00:00:45 GMT      Monday, 30-Nov-26 00:00:45 GMT      Mon Nov 30 00:00:45 2026
//
// Names compare without case; the day's name must be one, but is not held against the date. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "ration/time.h"

namespace ration {

// nullopt when `text` is no such date. Two-digit years mean the one that is at most 50 years after
// `now`. What lies outside 1970 to 2262 is held at the bounds of what Wall can say.
[[nodiscard]] std::optional<Wall> parse_http_date(std::string_view text, Wall now);

}  // namespace ration
