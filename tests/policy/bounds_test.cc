// Everything in a policy is bounded: taken at the bound, refused one past it.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "policy/key.h"
#include "policy/policy.h"
#include "policy/policy_reader.h"

namespace ration {
namespace {

using Make = std::string (*)(std::size_t count);

// `count` pieces, each made from its number.
std::string repeated(std::size_t count, std::string (*piece)(std::size_t i)) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
        text += piece(i);
    }
    return text;
}

std::string routes(std::size_t count) {
    return "routes:\n" + repeated(count, [](std::size_t i) {
               return "  r" + std::to_string(i) + ": GET /r" + std::to_string(i) + "\n";
           });
}

std::string patterns(std::size_t count) {
    return "routes:\n  r: [" +
           repeated(count, [](std::size_t i) { return "GET /r" + std::to_string(i) + ", "; }) +
           "]\n";
}

std::string kinds(std::size_t count) {
    return "identify:\n  credentials:\n" + repeated(count, [](std::size_t i) {
               return "    k" + std::to_string(i) + ": {bearer: k" + std::to_string(i) + "_*}\n";
           });
}

std::string places(std::size_t count) {
    return "identify:\n  credentials:\n    k: [" +
           repeated(count,
                    [](std::size_t i) { return "{bearer: k" + std::to_string(i) + "_*}, "; }) +
           "]\n";
}

std::string bound_entities(std::size_t count) {
    return "identify:\n  attributes:\n" + repeated(count, [](std::size_t i) {
               return "    e" + std::to_string(i) + ": query.q\n";
           });
}

// Sixteen at most meet one request, so each has a route of its own.
std::string limits(std::size_t count) {
    return routes(count) + "limits:\n" + repeated(count, [](std::size_t i) {
               const std::string n = std::to_string(i);
               return "  - {name: l" + n + ", routes: [r" + n + "], per: [], concurrency: 1}\n";
           });
}

// A route of its own for each, since a request meets at most sixteen limits.
std::string strikes(std::size_t count) {
    return routes(count) + "strikes:\n" + repeated(count, [](std::size_t i) {
               const std::string n = std::to_string(i);
               return "  - {name: s" + n + ", routes: [r" + n +
                      "], per: [], failures: 5/min, block: 1 min}\n";
           });
}

std::string block_levels(std::size_t count) {
    return "routes: {r: GET /r}\nstrikes:\n  - {name: s, per: [], failures: 5/min, block: {first: "
           "1 "
           "s, at_most: " +
           std::to_string(std::uint64_t{1} << (count - 1)) + " s}}\n";
}

std::string failed_statuses(std::size_t count) {
    return "routes: {r: GET /r}\nstrikes:\n  - {name: s, per: [], failures: 5/min, block: 1 min, "
           "failed: [" +
           repeated(count, [](std::size_t i) { return std::to_string(400 + i) + ", "; }) + "]}\n";
}

std::string strike_name_bytes(std::size_t count) {
    return "routes: {r: GET /r}\nstrikes:\n  - {per: [], failures: 5/min, block: 1 min, name: " +
           std::string(count, 'n') + "}\n";
}

std::string issued_numbers(std::size_t count) {
    return "identify:\n  credentials: {t: {bearer: t_*}}\n  issue:\n    t:\n      owner: user\n    "
           "  "
           "numbers: {" +
           repeated(count,
                    [](std::size_t i) {
                        return "n" + std::to_string(i) + ": {from: 1, to: 1, default: 1}, ";
                    }) +
           "}\n";
}

std::string charges(std::size_t count) {
    return "routes: {r: GET /r}\nlimits:\n" + repeated(count, [](std::size_t i) {
               return "  - {name: l" + std::to_string(i) + ", per: [], concurrency: 1}\n";
           });
}

std::string key_parts(std::size_t count) {
    return "limits:\n  - {name: x, concurrency: 1, per: [" +
           repeated(count, [](std::size_t i) { return "e" + std::to_string(i) + ", "; }) + "]}\n";
}

std::string name_bytes(std::size_t count) {
    return "limits:\n  - {concurrency: 1, per: [], name: " + std::string(count, 'n') + "}\n";
}

std::string refusals(std::size_t count) {
    return "refusals:\n" +
           repeated(count, [](std::size_t i) { return "  a" + std::to_string(i) + ": {}\n"; });
}

std::string refusal_headers(std::size_t count) {
    return "refusals:\n  a:\n    headers:\n" +
           repeated(count, [](std::size_t i) { return "      X-" + std::to_string(i) + ": a\n"; });
}

std::string trusted(std::size_t count) {
    return "identify:\n  address:\n    header: Forwarded\n    trusted: [" +
           repeated(count, [](std::size_t) { return std::string("10.0.0.1, "); }) + "]\n";
}

std::string origins(std::size_t count) {
    return "cors:\n  origins: [" +
           repeated(count, [](std::size_t) { return std::string("http://a, "); }) + "]\n";
}

