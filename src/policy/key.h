// The canonical key of one limit for one request: what state is kept under.
//
// Layout: the limit's identity, then each part, every one behind its length, so that no two
// different (name, parts) give the same bytes. A key that would pass `max_built_key_bytes` keeps
// its identity and has the rest replaced by a 256-bit BLAKE2b digest; whether that happens depends
// on the key alone, never on the buffer.
//
// Pure, no allocation; thread rule: call from anywhere. The view points into `buffer`.
//
//   std::array<char, ration::max_built_key_bytes> buffer;
//   std::uint16_t rule_bytes = 0;
//   const std::string_view parts[] = {"quote", "203.0.113.7"};
//   std::string_view key = ration::build_key(buffer, "caller budget", parts, rule_bytes);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ration {

inline constexpr std::size_t max_rule_name_bytes = 64;
inline constexpr std::size_t max_built_key_bytes = 256;  // 16 charges fit 4096 bytes

// Empty when `rule_name` is longer than `max_rule_name_bytes` or the key does not fit `buffer`;
// a buffer of `max_built_key_bytes` always suffices. `rule_bytes` gets the identity's length.
[[nodiscard]] std::string_view build_key(std::span<char> buffer, std::string_view rule_name,
                                         std::span<const std::string_view> parts,
                                         std::uint16_t& rule_bytes);

// A built key taken apart again: the identity, then the parts; for people who look at a store.
struct SplitKey {
    std::string_view name;
    std::vector<std::string_view> parts;  // none when they were digested
    bool digested = false;
};
// nullopt: not a built key. Views into `key`.
[[nodiscard]] std::optional<SplitKey> split_key(std::string_view key);

}  // namespace ration
