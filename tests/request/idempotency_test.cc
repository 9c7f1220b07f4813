#include "request/idempotency.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <string>
#include <vector>

namespace ration {
namespace {

struct KeyCase {
    std::vector<Header> headers;
    const char* expected;  // nullptr: refused
};

TEST(IdempotencyKey, QuotedAndBareSpellingsAreOneKey) {
    const std::string longest(max_idempotency_key_bytes, 'k');
    const std::string too_long(max_idempotency_key_bytes + 1, 'k');
    const std::string longest_quoted = "\"" + longest + "\"";
    const std::vector<KeyCase> cases = {
        {{{"Idempotency-Key", "7c9e6679-7425-40de-944b-e07fc1f90ae7"}},
         "7c9e6679-7425-40de-944b-e07fc1f90ae7"},
        {{{"idempotency-key", "\"7c9e6679\""}}, "7c9e6679"},
        {{{"Idempotency-Key", R"("a\"b\\c")"}}, R"(a"b\c)"},
        {{{"Idempotency-Key", longest}}, longest.c_str()},
        {{{"Idempotency-Key", longest_quoted}}, longest.c_str()},
        {{{"Idempotency-Key", too_long}}, nullptr},
        {{{"Idempotency-Key", ""}}, nullptr},
        {{{"Idempotency-Key", "\"\""}}, nullptr},
        {{{"Idempotency-Key", "\"open"}}, nullptr},
        {{{"Idempotency-Key", R"("bad\escape")"}}, nullptr},
        {{{"Idempotency-Key", "two words"}}, nullptr},
        {{{"Idempotency-Key", "na\xc3\xafve"}}, nullptr},
        {{{"Idempotency-Key", "a"}, {"Idempotency-Key", "a"}}, nullptr},
    };
    for (const KeyCase& c : cases) {
        std::array<char, 300> buffer{};
        const auto key = idempotency_key(c.headers, "Idempotency-Key", buffer);
        EXPECT_EQ(key.ok(), c.expected != nullptr) << c.headers[0].value;
        if (key.ok() && c.expected != nullptr) {
            ASSERT_TRUE(key->has_value());
            EXPECT_EQ(**key, c.expected);
        }
    }
    std::array<char, 300> buffer{};
    EXPECT_FALSE(idempotency_key({}, "Idempotency-Key", buffer)->has_value());
}

std::array<std::uint8_t, 32> print_of(std::string_view body,
                                      std::string_view type = "application/json") {
    return fingerprint({"POST", "/v1/bookings", "", type, body, BodyComparison::by_value});
}

TEST(Fingerprint, EqualValuesAreEqual) {
    const std::vector<std::pair<const char*, const char*>> equal = {
        {R"({"a":1,"b":2})", R"({ "b" : 2 , "a" : 1 })"},
        {R"([1.0,1e2,-0,0.10])", R"([1,100,0,1e-1])"},
        {R"({"s":"\u0041\/"})", R"({"s":"A/"})"},
        {"123456789012345678901234567890", "1234567890123456789012345678.9e2"},
        {R"({"n":{"x":[],"y":{}}})", R"({"n":{"y":{},"x":[]}})"},
        // Past what a double holds.
        {"1e400", "10E+399"},
        {"-1e400", "-0.1e401"},
        {R"({"a":1e400,"b":[1.50,-2],"c":"x\"1"})",
         R"({"c":"x\u00221","b":[15e-1,-2.0],"a":1E400})"},
        {R"([{"b":{"d":1,"c":2},"a":3},4])", R"([ {"a":3.0, "b":{"c":2,"d":1e0}} ,4])"},
    };
    for (const auto& [a, b] : equal) {
        EXPECT_EQ(print_of(a), print_of(b)) << a << " " << b;
        EXPECT_EQ(print_of(a, "application/vnd.api+json; charset=utf-8"),
                  print_of(b, "Application/Vnd.Api+JSON"));
        EXPECT_NE(print_of(a, "text/plain"), print_of(b, "text/plain")) << a;
    }
}

TEST(Fingerprint, DifferentValuesDiffer) {
    const std::vector<std::pair<const char*, const char*>> different = {
        {R"({"a":1,"b":2})", R"({"a":1,"b":3})"},
        {"9007199254740993", "9007199254740992"},
        {"1e400", "1e401"},
        {"0.1", "0.10000000000000001"},
        {R"(["ab"])", R"(["a","b"])"},
        {R"({"a":"1"})", R"({"a":1})"},
        {R"({"a":null})", "{}"},
        {"[1,2]", "[2,1]"},
        {"[[]]", "[{}]"},
        {"-1e400", "1e400"},
        {R"({"a":1e400})", R"({"a":1e401})"},
        {R"({"b":1,"a":2})", R"({"a":1,"b":2})"},
        {R"({"a":"1","b":2})", R"({"a":1,"b":"2"})"},
        {"[12]", "[1,2]"},
        {R"(["\\",1])", R"(["\\\\",1])"},
        {"[1.50]", "[1.05]"},
        {"", "{}"},
        // Not one value each: their bytes count.
        {R"({"a":1,"a":1})", R"({"a": 1,"a":1})"},
        {"{", "{ "},
        {"1 2", "1  2"},
        {"01", "1"},
        {"1.", "1"},
        {".1", "0.1"},
        {"+1", "1"},
        {"1e", "1"},
        {"[-]", "[0]"},
        {"1-2", "1"},
        {"[1", "[1 "},
    };
    for (const auto& [a, b] : different) {
        EXPECT_NE(print_of(a), print_of(b)) << a << " " << b;
    }
}

TEST(Fingerprint, CoversMethodPathQueryAndTheirBorders) {
    const FingerprintInput base{"POST", "/a", "to=a", "text/plain", "x", BodyComparison::by_value};
    FingerprintInput other = base;
    other.query = "to=b";
    EXPECT_NE(fingerprint(base), fingerprint(other));
    other = base;
    other.path = "/at";
    other.query = "o=a";
    EXPECT_NE(fingerprint(base), fingerprint(other));
    other = base;
    other.method = "PUT";
    EXPECT_NE(fingerprint(base), fingerprint(other));
}

TEST(Fingerprint, QueriesAreComparedWithTheirEscapesInOneSpelling) {
    const auto of = [](std::string_view query) {
        return fingerprint({"POST", "/a", query, "", "x", BodyComparison::by_value});
    };
    for (const auto& [a, b] : std::vector<std::pair<const char*, const char*>>{
             {"x=%41%7e", "x=A~"}, {"x=%2f&y", "x=%2F&y"}, {"%3d=%e2%82%ac", "%3D=%E2%82%AC"}}) {
        EXPECT_EQ(of(a), of(b)) << a;
    }
    for (const auto& [a, b] :
         std::vector<std::pair<const char*, const char*>>{{"a=1&b=2", "b=2&a=1"},
                                                          {"x=%2F", "x=/"},
                                                          {"x=%26y", "x=&y"},
                                                          {"x=+", "x=%20"},
                                                          {"x=%4", "x=4"},
                                                          {"x=%4g", "x=%4G"},
                                                          {"x=%2541", "x=%41"},
                                                          {"", "x"}}) {
        EXPECT_NE(of(a), of(b)) << a;
    }
}

TEST(Fingerprint, BytesCanBeAskedFor) {
    const FingerprintInput a{"POST", "/", "", "application/json", "{}", BodyComparison::bytes};
    FingerprintInput b = a;
    b.body = "{ }";
    EXPECT_NE(fingerprint(a), fingerprint(b));
}

TEST(CanonicalJson, NestingHasABound) {
    const auto nested = [](std::size_t depth) {
        return std::string(depth, '[') + std::string(depth, ']');
    };
    EXPECT_TRUE(canonical_json(nested(max_json_depth)));
    EXPECT_FALSE(canonical_json(nested(max_json_depth + 1)));
    EXPECT_FALSE(canonical_json("1e99999999999999999999"));
}

}  // namespace
}  // namespace ration
