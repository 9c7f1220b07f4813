// Request ids: 16 random bytes as 32 hexadecimal digits.
//
// The generator is xoshiro256** (Blackman and Vigna, public domain), seeded by the operating system
// or, for tests, by a number. Ids name requests in logs; they are no secrets. Thread rule: one
// generator per thread.
#pragma once

#include <array>
#include <cstdint>

namespace ration {

class RequestIds {
public:
    // `seed` 0: from the system; else the same ids for the same seed and thread.
    RequestIds(std::uint64_t seed, unsigned thread);
    void write(std::array<char, 32>& id);

private:
    std::uint64_t next();
    std::array<std::uint64_t, 4> state_{};
};

}  // namespace ration
