// Text in a buffer on the stack, for writers that must not allocate.
//
// What does not fit is dropped and remembered: `ok()` is false from then on. Writers written for
// "anything with push_back and append" take this as they take std::string.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <string_view>

namespace ration {

template <std::size_t Size>
class FixedText {
public:
    void push_back(char c) {
        if (size_ == Size) {
            ok_ = false;
            return;
        }
        bytes_[size_++] = c;
    }
    void append(std::string_view text) {
        for (const char c : text) {
            push_back(c);
        }
    }
    void append_integer(std::integral auto value) {
        char digits[24];
        const char* end = std::to_chars(digits, digits + sizeof digits, value).ptr;
        append({digits, static_cast<std::size_t>(end - digits)});
    }
    void clear() {
        size_ = 0;
        ok_ = true;
    }
    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] std::string_view view() const { return {bytes_.data(), size_}; }

private:
    std::array<char, Size> bytes_;
    std::size_t size_ = 0;
    bool ok_ = true;
};

}  // namespace ration
