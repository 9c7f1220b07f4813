#include "server/proxy/request_id.h"

#include <bit>
#include <cstddef>
#include <cstring>
#include <random>

namespace ration {

namespace {

// splitmix64: spreads one number over the generator's state.
std::uint64_t spread(std::uint64_t& seed) {
    seed += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

// The eight hexadecimal digits of a number, one per byte, all at once: each nibble gets a byte of
// its own, and those above 9 move on to the letters.
std::uint64_t hex_digits(std::uint32_t number) {
    constexpr std::uint64_t ones = 0x0101010101010101ULL;
    std::uint64_t spaced = number;
    spaced = (spaced | (spaced << 16)) & 0x0000ffff0000ffffULL;
    spaced = (spaced | (spaced << 8)) & 0x00ff00ff00ff00ffULL;
    spaced = (spaced | (spaced << 4)) & 0x0f0f0f0f0f0f0f0fULL;
    const std::uint64_t above_nine = ((spaced + 6 * ones) >> 4) & ones;
    return spaced + '0' * ones + above_nine * ('a' - '0' - 10);
}

}  // namespace

RequestIds::RequestIds(std::uint64_t seed, unsigned thread) {
    if (seed == 0) {
        std::random_device device;
        for (std::uint64_t& word : state_) {
            word = (std::uint64_t{device()} << 32) | device();
        }
        state_[0] |= 1;  // never all zero
        return;
    }
    seed += thread;
    for (std::uint64_t& word : state_) {
        word = spread(seed);
    }
}

std::uint64_t RequestIds::next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
}

void RequestIds::write(std::array<char, 32>& id) {
    for (std::size_t at = 0; at < id.size(); at += 16) {
        const std::uint64_t bits = next();
        const std::uint64_t high = hex_digits(static_cast<std::uint32_t>(bits >> 32));
        const std::uint64_t low = hex_digits(static_cast<std::uint32_t>(bits));
        std::memcpy(id.data() + at, &high, 8);
        std::memcpy(id.data() + at + 8, &low, 8);
    }
}

}  // namespace ration
