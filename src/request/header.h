// A header field as it stood on the wire: views into the caller's buffer.
#pragma once

#include <span>
#include <string_view>

#include "base/same_word.h"

namespace ration {

struct Header {
    std::string_view name;
    std::string_view value;  // without blanks around it
};

// As field names compare (RFC 9110 5.1).
[[nodiscard]] inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
    return same_word(a, b);
}

// The first field of that name, or nullptr.
[[nodiscard]] const Header* find_header(std::span<const Header> headers, std::string_view name);

// `text` without the spaces and tabs around it (RFC 9110 5.6.3, OWS).
[[nodiscard]] std::string_view without_blanks(std::string_view text);

}  // namespace ration
