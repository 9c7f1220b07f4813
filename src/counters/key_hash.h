// The keyed 64-bit hash of a canonical key: SipHash-2-4, never 0.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ration {

class KeyHash {
public:
    // With a key from the operating system.
    KeyHash();
    explicit KeyHash(const std::array<std::uint8_t, 16>& key) : key_(key) {}

    [[nodiscard]] std::uint64_t operator()(std::string_view text) const;

private:
    std::array<std::uint8_t, 16> key_{};
};

}  // namespace ration
