#include "request/header.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace ration {

bool same_length_equal_ignoring_case(std::string_view a, std::string_view b) {
    return a == b || std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
               return absl::ascii_tolower(static_cast<unsigned char>(x)) ==
                      absl::ascii_tolower(static_cast<unsigned char>(y));
           });
}

const Header* find_header(std::span<const Header> headers, std::string_view name) {
    for (const Header& header : headers) {
        if (equal_ignoring_case(header.name, name)) {
            return &header;
        }
    }
    return nullptr;
}

std::string_view without_blanks(std::string_view text) {
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!text.empty() && blank(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && blank(text.back())) {
        text.remove_suffix(1);
    }
    return text;
}

}  // namespace ration
