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

template <typename... Pieces>
[[nodiscard]] std::string cat(const Pieces&... pieces) {
    std::string out;
    (append(out, pieces), ...);
    return out;
}

}  // namespace ration
