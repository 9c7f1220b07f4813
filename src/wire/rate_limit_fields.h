// Rate-limit response fields: one limit's numbers in the words of each header family.
//
// Families differ in names, grammar and in what "reset" means, so a response uses one of them.
//   x_ratelimit     X-RateLimit-Limit, -Remaining, -Reset; reset in epoch seconds
//   ietf_draft_03   RateLimit-Limit ("100, 100;w=60"), -Remaining, -Reset; reset in seconds from
//   now ietf_draft_10   RateLimit-Policy and RateLimit, structured fields (RFC 9651) named by the
//   policy:
//                   "daily";q=1000;w=86400 and "daily";r=999;t=12, `t` being when more can be had
//
// Pure; no heap. Numbers above 999,999,999,999,999 are clamped to it, as structured fields hold no
// more. Times are rounded up: whoever waits what a field says has waited long enough.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "ration/time.h"

namespace ration {

enum class HeaderFamily : std::uint8_t {
    none,
    ratelimit_remaining_on_refusal,  // RateLimit-Remaining: 0 on the refusal, nothing else
    x_ratelimit,                     // X-RateLimit-Limit, -Remaining, -Reset (epoch seconds)
    ietf_draft_10,                   // RateLimit-Policy and RateLimit, structured fields
    ietf_draft_03,                   // RateLimit-Limit, -Remaining, -Reset (delta seconds)
};

// The most a structured-field Integer holds (RFC 9651 3.3.1).
inline constexpr std::uint64_t max_field_integer = 999'999'999'999'999;
inline constexpr std::size_t max_field_name_bytes = 128;  // of a limit's name in a field

struct RateLimitNumbers {
    std::string_view name;  // the limit's; draft 10 only
    bool refused = false;
    std::uint64_t limit = 0;   // capacity: the most that can be had at once
    std::uint64_t amount = 0;  // units per window, where that is not the capacity; else 0
    std::uint64_t remaining = 0;
    Nanos window{0};            // 0: no window to tell (concurrency)
    bool concurrent = false;    // units in flight: `qu="concurrent-requests"`
    std::optional<Nanos> next;  // until more than `remaining` can be had; nullopt or 0: not told
    Nanos reset{0};             // until the window ends, or until all of it can be had again
    Wall now{};
};

using RateLimitFieldSink = absl::FunctionRef<void(std::string_view name, std::string_view value)>;

// Calls `sink` for each field of the family; the value is good during the call only. Nothing is
// sent of draft 10 under a name that `is_field_name_text` refuses, nor a window that is not whole
// seconds (fields have no fractions), nor a reset for units in flight (nobody knows it).
void render_rate_limit_fields(HeaderFamily family, const RateLimitNumbers& numbers,
                              RateLimitFieldSink sink);

// The fields' names, for exposing them to browser scripts; those not used are empty.
struct RateLimitFieldNames {
    std::string_view names[3];
};
[[nodiscard]] RateLimitFieldNames rate_limit_field_names(HeaderFamily family);

// Whether a limit may have that name under draft 10: 1 to max_field_name_bytes printable ASCII
// characters, as a structured-field String holds nothing else.
[[nodiscard]] bool is_field_name_text(std::string_view name);

}  // namespace ration
