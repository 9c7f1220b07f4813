#include "request/header.h"

namespace ration {

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
