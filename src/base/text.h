// Joining pieces of text. Debian's Abseil has a string_view type of its own, which std::string_view
// does not convert to, so absl::StrCat does not take our views; `cat` does.
//
//   std::string reason = cat("unknown route '", name, "', line ", 12);
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

namespace ration {

// Pieces are text, single characters and integers.
template <typename Piece>
void append(std::string& out, const Piece& piece) {
    if constexpr (std::is_convertible_v<const Piece&, std::string_view>) {
        out += std::string_view(piece);
    } else if constexpr (std::same_as<Piece, char>) {
        out += piece;
    } else {
        static_assert(std::integral<Piece> && !std::same_as<Piece, bool>);
        char digits[24];
        out.append(digits, std::to_chars(digits, digits + sizeof digits, piece).ptr);
    }
}

// Equal but for the case of ASCII letters. For short words: names of fields, days, schemes.
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

template <typename... Pieces>
void append_all(std::string& out, const Pieces&... pieces) {
    (append(out, pieces), ...);
}

template <typename... Pieces>
[[nodiscard]] std::string cat(const Pieces&... pieces) {
    std::string out;
    append_all(out, pieces...);
    return out;
}

}  // namespace ration
