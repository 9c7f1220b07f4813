#include "request/idempotency.h"

#include <sodium.h>

#include <algorithm>

#include "request/path.h"

namespace ration {

namespace {

bool is_visible(char c) {
    return c >= 0x21 && c <= 0x7e;
}

// The characters of a structured-field string, unescaped into `buffer`; nullopt: not one.
std::optional<std::string_view> unquoted(std::string_view value, std::span<char> buffer) {
    if (value.size() < 2 || !value.ends_with('"')) {
        return std::nullopt;
    }
    value = value.substr(1, value.size() - 2);
    std::size_t size = 0;
    for (std::size_t i = 0; i < value.size(); ++i) {
        char c = value[i];
        if (c == '\\') {
            ++i;
            if (i == value.size() || (value[i] != '"' && value[i] != '\\')) {
                return std::nullopt;
            }
            c = value[i];
        } else if (c == '"') {
            return std::nullopt;
        }
        if (size == buffer.size()) {
            return std::nullopt;
        }
        buffer[size++] = c;
    }
    return std::string_view(buffer.data(), size);
}

bool is_json(std::string_view media_type) {
    media_type = media_type.substr(0, media_type.find(';'));
    while (media_type.ends_with(' ') || media_type.ends_with('\t')) {
        media_type.remove_suffix(1);
    }
    constexpr std::string_view suffix = "+json";
    return equal_ignoring_case(media_type, "application/json") ||
           (media_type.size() > suffix.size() &&
            equal_ignoring_case(media_type.substr(media_type.size() - suffix.size()), suffix));
}

// Each part with its length before it, so that no two inputs run together.
void add(crypto_hash_sha256_state& state, std::string_view part) {
    std::array<unsigned char, 8> size{};
    for (std::size_t i = 0; i < size.size(); ++i) {
        size[i] = static_cast<unsigned char>(part.size() >> (8 * i));
    }
    crypto_hash_sha256_update(&state, size.data(), size.size());
    crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char*>(part.data()),
                              part.size());
}

// Escapes of unreserved characters undone, the others in upper case. A broken one stands for
// itself.
std::string canonical_query(std::string_view query) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string out;
    out.reserve(query.size());
    for (std::size_t i = 0; i < query.size(); ++i) {
        const int high = query[i] == '%' && i + 2 < query.size() ? hex_value(query[i + 1]) : -1;
        const int low = high >= 0 ? hex_value(query[i + 2]) : -1;
        if (low < 0) {
            out += query[i];
            continue;
        }
        const auto c = static_cast<char>(high * 16 + low);
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (letter || (c >= '0' && c <= '9') ||
            std::string_view("-._~").find(c) != std::string_view::npos) {
            out += c;
        } else {
            out += {'%', digits[static_cast<std::size_t>(high)],
                    digits[static_cast<std::size_t>(low)]};
        }
        i += 2;
    }
    return out;
}

}  // namespace

absl::StatusOr<std::optional<std::string_view>> idempotency_key(std::span<const Header> headers,
                                                                std::string_view field_name,
                                                                std::span<char> buffer) {
    const Header* field = nullptr;
    for (const Header& header : headers) {
        if (!equal_ignoring_case(header.name, field_name)) {
            continue;
        }
        if (field != nullptr) {
            return absl::InvalidArgumentError("the idempotency key is given more than once");
        }
        field = &header;
    }
    if (field == nullptr) {
        return std::optional<std::string_view>();
    }
    std::string_view key = field->value;
    if (key.starts_with('"')) {
        const std::optional<std::string_view> text = unquoted(key, buffer);
        if (!text) {
            return absl::InvalidArgumentError("the idempotency key is not a well-formed string");
        }
        key = *text;
    }
    if (key.empty() || key.size() > max_idempotency_key_bytes ||
        !std::all_of(key.begin(), key.end(), is_visible)) {
        return absl::InvalidArgumentError(
            "an idempotency key is 1 to 255 visible ASCII characters");
    }
    return std::optional<std::string_view>(key);
}

std::array<std::uint8_t, 32> fingerprint(const FingerprintInput& input) {
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    add(state, input.method);
    add(state, input.path);
    add(state, canonical_query(input.query));
    std::optional<std::string> value;
    if (input.comparison == BodyComparison::by_value && is_json(input.media_type)) {
        value = canonical_json(input.body);
    }
    add(state, value ? "json" : "bytes");
    add(state, value ? std::string_view(*value) : input.body);
    std::array<std::uint8_t, 32> digest{};
    crypto_hash_sha256_final(&state, digest.data());
    return digest;
}

}  // namespace ration
