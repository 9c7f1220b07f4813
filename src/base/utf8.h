// Whether bytes are UTF-8 (Unicode 15, table 3-7): no overlong forms, no surrogates.
#pragma once

#include <cstddef>
#include <string_view>

namespace ration {

// Takes bytes one at a time.
class Utf8Check {
public:
    // False when `c` cannot stand here; the check is of no use from then on.
    bool take(unsigned char c) {
        if (open_ > 0) {
            const bool good = c >= low_ && c <= high_;
            low_ = 0x80;
            high_ = 0xBF;
            --open_;
            return good;
        }
        if (c < 0x80) {
            return true;
        }
        low_ = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
        high_ = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
        open_ = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
        return c >= 0xC2 && c <= 0xF4;
    }
    // No sequence is left open.
    [[nodiscard]] bool complete() const { return open_ == 0; }

private:
    int open_ = 0;
    unsigned char low_ = 0x80;
    unsigned char high_ = 0xBF;
};

// Length of the character at the front of `text`; 0 when there is none.
[[nodiscard]] inline std::size_t utf8_length(std::string_view text) {
    Utf8Check check;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (!check.take(static_cast<unsigned char>(text[i]))) {
            return 0;
        }
        if (check.complete()) {
            return i + 1;
        }
    }
    return 0;
}

[[nodiscard]] inline bool is_utf8(std::string_view text) {
    Utf8Check check;
    for (const char c : text) {
        if (!check.take(static_cast<unsigned char>(c))) {
            return false;
        }
    }
    return check.complete();
}

}  // namespace ration
