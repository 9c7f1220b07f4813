// Words that differ in nothing but the case of ASCII letters: names of fields, of days, of schemes.
// For short ones; pure.
//
//   if (same_word(name, "retry-after")) ...
#pragma once

#include <cstddef>
#include <string_view>

namespace ration {

[[nodiscard]] constexpr bool same_word(std::string_view a, std::string_view b) {
    const auto lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    if (a.size() != b.size()) {
        return false;
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] != b[i] && lower(a[i]) != lower(b[i])) {
            return false;
        }
    }
    return true;
}

}  // namespace ration
