// A header field as it stood on the wire: views into the caller's buffer.
#pragma once

#include <span>
#include <string_view>

namespace ration {

struct Header {
    std::string_view name;
    std::string_view value;  // without blanks around it
};

// The comparison below for texts of one length.
[[nodiscard]] bool same_length_equal_ignoring_case(std::string_view a, std::string_view b);

// ASCII comparison without case, as field names compare (RFC 9110 5.1). Length and first letter
// come first, in place: of a request's field names nearly all differ there.
[[nodiscard]] inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
    constexpr int case_bit = 0x20;
    return a.size() == b.size() && (a.empty() || (((a[0] ^ b[0]) & ~case_bit) == 0 &&
                                                  same_length_equal_ignoring_case(a, b)));
}

// The first field of that name, or nullptr.
[[nodiscard]] const Header* find_header(std::span<const Header> headers, std::string_view name);

// `text` without the spaces and tabs around it (RFC 9110 5.6.3, OWS).
[[nodiscard]] std::string_view without_blanks(std::string_view text);

}  // namespace ration
