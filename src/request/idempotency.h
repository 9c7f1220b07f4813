// The Idempotency-Key of a request and the fingerprint of what it asks.
//
// Key: one field, 1 to 255 visible ASCII characters. A structured-field string ("abc") and the bare
// characters (abc) are the same key (draft-ietf-httpapi-idempotency-key-header asks for the first,
// practice sends the second).
//
// Fingerprint: SHA-256 over method, path, query and body. A query's escapes are brought to one
// spelling (RFC 3986 6.2.2); its parameters stay in their order. A JSON body (media type
// application/json or ...+json) is compared by value: order of members and blanks do not matter,
// strings count after unescaping, numbers as exact decimals (1.0 is 1, 1e400 is not infinite). A
// body that is not one valid JSON text, repeats a member name or is nested deeper than
// `max_json_depth` counts by its bytes, as every other media type does.
//
// Pure; thread rule: any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "request/header.h"

namespace ration {

inline constexpr std::size_t max_idempotency_key_bytes = 255;
inline constexpr std::size_t max_json_depth = 128;

// nullopt: no such field. InvalidArgument: several fields, empty, too long, or other characters.
[[nodiscard]] absl::StatusOr<std::optional<std::string_view>> idempotency_key(
    std::span<const Header> headers, std::string_view field_name, std::span<char> buffer);

enum class BodyComparison : std::uint8_t { by_value, bytes };

struct FingerprintInput {
    std::string_view method;
    std::string_view path;  // normalised
    std::string_view query;
    std::string_view media_type;  // the Content-Type field's value, parameters and all
    std::string_view body;
    BodyComparison comparison = BodyComparison::by_value;
};

[[nodiscard]] std::array<std::uint8_t, 32> fingerprint(const FingerprintInput& input);

// The one spelling of a JSON text's value, or nullopt when it has to count by its bytes.
[[nodiscard]] std::optional<std::string> canonical_json(std::string_view text);

}  // namespace ration
