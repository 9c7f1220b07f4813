// The hash of keys: its rounds are SipHash's, its key matters, it is never 0.
#include "counters/key_hash.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <set>
#include <string>

namespace ration {
namespace {

constexpr std::array<std::uint8_t, 16> counting{0, 1, 2,  3,  4,  5,  6,  7,
                                                8, 9, 10, 11, 12, 13, 14, 15};

TEST(SipHash, TwoFourIsLibsodiumsShorthashAtEveryLength) {
    const SipHash<2, 4> hash(counting);
    std::string text;
    for (int length = 0; length < 300; ++length) {
        std::uint64_t expected = 0;
        crypto_shorthash(reinterpret_cast<unsigned char*>(&expected),
                         reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                         counting.data());
        ASSERT_EQ(hash(text), expected) << length;
        text += static_cast<char>(length * 7);
    }
}

TEST(SipHash, TheFirstVectorOfThePaper) {
    // Appendix A: fifteen bytes 00 .. 0e under the key 00 .. 0f.
    std::string text;
    for (char c = 0; c < 15; ++c) {
        text += c;
    }
    EXPECT_EQ((SipHash<2, 4>(counting)(text)), 0xa129ca6149be45e5ULL);
}

TEST(KeyHash, DependsOnTheKeyAndOnEveryByte) {
    const KeyHash one(counting);
    const KeyHash other(std::array<std::uint8_t, 16>{1});
    std::set<std::uint64_t> seen;
    for (std::size_t i = 0; i < 40; ++i) {
        std::string text(40, 'a');
        text[i] = 'b';
        seen.insert(one(text));
        seen.insert(other(text));
        seen.insert(one(std::string(i, 'a')));
    }
    EXPECT_EQ(seen.size(), 120U);
    EXPECT_NE(KeyHash()("x"), KeyHash()("x")) << "a key of its own each time";
}

}  // namespace
}  // namespace ration
