// What an answer's fields and body say about waiting. Reading never fails: what cannot be read is
// as if it were absent. Pure.
//
// A number below 10^9 is a delay in seconds; from 10^9 on it is Unix seconds, with 13 digits Unix
// milliseconds. Fractions are taken and rounded up, so that no wait is shortened. Waits saturate at
// `longest_hint`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ration/time.h"

namespace ration::client {

inline constexpr Nanos longest_hint = std::chrono::hours(365 * 24);

struct DelayOrMoment {
    Nanos wait{0};               // 0 for a moment that is past
    std::optional<Wall> moment;  // when it was given as one
};

// "12", "1.5", "1795996830": nullopt for anything but digits with at most one point between them.
[[nodiscard]] std::optional<DelayOrMoment> parse_delay_or_moment(std::string_view text, Wall now);

// Retry-After, a number or a date; nullopt unless there is something to wait for.
[[nodiscard]] std::optional<Nanos> parse_retry_after(std::string_view text, Wall now);

// The server's clock as its Date field tells it, else `now`.
[[nodiscard]] Wall server_now(std::optional<std::string_view> date, Wall now);

// `text` without blanks and tabs around it.
[[nodiscard]] std::string_view trim_blanks(std::string_view text);

struct ErrorBody {
    std::string type;           // error.type, else error, else type; empty: none
    std::optional<Nanos> wait;  // retry_after or retry_after_seconds
};

// Of a body longer than max_error_type_body_bytes, and of what is no JSON object, nothing is read.
[[nodiscard]] ErrorBody read_error_body(std::string_view body);

}  // namespace ration::client
