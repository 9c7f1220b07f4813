// One spelling of a request target: what is matched, keyed and forwarded.
//
// RFC 3986 section 6.2.2: percent-encoded unreserved characters are decoded, other escapes get
// upper-case digits; `.` and `..` segments are removed (also when encoded), runs of `/` become one.
// An encoded slash (%2F), backslash or NUL, a broken escape, a control or non-ASCII byte and a `..` that climbs
// above the root are refused: two servers could read them differently. The query is passed on as it
// is. Absolute-form targets (RFC 9112 3.2.2) lose their scheme and authority; `*` is only for OPTIONS.
//
// Pure; no allocation.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"

namespace ration {

inline constexpr std::size_t max_target_bytes = 8192;

struct NormalTarget {
    std::string_view path;       // starts with '/', in the buffer given
    std::string_view query;      // without '?'
    bool has_query = false;
    std::string_view authority;  // of an absolute-form target, else empty
};

// Writes the path into `buffer` (as long as `target` at least) and returns views of it and of
// `target`. InvalidArgument with the reason when the target is refused.
[[nodiscard]] absl::StatusOr<NormalTarget> normal_target(std::string_view target,
                                                         std::span<char> buffer);

}  // namespace ration
