// One spelling of a request target: what is matched, keyed and forwarded.
//
// RFC 3986 section 6.2.2: percent-encoded unreserved characters are decoded, other escapes get
// upper-case digits; `.` and `..` segments are removed (also when encoded), runs of `/` become one.
// Characters that no URI may hold but browsers send all the same (`"<>[]^{|}` and the backtick) get
// escaped. Refused, because two servers could read them differently: an encoded slash, backslash or
// control character, a raw backslash, control or non-ASCII byte, a broken escape, escapes that do
// not spell UTF-8 (overlong forms among them), `;` (path parameters, which some servers cut off
// before they route), a fragment, and a `..` that climbs above the root. The query is passed on as
// it is, without control bytes, blanks, `#` and non-ASCII bytes, which are refused.
//
// Absolute-form targets (RFC 9112 3.2.2) lose their scheme and authority. `*` gives the path "*",
// which no route matches; it is for OPTIONS only, which the caller has to see to. The authority
// form
// ("host:443") is refused.
//
// Normalising twice changes nothing. Pure; no allocation unless refused.
//
//   std::array<char, max_target_bytes> buffer;
//   auto target = normal_target("/v1/%62ookings//7?day=2", buffer);
//   target->path == "/v1/bookings/7"; target->query == "day=2";
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"

namespace ration {

inline constexpr std::size_t max_target_bytes = 8192;

struct NormalTarget {
    std::string_view path;   // starts with '/' (or is "*"), in the buffer given
    std::string_view query;  // without '?'
    bool has_query = false;
    std::string_view authority;  // of an absolute-form target, else empty
};

// Writes the path into `buffer` (as long as `target` at least) and returns views of it and of
// `target`. InvalidArgument with the reason when the target is refused; OutOfRange when it is
// longer than `max_target_bytes`, or escaping makes the path longer than `buffer`.
[[nodiscard]] absl::StatusOr<NormalTarget> normal_target(std::string_view target,
                                                         std::span<char> buffer);

// What a segment or a query value means once its escapes are undone: "t%3A1" and "t:1" are the same
// thing to the server, so keys are built from this. A broken escape stands for itself. Cut at the
// size of `out`; `out` as long as `text` holds everything.
enum class PlusSign : bool { itself, blank };  // `+` is a blank in form-encoded queries
[[nodiscard]] std::string_view percent_decoded(std::string_view text, std::span<char> out,
                                               PlusSign plus = PlusSign::itself);

// -1 when not a hexadecimal digit.
[[nodiscard]] int hex_value(char c);

}  // namespace ration
