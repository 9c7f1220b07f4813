// Words that differ in nothing but the case of ASCII letters: names of fields (RFC 9110 5.1), of
// days, of schemes. Pure; any thread.
//
//   if (same_word(name, "retry-after")) ...
#pragma once

#include <cstddef>
#include <string_view>

namespace ration {

// The comparison below for words of one length.
[[nodiscard, gnu::noinline]] constexpr bool same_letters(std::string_view a, std::string_view b) {
    const auto lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    if (a == b) {
        return true;
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] != b[i] && lower(a[i]) != lower(b[i])) {
            return false;
        }
    }
    return true;
}

// Length and first letter come first, in place: of a request's field names nearly all differ there.
[[nodiscard]] constexpr bool same_word(std::string_view a, std::string_view b) {
    constexpr int case_bit = 0x20;
    return a.size() == b.size() &&
           (a.empty() || (((a[0] ^ b[0]) & ~case_bit) == 0 && same_letters(a, b)));
}

[[nodiscard]] constexpr bool begins_with_word(std::string_view text, std::string_view word) {
    return text.size() >= word.size() && same_word(text.substr(0, word.size()), word);
}

template <typename Words>
[[nodiscard]] constexpr bool is_one_of(std::string_view word, const Words& words) {
    for (const std::string_view one : words) {
        if (same_word(one, word)) {
            return true;
        }
    }
    return false;
}

}  // namespace ration
