#include "counters/key_hash.h"

#include <sodium.h>

#include <cstring>

namespace ration {

KeyHash::KeyHash() {
    randombytes_buf(key_.data(), key_.size());
}

std::uint64_t KeyHash::operator()(std::string_view text) const {
    static_assert(crypto_shorthash_BYTES == sizeof(std::uint64_t));
    static_assert(crypto_shorthash_KEYBYTES == sizeof(key_));
    std::array<unsigned char, crypto_shorthash_BYTES> bytes;
    crypto_shorthash(bytes.data(), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                     key_.data());
    std::uint64_t hash = 0;
    std::memcpy(&hash, bytes.data(), sizeof hash);
    return hash != 0 ? hash : 1;
}

}  // namespace ration
