// One spelling of a path, and the spellings that are refused.
#include "request/path.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace ration {
namespace {

std::string path_of(std::string_view target) {
    std::array<char, max_target_bytes> buffer;
    const auto result = normal_target(target, buffer);
    return result.ok() ? std::string(result->path) : "refused";
}

struct Case {
    const char* target;
    const char* path;
};

TEST(Path, HasOneSpelling) {
    const Case cases[] = {
        {"/", "/"},
        {"/v1/bookings", "/v1/bookings"},
        {"/v1/bookings/", "/v1/bookings/"},
        // Slashes.
        {"//", "/"},
        {"//v1/bookings", "/v1/bookings"},
        {"/v1//bookings", "/v1/bookings"},
        {"/v1/bookings//", "/v1/bookings/"},
        {"////v1////bookings////", "/v1/bookings/"},
        // Dots.
        {"/.", "/"},
        {"/./", "/"},
        {"/v1/./bookings", "/v1/bookings"},
        {"/v1/bookings/.", "/v1/bookings/"},
        {"/v1/bookings/./", "/v1/bookings/"},
        {"/v1/x/../bookings", "/v1/bookings"},
        {"/v1/x/y/../../bookings", "/v1/bookings"},
        {"/v1/bookings/x/..", "/v1/bookings/"},
        {"/v1/bookings/x/../", "/v1/bookings/"},
        {"/v1/..", "/"},
        {"/v1/../", "/"},
        {"/v1//../bookings", "/bookings"},
        {"/...", "/..."},
        {"/v1/..x", "/v1/..x"},
        {"/v1/x..", "/v1/x.."},
        {"/v1/.x", "/v1/.x"},
        {"/v1/%2e/bookings", "/v1/bookings"},
        {"/v1/x/%2e%2e/bookings", "/v1/bookings"},
        {"/v1/x/%2E./bookings", "/v1/bookings"},
        {"/v1/x/.%2e/bookings", "/v1/bookings"},
        {"/v1/%2e%2e%2e", "/v1/..."},
        // Escapes.
        {"/v1/%62ookings", "/v1/bookings"},
        {"/%76%31/bookings", "/v1/bookings"},
        {"/%7euser/%5f%2D", "/~user/_-"},
        {"/a%20b", "/a%20b"},
        {"/a%3ab%2C", "/a%3Ab%2C"},
        {"/a%3Bb", "/a%3Bb"},
        {"/caf%c3%a9", "/caf%C3%A9"},
        {"/%f0%9f%99%82", "/%F0%9F%99%82"},
        {"/%252e%252e/", "/%252e%252e/"},
        {"/%25%32%65", "/%252e"},
        {"/100%25", "/100%25"},
        // What a segment may hold unescaped, and what browsers leave unescaped all the same.
        {"/a!$&'()*+,=:@b", "/a!$&'()*+,=:@b"},
        {"/a|b", "/a%7Cb"},
        {"/[id]/{x}", "/%5Bid%5D/%7Bx%7D"},
        {"/a\"b<c>d^e`f", "/a%22b%3Cc%3Ed%5Ee%60f"},
        // Absolute form.
        {"http://api.example", "/"},
        {"http://api.example/", "/"},
        {"http://api.example:8080/v1//x", "/v1/x"},
        {"HTTPS://api.example/v1/x", "/v1/x"},
        {"http://[2001:db8::1]:80/v1", "/v1"},
        {"*", "*"},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(path_of(c.target), c.path) << c.target;
    }
}

TEST(Path, IsRefusedWhereTwoServersCouldDiffer) {
    const std::vector<std::string> refused = {
        "",
        // Above the root.
        "/..",
        "/../",
        "/../v1",
        "/v1/../..",
        "/v1/../../etc/passwd",
        "/%2e%2e",
        "/./..",
        "//..",
        "/v1/%2e%2e/%2e%2e/x",
        // Slashes and backslashes under cover.
        "/v1%2fbookings",
        "/v1%2Fbookings",
        "/v1/..%2f..",
        "/v1%5cbookings",
        "/v1%5Cbookings",
        "/v1\\bookings",
        "/v1/..\\x",
        "\\v1\\bookings",
        // Path parameters.
        "/v1/bookings;a=1",
        "/v1;/bookings",
        "/v1/..;/bookings",
        "/;",
        // Control characters, plain and escaped.
        std::string("/v1\0", 4),
        "/v1/\x01",
        "/v1/\t",
        "/v1\r\nX: y",
        "/v1\x7f",
        "/v1/%00",
        "/v1/bookings%00",
        "/v1/%0d%0aX",
        "/v1/%7f",
        "/v1/%1F",
        "/v1 /bookings",
        " /v1",
        "/v1 ",
        // Bytes above ASCII, plain; escapes that are not UTF-8.
        "/caf\xc3\xa9",
        "/caf\xe9",
        "/%c0%af",
        "/%c0%ae%c0%ae",
        "/%e0%80%af",
        "/%f0%80%80%af",
        "/%ed%a0%80",
        "/%f4%90%80%80",
        "/%ff",
        "/%80",
        "/caf%e9",
        "/%c3",
        "/%c3/%a9",
        "/%c3x",
        "/%e2%82",
        "/%c3%2e",
        // Broken escapes.
        "/%",
        "/%2",
        "/v1/%zz",
        "/v1/%2",
        "/v1/%2/x",
        "/v1/%u002e",
        "/v1/% 2e",
        "/%-1",
        // Fragments.
        "/v1#x",
        "/v1/bookings#",
        "/#/..",
        "/v1?a#b",
        // Other forms.
        "?a=b",
        "v1/bookings",
        "#",
        "api.example:443",
        "api.example",
        "**",
        "*/",
        "./v1",
        "../v1",
        "ftp://api.example/v1",
        "http:/v1",
        "http:///v1",
        "http://",
        "http:v1",
        "https://?x",
        "http://user@api.example/v1",
        "http://user:pw@api.example/",
        "http://a b/",
        "http://a\\b/",
        "http://api.example#x",
        "http://api.example\\v1",
        "http://caf\xc3\xa9/",
        "//..//",
        "http://a/../b",
        "javascript:alert(1)",
        // Queries.
        "/v1?a b",
        "/v1?a\tb",
        "/v1?\r\n",
        "/v1?\x7f",
        "/v1?caf\xc3\xa9",
        "/v1?#",
    };
    for (const std::string& target : refused) {
        EXPECT_EQ(path_of(target), "refused") << target;
    }
}

TEST(Path, SaysWhyItIsRefused) {
    std::array<char, max_target_bytes> buffer;
    const std::pair<const char*, const char*> cases[] = {
        {"/a%2Fb", "an encoded '/'"},
        {"/a;b", "the character ';'"},
        {"/..", "'..' climbs above the root"},
        {"/%c0%af", "escapes that do not spell UTF-8"},
        {"/%4", "a '%' that no two hexadecimal digits follow"},
    };
    for (const auto& [target, reason] : cases) {
        const absl::Status status = normal_target(target, buffer).status();
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_EQ(std::string(status.message()), reason);
    }
}

TEST(Path, LeavesTheQueryAsItIs) {
    struct QueryCase {
        const char* target;
        const char* path;
        bool has_query;
        const char* query;
        const char* authority;
    };
    const QueryCase cases[] = {
        {"/v1", "/v1", false, "", ""},
        {"/v1?", "/v1", true, "", ""},
        {"/v1?a=b&c=%2e%2E//../x;y", "/v1", true, "a=b&c=%2e%2E//../x;y", ""},
        {"/v1?a?b", "/v1", true, "a?b", ""},
        {"/v1?100%", "/v1", true, "100%", ""},
        {"/v1?a[]={x}|\"y\"\\", "/v1", true, "a[]={x}|\"y\"\\", ""},
        {"/v1//x?y", "/v1/x", true, "y", ""},
        {"http://api.example?x=1", "/", true, "x=1", "api.example"},
        {"http://API.example:81/a?b", "/a", true, "b", "API.example:81"},
    };
    for (const QueryCase& c : cases) {
        std::array<char, max_target_bytes> buffer;
        const auto result = normal_target(c.target, buffer);
        ASSERT_TRUE(result.ok()) << c.target << result.status();
        EXPECT_EQ(result->path, c.path);
        EXPECT_EQ(result->has_query, c.has_query) << c.target;
        EXPECT_EQ(result->query, c.query);
        EXPECT_EQ(result->authority, c.authority);
    }
}

TEST(Path, IsBounded) {
    std::array<char, max_target_bytes> buffer;
    std::string target(max_target_bytes, 'a');
    target[0] = '/';
    ASSERT_TRUE(normal_target(target, buffer).ok());
    EXPECT_EQ(normal_target(target, buffer)->path, target);
    EXPECT_TRUE(absl::IsOutOfRange(normal_target(target + "a", buffer).status()));
    const std::string absolute = "http://a" + target.substr(8);
    EXPECT_TRUE(normal_target(absolute, buffer).ok());
    EXPECT_TRUE(absl::IsOutOfRange(normal_target(absolute + "a", buffer).status()));
    // Escaping may make a path longer; what does not fit the buffer is refused.
    const std::string braces = "/" + std::string(10, '{');
    std::array<char, 31> fits;
    EXPECT_EQ(normal_target(braces, fits)->path.size(), 31U);
    std::array<char, 30> tight;
    EXPECT_TRUE(absl::IsOutOfRange(normal_target(braces, tight).status()));
}

TEST(PercentDecoded, UndoesEscapesOnce) {
    std::array<char, 64> out;
    EXPECT_EQ(percent_decoded("t%3A1", out), "t:1");
    EXPECT_EQ(percent_decoded("%252e", out), "%2e");
    EXPECT_EQ(percent_decoded("a+b%2B", out), "a+b+");
    EXPECT_EQ(percent_decoded("a+b%2B", out, PlusSign::blank), "a b+");
    EXPECT_EQ(percent_decoded("100%", out), "100%");
    EXPECT_EQ(percent_decoded("%zz%4", out), "%zz%4");
    EXPECT_EQ(percent_decoded("", out), "");
    std::array<char, 3> small;
    EXPECT_EQ(percent_decoded("abcdef", small), "abc");
}

}  // namespace
}  // namespace ration
