// The two kinds of text that a field line is made of (RFC 9110 5.5 and 5.6.2).
//
// Pure; any thread.
//
//   if (is_token(name) && is_field_value(value)) send(name, value);
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace ration {

using CharTable = std::array<bool, 256>;

// Letters, digits and `marks`.
[[nodiscard]] constexpr CharTable letters_digits_and(std::string_view marks) {
    CharTable table{};
    for (std::size_t c = 0; c < table.size(); ++c) {
        table[c] = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    }
    for (const char c : marks) {
        table[static_cast<unsigned char>(c)] = true;
    }
    return table;
}

[[nodiscard]] constexpr bool all_in(const CharTable& table, std::string_view text) {
    return std::all_of(text.begin(), text.end(),
                       [&](char c) { return table[static_cast<unsigned char>(c)]; });
}

inline constexpr CharTable token_chars = letters_digits_and("!#$%&'*+-.^_`|~");

[[nodiscard]] constexpr bool is_token_char(char c) {
    return token_chars[static_cast<unsigned char>(c)];
}

// A field's name, a method: at least one character.
[[nodiscard]] constexpr bool is_token(std::string_view text) {
    return !text.empty() && all_in(token_chars, text);
}

// No control character but TAB.
[[nodiscard]] constexpr bool is_field_value(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte == '\t' || (byte >= 0x20 && byte != 0x7F);
    });
}

}  // namespace ration
