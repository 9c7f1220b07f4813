// Keys: different parts never give the same bytes, whatever the parts hold.
#include "policy/key.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace ration {
namespace {

using Parts = std::vector<std::string>;

std::string key_of(std::string_view name, const Parts& parts, std::uint16_t* rule_bytes = nullptr) {
    std::array<char, max_built_key_bytes> buffer{};
    const std::vector<std::string_view> views(parts.begin(), parts.end());
    std::uint16_t bytes = 0;
    const std::string_view key = build_key(buffer, name, views, bytes);
    if (rule_bytes != nullptr) {
        *rule_bytes = bytes;
    }
    return std::string(key);
}

TEST(Key, StartsWithTheLimitsIdentity) {
    std::uint16_t rule_bytes = 0;
    const std::string key = key_of("caller budget", {"quote", "203.0.113.7"}, &rule_bytes);
    EXPECT_EQ(rule_bytes, 14);
    EXPECT_EQ(key.substr(0, rule_bytes), key_of("caller budget", {}));
    EXPECT_EQ(key, std::string("\x0d"
                               "caller budget\x05quote\x0b"
                               "203.0.113.7"));
}

TEST(Key, IsTakenApartAgain) {
    const std::string key = key_of("caller budget", {"quote", "", "203.0.113.7"});
    const auto split = split_key(key);
    ASSERT_TRUE(split.has_value());
    EXPECT_EQ(split->name, "caller budget");
    EXPECT_EQ(split->parts, (std::vector<std::string_view>{"quote", "", "203.0.113.7"}));
    EXPECT_FALSE(split->digested);
    const std::string long_key = key_of("r", {"a", std::string(300, 'x')});
    const auto digested = split_key(long_key);
    ASSERT_TRUE(digested.has_value());
    EXPECT_EQ(digested->name, "r");
    EXPECT_TRUE(digested->digested);
    EXPECT_TRUE(digested->parts.empty());
    for (const std::string& other : {key.substr(0, key.size() - 1), long_key.substr(0, 9),
                                     std::string("caller"), long_key + "x"}) {
        EXPECT_FALSE(split_key(other).has_value()) << other;
    }
}

TEST(Key, PartsCannotBeMovedAcrossTheirBorders) {
    EXPECT_NE(key_of("r", {"ab", "c"}), key_of("r", {"a", "bc"}));
    EXPECT_NE(key_of("r", {"ab"}), key_of("ra", {"b"}));
    EXPECT_NE(key_of("r", {"", "a"}), key_of("r", {"a", ""}));
    EXPECT_NE(key_of("r", {"a"}), key_of("r", {"a", ""}));
    EXPECT_NE(key_of("r", {std::string("a\0b", 3)}), key_of("r", {"a", "b"}));
    EXPECT_NE(key_of("r", {std::string("\x01"
                                       "a")}),
              key_of("r", {"", "a"}));
}

TEST(Key, IsDigestedOnePastTheBound) {
    // One byte of name and one of its length, then a part with one byte of length.
    const std::size_t room = max_built_key_bytes - 2 - 1;
    const std::string fits = key_of("r", {std::string(room, 'x')});
    EXPECT_EQ(fits.size(), max_built_key_bytes);
    const std::string digested = key_of("r", {std::string(room + 1, 'x')});
    EXPECT_EQ(digested.size(), 2U + 1 + 32);
    EXPECT_EQ(digested.substr(0, 2), key_of("r", {}));
    EXPECT_NE(digested, key_of("r", {std::string(room + 1, 'y')}));
    EXPECT_NE(digested, key_of("r", {std::string(room, 'x'), "x"}));
    EXPECT_EQ(digested, key_of("r", {std::string(room + 1, 'x')}));
    // A part that spells out what a digest looks like is still framed as a part.
    EXPECT_NE(digested, key_of("r", {digested.substr(2)}));
}

TEST(Key, AVeryLongPartIsDigestedToo) {
    EXPECT_EQ(key_of("r", {std::string(100000, 'x')}).size(), 35U);
    EXPECT_NE(key_of("r", {std::string(100000, 'x')}), key_of("r", {std::string(100001, 'x')}));
}

TEST(Key, ABufferThatIsTooSmallGivesNothing) {
    std::array<char, 5> buffer{};
    std::uint16_t rule_bytes = 0;
    const std::string_view four[] = {"ab"};
    const std::string_view five[] = {"abc"};
    EXPECT_EQ(build_key(buffer, "r", four, rule_bytes).size(), 5U);
    EXPECT_TRUE(build_key(buffer, "r", five, rule_bytes).empty());
    EXPECT_TRUE(key_of(std::string(max_rule_name_bytes + 1, 'n'), {}).empty());
    EXPECT_FALSE(key_of(std::string(max_rule_name_bytes, 'n'), {}).empty());
}

// Parts that look like lengths and digests are the interesting ones.
rc::Gen<std::string> piece() {
    return rc::gen::oneOf(
        rc::gen::container<std::string>(rc::gen::element('\0', '\1', '\2', 'a', '\xfe', '\xff')),
        rc::gen::map(rc::gen::inRange(200, 300),
                     [](int size) { return std::string(static_cast<std::size_t>(size), 'a'); }));
}

RC_GTEST_PROP(KeyProperty, DifferentPartsGiveDifferentKeys, ()) {
    const auto parts = rc::gen::container<Parts>(piece());
    const std::string name_a = *rc::gen::element<std::string>("a", "ab", "b");
    const std::string name_b = *rc::gen::element<std::string>("a", "ab", "b");
    const Parts a = *parts;
    Parts b = *parts;
    // Often the same bytes, split elsewhere.
    if (*rc::gen::arbitrary<bool>()) {
        b = a;
        if (b.size() >= 2 && !b[0].empty()) {
            b[1].insert(b[1].begin(), b[0].back());
            b[0].pop_back();
        }
    }
    RC_ASSERT((key_of(name_a, a) == key_of(name_b, b)) == (name_a == name_b && a == b));
}

}  // namespace
}  // namespace ration
