// Which route a path belongs to: tables, refused patterns, bounds, and a slow reading to agree
// with.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/text.h"
#include "policy/policy.h"

namespace ration {
namespace {

RouteTable table_of(const std::vector<std::string>& patterns, bool slash_distinct = false) {
    RouteTable table;
    table.set_trailing_slash_distinct(slash_distinct);
    RouteIndex index = 0;
    for (const std::string& pattern : patterns) {
        EXPECT_EQ(table.add(pattern, index++), "") << pattern;
    }
    return table;
}

struct Case {
    const char* method;
    const char* path;
    const char* pattern;  // "" for none
};

void expect_matches(const std::vector<std::string>& patterns, const std::vector<Case>& cases,
                    bool slash_distinct = false) {
    std::vector<std::string> order = patterns;
    // The order in the file must not matter: forwards and backwards.
    for (int round = 0; round < 2; ++round) {
        const RouteTable table = table_of(order, slash_distinct);
        for (const Case& c : cases) {
            const RouteMatch match = table.match(c.method, c.path);
            EXPECT_EQ(match.route == no_route ? "" : order[match.route], c.pattern)
                << c.method << ' ' << c.path;
        }
        std::reverse(order.begin(), order.end());
    }
}

TEST(RouteTable, BookingRoutes) {
    expect_matches(
        {"GET /v1/availability", "GET /v1/quote", "POST /v1/bookings",
         "POST /v1/bookings/{id}/verify", "POST /v1/account/workspaces",
         "DELETE /v1/account/workspaces/{id}", "ANY /v1/account/**", "ANY /v1/public/**"},
        {
            {"GET", "/v1/availability", "GET /v1/availability"},
            {"HEAD", "/v1/availability", "GET /v1/availability"},
            {"POST", "/v1/availability", ""},
            {"GET", "/v1/availability/x", ""},
            {"GET", "/V1/availability", ""},
            {"GET", "/v1", ""},
            {"GET", "/", ""},
            {"POST", "/v1/bookings", "POST /v1/bookings"},
            {"POST", "/v1/bookings/", "POST /v1/bookings"},
            {"HEAD", "/v1/bookings", ""},
            {"get", "/v1/quote", ""},
            {"POST", "/v1/bookings/7/verify", "POST /v1/bookings/{id}/verify"},
            {"POST", "/v1/bookings/7", ""},
            {"POST", "/v1/bookings/7/verify/x", ""},
            {"POST", "/v1/bookings/verify", ""},
            {"POST", "/v1/account/workspaces", "POST /v1/account/workspaces"},
            {"GET", "/v1/account/workspaces", "ANY /v1/account/**"},
            {"DELETE", "/v1/account/workspaces/ws_1", "DELETE /v1/account/workspaces/{id}"},
            {"PATCH", "/v1/account/workspaces/ws_1", "ANY /v1/account/**"},
            {"GET", "/v1/account/usage", "ANY /v1/account/**"},
            {"GET", "/v1/account", "ANY /v1/account/**"},
            {"GET", "/v1/account/", "ANY /v1/account/**"},
            {"GET", "/v1/accounts", ""},
            {"PURGE", "/v1/public/a/b/c/d", "ANY /v1/public/**"},
        });
}

TEST(RouteTable, TheMostSpecificPatternWins) {
    expect_matches({"GET /**", "GET /a/**", "GET /a/{x}", "GET /a/b", "GET /{x}/b", "GET /a/{x}/c",
                    "GET /a/b/{x}"},
                   {
                       {"GET", "/", "GET /**"},
                       {"GET", "/z", "GET /**"},
                       {"GET", "/a", "GET /a/**"},
                       {"GET", "/a/b", "GET /a/b"},
                       {"GET", "/a/z", "GET /a/{x}"},
                       {"GET", "/z/b", "GET /{x}/b"},
                       {"GET", "/z/z", "GET /**"},
                       {"GET", "/a/b/c", "GET /a/b/{x}"},
                       {"GET", "/a/z/c", "GET /a/{x}/c"},
                       {"GET", "/a/z/z", "GET /a/**"},
                       {"GET", "/a/b/c/d", "GET /a/**"},
                   });
}

TEST(RouteTable, ABranchThatLeadsNowhereIsLeftAgain) {
    expect_matches({"GET /a/b/c", "GET /{x}/b/d", "GET /{x}/{y}/e", "POST /a/b", "GET /a/{x}"},
                   {
                       {"GET", "/a/b/c", "GET /a/b/c"},
                       {"GET", "/a/b/d", "GET /{x}/b/d"},
                       {"GET", "/a/b/e", "GET /{x}/{y}/e"},
                       {"GET", "/a/b/f", ""},
                       {"GET", "/a/b", "GET /a/{x}"},
                       {"POST", "/a/b", "POST /a/b"},
                       {"POST", "/a/c", ""},
                   });
}

TEST(RouteTable, ANamedMethodComesBeforeAnyAndHeadSpendsGet) {
    expect_matches({"ANY /a", "GET /a", "HEAD /b", "GET /b", "ANY /c", "HEAD /**"},
                   {
                       {"GET", "/a", "GET /a"},
                       {"HEAD", "/a", "GET /a"},
                       {"PUT", "/a", "ANY /a"},
                       {"HEAD", "/b", "HEAD /b"},
                       {"GET", "/b", "GET /b"},
                       {"HEAD", "/c", "ANY /c"},
                       {"HEAD", "/d", "HEAD /**"},
                       {"GET", "/d", ""},
                   });
}

TEST(RouteTable, TrailingSlashesAreOneRouteUnlessToldApart) {
    expect_matches({"GET /a", "GET /b/", "GET /c/{x}"}, {{"GET", "/a", "GET /a"},
                                                         {"GET", "/a/", "GET /a"},
                                                         {"GET", "/b", "GET /b/"},
                                                         {"GET", "/b/", "GET /b/"},
                                                         {"GET", "/c/", ""},
                                                         {"GET", "/c/1/", "GET /c/{x}"}});
    expect_matches({"GET /a", "GET /b/", "GET /c/{x}", "GET /d", "GET /d/", "GET /e/**", "GET /"},
                   {{"GET", "/a", "GET /a"},
                    {"GET", "/a/", ""},
                    {"GET", "/b", ""},
                    {"GET", "/b/", "GET /b/"},
                    {"GET", "/c/1", "GET /c/{x}"},
                    {"GET", "/c/1/", ""},
                    {"GET", "/d", "GET /d"},
                    {"GET", "/d/", "GET /d/"},
                    {"GET", "/e/f/", "GET /e/**"},
                    {"GET", "/", "GET /"}},
                   true);
}

TEST(RouteTable, EscapedReservedCharactersAreTheCharacters) {
    expect_matches({"POST /v1/{id}/a:verify", "GET /caf\xc3\xa9", "GET /a%20b", "GET /{x}"},
                   {
                       {"POST", "/v1/7/a:verify", "POST /v1/{id}/a:verify"},
                       {"POST", "/v1/7/a%3Averify", "POST /v1/{id}/a:verify"},
                       {"GET", "/caf%C3%A9", "GET /caf\xc3\xa9"},
                       {"GET", "/a%20b", "GET /a%20b"},
                       {"GET", "/a%2520b", "GET /{x}"},
                   });
}

TEST(RouteTable, TellsWhatTheParametersAre) {
    const RouteTable table =
        table_of({"GET /t/{team}/m/{member}", "POST /t/{id}/m/x", "GET /t/{a}/{b}/z"});
    const RouteMatch get = table.match("GET", "/t/t%3A1/m/m-2/");
    ASSERT_EQ(get.route, 0);
    ASSERT_EQ(get.parameter_count, 2);
    EXPECT_EQ(get.parameter("team"), "t%3A1");
    EXPECT_EQ(get.parameter("member"), "m-2");
    EXPECT_EQ(get.parameter("id"), "");
    const RouteMatch post = table.match("POST", "/t/9/m/x");
    ASSERT_EQ(post.route, 1);
    EXPECT_EQ(post.parameter("id"), "9");
    EXPECT_EQ(post.parameter_count, 1);
    // A branch that was left leaves no values behind.
    const RouteMatch other = table.match("GET", "/t/1/m/z");
    EXPECT_EQ(other.route, 0);
    EXPECT_EQ(table.match("GET", "/t/1/n/z").parameter("b"), "n");
}

TEST(RouteTable, KnowsPathsWithAnotherMethod) {
    const RouteTable table = table_of({"POST /a", "GET /b/{x}"});
    EXPECT_TRUE(table.path_exists("/a"));
    EXPECT_TRUE(table.path_exists("/b/1"));
    EXPECT_FALSE(table.path_exists("/b"));
    EXPECT_FALSE(table.path_exists("*"));
    EXPECT_EQ(table.match("OPTIONS", "*").route, no_route);
    EXPECT_EQ(RouteTable().match("GET", "/").route, no_route);
}

TEST(RouteTable, RefusesPatternsWithAReason) {
    const std::pair<const char*, const char*> cases[] = {
        {"", "a route is a method"},
        {"/v1/x", "a route is a method"},
        {"GET", "a route is a method"},
        {"get /v1", "'get' is not a method"},
        {"G@T /v1", "'G@T' is not a method"},
        {"GET v1", "does not start with '/'"},
        {"GET //v1", "an empty segment"},
        {"GET /a//b", "an empty segment"},
        {"GET /a/**/b", "nothing may follow"},
        {"GET /**/", "nothing may follow"},
        {"GET /a*", "'a*': a segment is a literal"},
        {"GET /*", "'*': a segment is a literal"},
        {"GET /{a}b", "'{a}b': a segment is a literal"},
        {"GET /{", "'{': a segment is a literal"},
        {"GET /{}", "'{}': a parameter's name"},
        {"GET /{1a}", "'{1a}': a parameter's name"},
        {"GET /{a b}", "'{a b}': a parameter's name"},
        {"GET /{a}/{a}", "two parameters are called 'a'"},
        {"GET /.", "'.' can never stand"},
        {"GET /a/../b", "'..' can never stand"},
        {"GET /%2e%2e", "'%2e%2e' can never stand"},
        {"GET /a;b", "'a;b' can never stand"},
        {"GET /a%2Fb", "'a%2Fb' can never stand"},
        {"GET /a?b", "'a?b' can never stand"},
        {"GET /a#b", "'a#b' can never stand"},
        {"GET /a b", "'a b' can never stand"},
        {"GET /caf\xe9", "can never stand"},
    };
    for (const auto& [pattern, reason] : cases) {
        RouteTable table;
        const std::string error = table.add(pattern, 0);
        EXPECT_NE(error.find(reason), std::string::npos) << pattern << ": " << error;
    }
}

TEST(RouteTable, RefusesTheSameMethodAndPathTwice) {
    const std::pair<const char*, const char*> same[] = {
        {"GET /a", "GET /a"},       {"GET /a", "GET  /a/"},
        {"GET /{x}", "GET /{y}"},   {"GET /a/{x}/b", "GET /a/{y}/b/"},
        {"ANY /**", "ANY /**"},     {"GET /a:b", "GET /a%3Ab"},
        {"GET /abc", "GET /%61bc"}, {"GET /", "GET /"},
    };
    for (const auto& [first, second] : same) {
        RouteTable table;
        EXPECT_EQ(table.add(first, 0), "");
        EXPECT_NE(table.add(second, 1).find("same method and path"), std::string::npos) << second;
    }
    const std::pair<const char*, const char*> different[] = {
        {"GET /a", "ANY /a"}, {"GET /a", "HEAD /a"},   {"GET /a", "GET /a/**"},
        {"GET /a", "GET /A"}, {"GET /{x}", "GET /**"},
    };
    for (const auto& [first, second] : different) {
        RouteTable table;
        EXPECT_EQ(table.add(first, 0), "");
        EXPECT_EQ(table.add(second, 1), "") << second;
    }
}

std::string repeated(const std::string& piece, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
        text += piece;
    }
    return text;
}

TEST(RouteTable, IsBounded) {
    RouteTable table;
    EXPECT_EQ(table.add("GET " + repeated("/s", max_pattern_segments), 0), "");
    EXPECT_NE(table.add("GET " + repeated("/s", max_pattern_segments + 1), 0), "");
    std::string parameters = "GET ";
    for (std::size_t i = 0; i < max_path_parameters; ++i) {
        parameters += cat("/{p", i, "}");
    }
    EXPECT_EQ(table.add(parameters, 0), "");
    EXPECT_NE(table.add(parameters + "/{more}", 0), "");
    const std::string longest = "GET /" + std::string(max_pattern_bytes - 5, 'a');
    EXPECT_EQ(table.add(longest, 5), "");
    EXPECT_NE(table.add(longest + "a", 6), "");
    EXPECT_EQ(table.match("GET", longest.substr(4)).route, 5);
    EXPECT_EQ(table.match("GET", longest.substr(4) + "%61").route, no_route);
    EXPECT_EQ(table.add(std::string(max_method_bytes, 'M') + " /m", 0), "");
    EXPECT_NE(table.add(std::string(max_method_bytes + 1, 'M') + " /m", 0), "");

    RouteTable many;
    for (std::size_t i = 0; i < max_routes; ++i) {
        ASSERT_EQ(many.add(cat("GET /r", i), static_cast<RouteIndex>(i)), "");
    }
    EXPECT_NE(many.add("GET /more", 0), "");
    EXPECT_EQ(many.match("GET", "/r1023").route, 1023);
    // A path may be longer than any pattern.
    EXPECT_EQ(many.match("GET", repeated("/x", 4000)).route, no_route);
}

// ---- a slow reading to agree with ----

std::vector<std::string> segments_of(const std::string& path) {
    std::vector<std::string> segments;
    std::string segment;
    for (const char c : path.substr(1) + "/") {
        if (c == '/') {
            if (!segment.empty()) {
                segments.push_back(segment);
            }
            segment.clear();
        } else {
            segment += c;
        }
    }
    return segments;
}

// How specific a pattern is where it matches: one rank a segment, smaller is more specific. Empty
// optional: it does not match.
std::optional<std::string> rank(const std::string& pattern, const std::string& path) {
    const std::vector<std::string> wanted = segments_of(pattern);
    const std::vector<std::string> given = segments_of(path);
    std::string ranks;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (wanted[i] == "**") {
            return ranks + "3";
        }
        const bool parameter = wanted[i].front() == '{';
        if (i >= given.size() || (!parameter && wanted[i] != given[i])) {
            return std::nullopt;
        }
        ranks += parameter ? '2' : '1';
    }
    return wanted.size() == given.size() ? std::optional(ranks) : std::nullopt;
}