struct Bound {
    const char* name;
    Make make;
    std::size_t most;
};

class PolicyBounds : public ::testing::TestWithParam<Bound> {};

TEST_P(PolicyBounds, HoldsAtTheBoundAndNotOnePastIt) {
    const auto reads = [](std::size_t count) {
        Problems problems;
        const auto policy =
            Policy::parse("p", "policy: p\n" + GetParam().make(count), nullptr, problems);
        return policy != nullptr ? std::string() : std::string(problems.status().message());
    };
    EXPECT_EQ(reads(GetParam().most), "");
    EXPECT_NE(reads(GetParam().most + 1), "");
}

INSTANTIATE_TEST_SUITE_P(
    Table, PolicyBounds,
    ::testing::Values(
        Bound{"Routes", routes, max_routes}, Bound{"Patterns", patterns, max_patterns_per_route},
        Bound{"Kinds", kinds, max_kinds}, Bound{"Places", places, max_places_per_kind},
        Bound{"BoundEntities", bound_entities, max_bound_entities},
        Bound{"Limits", limits, max_limits}, Bound{"Charges", charges, max_charges},
        Bound{"Strikes", strikes, max_strikes},
        Bound{"BlockLevels", block_levels, max_block_levels},
        Bound{"FailedStatuses", failed_statuses, max_failed_statuses},
        Bound{"StrikeNameBytes", strike_name_bytes, max_strike_name_bytes},
        Bound{"IssuedNumbers", issued_numbers, max_issued_numbers},
        Bound{"KeyParts", key_parts, max_key_parts},
        Bound{"NameBytes", name_bytes, max_rule_name_bytes},
        Bound{"Refusals", refusals, max_refusals},
        Bound{"RefusalHeaders", refusal_headers, max_refusal_headers},
        Bound{"Trusted", trusted, max_list_items}, Bound{"Origins", origins, max_list_items}),
    [](const auto& tested) { return std::string(tested.param.name); });

// Names past the bound are known all the same: one error and no false ones behind it.
TEST(PolicyBounds, OneTooManyIsOneError) {
    const auto errors = [](const std::string& text) {
        Problems problems;
        EXPECT_EQ(Policy::parse("p", "policy: p\n" + text, nullptr, problems), nullptr);
        EXPECT_TRUE(problems.warnings().empty()) << problems.warnings()[0].text();
        return std::string(problems.status().message());
    };
    const std::string last_route = "r" + std::to_string(max_routes + 5);
    EXPECT_EQ(
        errors(routes(max_routes + 6) + "identify: {accepts: {" + last_route +
               ": [any]}}\nlimits:\n  - {name: l, per: [], concurrency: {" + last_route +
               ": 1}}\n  - {name: m, per: [], routes: [" + last_route + "], concurrency: 1}\n"),
        "p:3:3: more than 1024 routes");
    std::string wide = "routes:\n";
    for (std::size_t i = 0; i * max_patterns_per_route <= max_routes; ++i) {
        wide += "  w" + std::to_string(i) + ": [" +
                repeated(max_patterns_per_route,
                         [](std::size_t n) { return "GET /{x}/" + std::to_string(n) + ", "; }) +
                "]\n";
        for (std::size_t at = wide.find("{x}"); at != std::string::npos; at = wide.find("{x}")) {
            wide.replace(at, 3, "w" + std::to_string(i));
        }
    }
    EXPECT_EQ(errors(wide), "p:19:9: more than 1024 patterns of routes");
    EXPECT_EQ(errors("routes: {r: GET /r}\n" + kinds(max_kinds + 2) +
                     "  accepts: {r: [k31]}\nlimits:\n"
                     "  - {name: l, per: [], credentials: [k30], concurrency: 1}\n"),
              "p:5:5: more than 30 kinds of credentials");
    EXPECT_EQ(errors("routes: {r: GET /r}\n" + refusals(max_refusals + 1) +
                     "limits:\n  - {name: l, per: [], concurrency: 1, refuse: a256}\n"),
              "p:4:3: more than 256 answers");
    EXPECT_EQ(errors(limits(max_limits + 1) + "refusals: {own: {}}\n").find('\n'),
              std::string::npos);
}

// A hostile file may be wrong in every line; the work of helping with typos stays bounded.
TEST(PolicyBounds, AFileOfTyposIsReadInBoundedWork) {
    std::string text = "policy: p\n" + routes(max_routes) +
                       "limits:\n  - {name: x, per: [], "
                       "concurrency: 1, routes: [";
    for (std::size_t i = 0; i < 200'000; ++i) {
        text += "rr" + std::to_string(i) + ", ";
    }
    Problems problems;
    EXPECT_EQ(Policy::parse("p", text + "]}\n", nullptr, problems), nullptr);
    EXPECT_EQ(problems.errors().size(), max_problems + 1);
}

}  // namespace
}  // namespace ration
