// The limits that an answer tells of, in any of the header families:
//   RateLimit: "name";r=50;t=30                     structured
//   (draft-ietf-httpapi-ratelimit-headers) RateLimit-Remaining, RateLimit-Reset            its
//   earlier drafts X-RateLimit-Remaining, X-RateLimit-Reset        before any draft
//
// A family with a malformed number is ignored whole. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "ration/time.h"

namespace ration::client {

inline constexpr std::size_t max_limit_field_bytes = 4096;
inline constexpr std::size_t max_told_limits = 16;  // of one field

struct ToldLimit {
    std::string name;
    std::uint64_t remaining = 0;
    std::optional<Nanos> reset_in;   // nullopt: no time was given
    std::optional<Wall> reset_date;  // when it was given as a clock time

    friend bool operator==(const ToldLimit&, const ToldLimit&) = default;
};

// The whole value of a field, several lines joined by ", "; nullopt when it is not there.
using FieldReader = absl::FunctionRef<std::optional<std::string>(std::string_view name)>;

[[nodiscard]] std::vector<ToldLimit> parse_limit_fields(FieldReader field, Wall now);

}  // namespace ration::client
