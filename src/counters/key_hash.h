// The keyed 64-bit hash of a canonical key: SipHash, so that no caller can aim collisions.
//
// SipHash-1-3 is the variant of Python and Rust for hash tables: a third of the rounds of 2-4,
// which is meant for messages. It is here, inline, because a hash behind a library call was the
// dearest part of a decision; its 2-4 form is tested to be libsodium's `crypto_shorthash`.
// Source: Aumasson, Bernstein, "SipHash: a fast short-input PRF" (2012).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ration {

static_assert(std::endian::native == std::endian::little);

// SipHash with `Each` rounds per word and `Last` at the end.
template <int Each, int Last>
class SipHash {
public:
    explicit SipHash(const std::array<std::uint8_t, 16>& key)
        : key_{word_at(key.data()), word_at(key.data() + 8)} {}

    [[nodiscard]] std::uint64_t operator()(std::string_view text) const {
        State s{key_[0] ^ 0x736f6d6570736575ULL, key_[1] ^ 0x646f72616e646f6dULL,
                key_[0] ^ 0x6c7967656e657261ULL, key_[1] ^ 0x7465646279746573ULL};
        const char* at = text.data();
        std::size_t left = text.size();
        for (; left >= 8; at += 8, left -= 8) {
            s.absorb(word_at(at));
        }
        s.absorb(rest_of(text, left) | std::uint64_t{text.size()} << 56);
        s.v2 ^= 0xff;
        s.template rounds<Last>();
        return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
    }

private:
    struct State {
        std::uint64_t v0, v1, v2, v3;

        template <int Count>
        void rounds() {
            for (int i = 0; i < Count; ++i) {
                v0 += v1;
                v2 += v3;
                v1 = std::rotl(v1, 13) ^ v0;
                v3 = std::rotl(v3, 16) ^ v2;
                v0 = std::rotl(v0, 32);
                v2 += v1;
                v0 += v3;
                v1 = std::rotl(v1, 17) ^ v2;
                v3 = std::rotl(v3, 21) ^ v0;
                v2 = std::rotl(v2, 32);
            }
        }
        void absorb(std::uint64_t word) {
            v3 ^= word;
            rounds<Each>();
            v0 ^= word;
        }
    };

    // The last `left` bytes (below 8) as a word, without a loop where there are 8 bytes to read.
    [[nodiscard]] static std::uint64_t rest_of(std::string_view text, std::size_t left) {
        if (text.size() >= 8) {
            const std::uint64_t tail = word_at(text.data() + text.size() - 8);
            return left == 0 ? 0 : tail >> (8 * (8 - left));
        }
        std::uint64_t rest = 0;
        for (std::size_t i = left; i != 0; --i) {
            rest = rest << 8 | static_cast<unsigned char>(text[i - 1]);
        }
        return rest;
    }
    [[nodiscard]] static std::uint64_t word_at(const void* bytes) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes, sizeof word);
        return word;
    }

    std::array<std::uint64_t, 2> key_;
};

// Never 0, which marks a free slot.
class KeyHash {
public:
    // With a key from the operating system.
    KeyHash();
    explicit KeyHash(const std::array<std::uint8_t, 16>& key) : hash_(key) {}

    [[nodiscard]] std::uint64_t operator()(std::string_view text) const {
        const std::uint64_t hash = hash_(text);
        return hash != 0 ? hash : 1;
    }

private:
    SipHash<1, 3> hash_;
};

}  // namespace ration
