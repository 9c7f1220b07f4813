// The one source of chance of a simulation: everything in it follows from the seed. One thread.
#pragma once

#include <cstdint>

namespace ration::sim {

// splitmix64 (Steele, Lea, Flood 2014): small, and the same everywhere.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 0x1234567) {}

    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    // 0 .. bound - 1.
    std::uint64_t below(std::uint64_t bound) { return next() % bound; }
    std::uint64_t between(std::uint64_t least, std::uint64_t most) {
        return least + below(most - least + 1);
    }
    bool chance(unsigned percent) { return below(100) < percent; }

private:
    std::uint64_t state_;
};

}  // namespace ration::sim