rc::Gen<std::string> path_of(const std::vector<std::string>& words) {
    return rc::gen::map(
        rc::gen::resize(5, rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(words))),
        [](const std::vector<std::string>& segments) {
            std::string path;
            for (std::size_t i = 0; i < segments.size(); ++i) {
                // At most one parameter of a name: {x} at place i is {xi}.
                path += segments[i] == "{x}" ? cat("/{x", i, "}") : "/" + segments[i];
            }
            return path.empty() ? std::string("/") : path;
        });
}

RC_GTEST_PROP(RouteTableProperty, AgreesWithComparingAllPatterns, ()) {
    RouteTable table;
    std::vector<std::string> patterns;
    for (std::string path :
         *rc::gen::container<std::vector<std::string>>(path_of({"a", "a", "b", "{x}", "{x}"}))) {
        if (*rc::gen::weightedElement<bool>({{1, true}, {2, false}})) {
            path += path == "/" ? "**" : "/**";
        }
        if (table.add("GET " + path, static_cast<RouteIndex>(patterns.size())).empty()) {
            patterns.push_back(path);
        }
    }
    for (int round = 0; round < 20; ++round) {
        const std::string path = *path_of({"a", "a", "b", "c"});
        std::optional<std::string> best;
        std::string expected;
        for (const std::string& pattern : patterns) {
            const auto candidate = rank(pattern, path);
            if (candidate && (!best || *candidate < *best)) {
                best = candidate;
                expected = pattern;
            }
        }
        const RouteMatch match = table.match("GET", path);
        RC_ASSERT((match.route == no_route ? "" : patterns[match.route]) == expected);
        RC_ASSERT(table.path_exists(path) == !expected.empty());
    }
}

}  // namespace
}  // namespace ration
