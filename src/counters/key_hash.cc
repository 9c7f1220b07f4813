#include "counters/key_hash.h"

#include <sodium.h>

namespace ration {

namespace {

std::array<std::uint8_t, 16> random_key() {
    std::array<std::uint8_t, 16> key;
    randombytes_buf(key.data(), key.size());
    return key;
}

}  // namespace

KeyHash::KeyHash() : KeyHash(random_key()) {}

}  // namespace ration
