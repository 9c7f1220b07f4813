// Problem: parts are callers' text, so any separator could be forged ("a|b" + "c" and "a" + "b|c").
// Idea: each piece stands behind its length in one byte. 0xFF in the place of a length, which no
// piece of a key can have, announces the digest of everything that would have followed.
#include "policy/key.h"

#include <sodium.h>

#include <algorithm>
#include <array>

namespace ration {
namespace {

constexpr unsigned char digest_follows = 0xff;
constexpr std::size_t digest_bytes = 32;

// A piece that fits a key has a length that fits a byte and is not the mark of a digest.
static_assert(max_built_key_bytes - 2 < digest_follows);
static_assert(1 + max_rule_name_bytes + 1 + digest_bytes <= max_built_key_bytes);

std::size_t framed_size(std::string_view piece) {
    return piece.size() + 1;
}

char* put_piece(char* out, std::string_view piece) {
    *out++ = static_cast<char>(piece.size());
    return std::copy(piece.begin(), piece.end(), out);
}

// Parts of any length go in behind eight length bytes, so the digested text is unambiguous too.
char* put_digest(char* out, std::span<const std::string_view> parts) {
    crypto_generichash_state state;
    crypto_generichash_init(&state, nullptr, 0, digest_bytes);
    for (const std::string_view part : parts) {
        std::array<unsigned char, 8> length{};
        for (std::size_t i = 0; i < length.size(); ++i) {
            length[i] = static_cast<unsigned char>(std::uint64_t{part.size()} >> (8 * i));
        }
        crypto_generichash_update(&state, length.data(), length.size());
        crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(part.data()),
                                  part.size());
    }
    *out++ = static_cast<char>(digest_follows);
    crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(out), digest_bytes);
    return out + digest_bytes;
}

}  // namespace

std::string_view build_key(std::span<char> buffer, std::string_view rule_name,
                           std::span<const std::string_view> parts, std::uint16_t& rule_bytes) {
    if (rule_name.size() > max_rule_name_bytes) {
        return {};
    }
    const std::size_t identity = framed_size(rule_name);
    std::size_t size = identity;
    for (const std::string_view part : parts) {
        size =
            part.size() > max_built_key_bytes ? max_built_key_bytes + 1 : size + framed_size(part);
        if (size > max_built_key_bytes) {
            break;
        }
    }
    const bool digested = size > max_built_key_bytes;
    if ((digested ? identity + 1 + digest_bytes : size) > buffer.size()) {
        return {};
    }
    char* out = put_piece(buffer.data(), rule_name);
    rule_bytes = static_cast<std::uint16_t>(identity);
    if (digested) {
        out = put_digest(out, parts);
    } else {
        for (const std::string_view part : parts) {
            out = put_piece(out, part);
        }
    }
    return {buffer.data(), static_cast<std::size_t>(out - buffer.data())};
}

std::optional<SplitKey> split_key(std::string_view key) {
    SplitKey split;
    for (bool first = true; !key.empty(); first = false) {
        const auto size = static_cast<unsigned char>(key[0]);
        key.remove_prefix(1);
        if (!first && size == digest_follows) {
            split.digested = true;
            return key.size() == digest_bytes && split.parts.empty() ? std::optional(split)
                                                                     : std::nullopt;
        }
        if (size > key.size()) {
            return std::nullopt;
        }
        if (first) {
            split.name = key.substr(0, size);
        } else {
            split.parts.push_back(key.substr(0, size));
        }
        key.remove_prefix(size);
    }
    return split;
}

}  // namespace ration
