#include "server/proxy/request_id.h"

#include <bit>
#include <cstddef>
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
    static constexpr char digits[] = "0123456789abcdef";
    std::size_t at = 0;
    for (int word = 0; word < 2; ++word) {
        std::uint64_t bits = next();
        for (int i = 0; i < 16; ++i) {
            id[at++] = digits[bits & 15];
            bits >>= 4;
        }
    }
}

}  // namespace ration
