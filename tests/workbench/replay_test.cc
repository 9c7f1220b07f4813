#include "workbench/replay.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/text.h"
#include "request/path.h"
#include "workbench/replay_line.h"

namespace ration {
namespace {

constexpr std::string_view policy_text = R"(
policy: small
routes: {thing: GET /thing, slow: GET /slow}
limits:
  - {name: rate, routes: [thing], per: [address], token_bucket: 1/s, store_down: closed}
  - {name: at once, routes: [slow], per: [address], concurrency: 1}
)";

Rules rules_of(std::string_view text) {
    Problems problems;
    Rules rules{Policy::parse("p.yaml", text, process_environment, problems), empty_directory()};
    EXPECT_TRUE(problems.ok()) << problems.status();
    return rules;
}

struct Played {
    bool good = false;
    std::vector<std::string> lines;
    std::string errors;
};

Played run(const std::string& input, std::size_t max_in_flight = default_max_in_flight) {
    std::istringstream in(input);
    std::ostringstream out;
    std::ostringstream errors;
    Played result;
    result.good = replay({.rules = rules_of(policy_text),
                          .input_name = "in",
                          .counter_bytes = 1 << 20,
                          .max_in_flight = max_in_flight},
                         in, out, errors);
    result.errors = errors.str();
    std::istringstream answers(out.str());
    for (std::string line; std::getline(answers, line);) {
        result.lines.push_back(line);
    }
    return result;
}

std::string line(std::string_view at, std::string_view path, std::string_view rest = "") {
    return cat("{\"at\":", at, ",\"method\":\"GET\",\"path\":\"", path, "\"", rest, "}\n");
}

// What answers begin with, up to their headers.
std::string head(std::string_view id, std::string_view at, std::string_view outcome,
                 std::string_view status) {
    return cat("{\"id\":", id, ",\"at\":", at, ",\"outcome\":\"", outcome, "\",\"status\":", status,
               ",\"headers\":");
}

TEST(Replay, AnswersHaveEveryMember) {
    const Played result =
        run(line("0", "/thing", R"(,"id":7,"response":{"headers":{"X":["a","b"]},"body":"hi"})") +
            line("0.2", "/thing", R"(,"id":"two")"));
    EXPECT_TRUE(result.good);
    EXPECT_EQ(result.errors, "");
    ASSERT_EQ(result.lines.size(), 2U);
    EXPECT_EQ(
        result.lines[0],
        head("7", "0", "admitted", "200") +
            R"({"X":["a","b"],"Ration-Request-Id":"0000000000000001","Date":"Thu, 01 Jan 1970 00:00:00 GMT",)"
            R"("Content-Length":"2"},"body":"hi","rule":null,"wait":null})");
    EXPECT_EQ(
        result.lines[1],
        head("\"two\"", "0.2", "refused", "429") +
            R"({"Retry-After":"1","Content-Type":"application/json","Cache-Control":"no-store",)"
            R"("Ration-Request-Id":"0000000000000002","Server":"ration","Date":"Thu, 01 Jan 1970 00:00:00 GMT",)"
            R"("Content-Length":"64"},"body":"{\"error\":{\"type\":\"rate_limited\",)"
            R"(\"message\":\"Too many requests.\"}}","rule":"rate","wait":0.8})");
}

TEST(Replay, CompletionsComeBeforeArrivalsAndOutputKeepsTheOrder) {
    const Played result =
        run(line("0", "/slow", R"(,"id":1,"response":{"takes":5})") +
            line("4.999999999", "/slow", R"(,"id":2)") +
            line("5", "/slow", R"(,"id":3,"response":{"takes":"never"})") +
            line("64.999999999", "/slow", R"(,"id":4)") + line("65", "/slow", R"(,"id":5)"));
    ASSERT_EQ(result.lines.size(), 5U);
    const char* heads[] = {R"({"id":1,"at":0,"outcome":"admitted","status":200)",
                           R"({"id":2,"at":4.999999999,"outcome":"refused","status":429)",
                           R"({"id":3,"at":5,"outcome":"admitted","status":504)",
                           R"({"id":4,"at":64.999999999,"outcome":"refused","status":429)",
                           R"({"id":5,"at":65,"outcome":"admitted","status":200)"};
    for (std::size_t i = 0; i < result.lines.size(); ++i) {
        EXPECT_EQ(result.lines[i].rfind(heads[i], 0), 0U) << result.lines[i];
    }
}

TEST(Replay, ARestartKillsWhatIsInFlightAndForgetsWhatIsVolatile) {
    const Played result = run(line("0", "/slow", R"(,"id":1,"response":{"takes":5})") +
                              line("0", "/thing", R"(,"id":2)") +
                              "{\"at\":1,\"event\":\"restart\"}\n" +  // in flight: lost
                              line("1", "/slow", R"(,"id":3)") + line("1", "/thing", R"(,"id":4)"));
    ASSERT_EQ(result.lines.size(), 4U);
    EXPECT_EQ(result.lines[0],
              head("1", "0", "lost", "null") + R"({},"body":"","rule":null,"wait":null})");
    EXPECT_EQ(result.lines[2].rfind(R"({"id":3,"at":1,"outcome":"admitted")", 0), 0U);
    EXPECT_EQ(result.lines[3].rfind(R"({"id":4,"at":1,"outcome":"admitted")", 0), 0U);
}

TEST(Replay, CountersThatAreDownAnswerByEachLimitsChoice) {
    const Played result = run("{\"at\":0,\"event\":\"counters\",\"state\":\"down\"}\n" +
                              line("0", "/thing", R"(,"id":1)") + line("0", "/slow", R"(,"id":2)") +
                              "{\"at\":1,\"event\":\"counters\",\"state\":\"up\"}\n" +
                              line("1", "/thing", R"(,"id":3)"));
    ASSERT_EQ(result.lines.size(), 3U);
    EXPECT_EQ(result.lines[0].rfind(R"({"id":1,"at":0,"outcome":"refused","status":503)", 0), 0U);
    EXPECT_EQ(result.lines[1].rfind(R"({"id":2,"at":0,"outcome":"admitted","status":200)", 0), 0U);
    EXPECT_EQ(result.lines[2].rfind(R"({"id":3,"at":1,"outcome":"admitted","status":200)", 0), 0U);
}

TEST(Replay, AWrongLineEndsItAndWhatWasBegunIsAnswered) {
    const Played result = run(line("0", "/slow", R"(,"id":1,"response":{"takes":5})") +
                              line("1", "/thing", R"(,"id":2)") +
                              R"({"at":2,"method":"GET","path":"/thing","pear":"x"})" + "\n" +
                              line("3", "/thing", R"(,"id":3)"));
    EXPECT_FALSE(result.good);
    EXPECT_EQ(result.lines.size(), 2U);
    EXPECT_EQ(result.errors, "in:3:40: unknown field \"pear\", did you mean \"peer\"?\n");
}

TEST(Replay, TimeDoesNotRunBackwards) {
    const Played result = run(line("10.5", "/thing") + "\n" + line("10.499999999", "/thing"));
    EXPECT_FALSE(result.good);
    EXPECT_EQ(result.lines.size(), 1U);
    EXPECT_EQ(result.errors,
              "in:3:7: \"at\" is before the line above, which has 1970-01-01T00:00:10.5Z\n");
}

TEST(Replay, APolicyThatCannotBeReadChangesNothing) {
    const Played result =
        run(line("0", "/thing") + R"({"at":0,"event":"policy","file":"no/such.yaml"})" + "\n" +
            line("0", "/thing"));
    EXPECT_TRUE(result.good);
    ASSERT_EQ(result.lines.size(), 2U);
    EXPECT_NE(result.lines[1].find("\"refused\""), std::string::npos);
    EXPECT_NE(result.errors.find("no/such.yaml"), std::string::npos);
    EXPECT_NE(result.errors.find("in:2:1: the policy before stays in force\n"), std::string::npos);
}

TEST(Replay, APolicyEventKeepsUse) {
    const std::string path = testing::TempDir() + "raised.yaml";
    std::ofstream(path) << "policy: raised\nroutes: {thing: GET /thing}\nlimits:\n"
                           "  - {name: rate, per: [address], token_bucket: 3/s}\n";
    const Played result =
        run(line("0", "/thing") + cat("{\"at\":0,\"event\":\"policy\",\"file\":\"", path, "\"}\n") +
            line("0", "/thing") + line("0", "/thing") + line("0", "/thing"));
    ASSERT_EQ(result.lines.size(), 4U) << result.errors;
    EXPECT_NE(result.lines[2].find("\"admitted\""), std::string::npos);
    EXPECT_NE(result.lines[3].find("\"refused\""), std::string::npos);
}

TEST(Replay, RequestsThatNoGatewayPassesOn) {
    const Played result =
        run(line("0", "/a%2Fb") + line("0", "/nowhere") +
            line("0", "/thing", R"(,"headers":{"Upgrade":"h2c","Connection":"upgrade"})") +
            line("0", "/thing", R"(,"headers":{"Expect":"gifts"})") +
            line("0", "/thing", cat(",\"headers\":{\"X\":\"", std::string(40'000, 'x'), "\"}")) +
            line("0", cat("/thing?", std::string(max_target_bytes - 6, 'x'))));
    ASSERT_EQ(result.lines.size(), 6U);
    const char* statuses[] = {"400", "404", "501", "417", "431", "414"};
    for (std::size_t i = 0; i < result.lines.size(); ++i) {
        EXPECT_EQ(result.lines[i].rfind(head("null", "0", "refused", statuses[i]), 0), 0U)
            << result.lines[i];
    }
}

TEST(Replay, ALineHasABound) {
    const std::string long_path(max_replay_line_bytes, 'x');
    const Played result = run(line("0", "/thing") + line("0", "/" + long_path));
    EXPECT_FALSE(result.good);
    EXPECT_EQ(result.lines.size(), 1U);
    EXPECT_EQ(result.errors, "in:2:1: the line has more than 16777216 bytes\n");

    std::string longest = line("0", "/thing", R"(,"body":"")");
    longest.insert(longest.size() - 3, max_replay_line_bytes + 1 - longest.size(), 'x');
    EXPECT_TRUE(run(longest).good);  // the line end does not count
}

TEST(Replay, RequestsInFlightHaveABound) {
    std::string input;
    for (int i = 0; i < 3; ++i) {
        input += line(cat(i), "/thing", R"(,"response":{"takes":9})");
    }
    EXPECT_TRUE(run(input, 3).good);
    const Played past = run(input, 2);
    EXPECT_FALSE(past.good);
    EXPECT_EQ(past.lines.size(), 2U);
    EXPECT_EQ(past.errors, "in:3:1: more than 2 requests are waiting for the upstream\n");
}

TEST(Replay, SameInputSameOutput) {
    std::string input;
    for (int i = 0; i < 200; ++i) {
        input += line(cat(i / 3), i % 2 == 0 ? "/thing" : "/slow", R"(,"response":{"takes":2})");
    }
    EXPECT_EQ(run(input).lines, run(input).lines);
}

TEST(Replay, AKeyInDoubtIsLookedUpAtTheScriptedUpstream) {
    const Rules rules = rules_of(R"(
policy: orders
routes: {order: POST /orders}
idempotency: [{routes: [order], scope: [address], doubt: probe, probe: {path: "/orders/{key}"}}]
)");
    const auto ordered = [](std::string_view at, std::string_view response) {
        return cat("{\"at\":", at, R"(,"method":"POST","path":"/orders",)",
                   R"("headers":{"Idempotency-Key":"k"},"response":)", response, "}\n");
    };
    std::istringstream in(ordered("0", R"({"takes":"never"})") +
                          ordered("70", R"({"probe":{"status":503}})") +
                          ordered("80", R"({"status":201,"probe":{"takes":1}})"));
    std::ostringstream out;
    std::ostringstream errors;
    ASSERT_TRUE(
        replay({.rules = rules, .input_name = "in", .counter_bytes = 1 << 20}, in, out, errors))
        << errors.str();
    std::vector<std::string> told;
    std::istringstream lines(out.str());
    for (std::string answer; std::getline(lines, answer);) {
        told.push_back(answer.substr(answer.find("\"outcome\"")));
    }
    ASSERT_EQ(told.size(), 3U);
    EXPECT_TRUE(told[0].starts_with(R"("outcome":"admitted","status":504)")) << told[0];
    EXPECT_TRUE(told[1].starts_with(R"("outcome":"admitted","status":502)")) << told[1];
    EXPECT_TRUE(told[2].starts_with(R"("outcome":"replayed","status":200)")) << told[2];
}

// An id is read out of whatever the upstream says, nested a hundred thousand deep or not.
TEST(Replay, AnAnswersIdMayBeAnything) {
    const Rules rules = rules_of(R"(
policy: things
routes: {make: POST /things}
quotas: [{name: things, per: [], at_most: 1, up: {make: body.id}}]
)");
    const auto made = [](std::string_view body) {
        return cat(R"({"at":0,"method":"POST","path":"/things","response":{"status":201,"body":")",
                   body, "\"}}\n");
    };
    const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
    std::istringstream in(made(cat(R"({\"id\":)", deep, "}")) + made(deep) +
                          made(R"({\"id\":{\"a\":1}})") + made(R"({\"id\":1.5})") +
                          made(R"({\"id\":12345678901234567890})") + made("{}"));
    std::ostringstream out;
    std::ostringstream errors;
    ASSERT_TRUE(
        replay({.rules = rules, .input_name = "in", .counter_bytes = 1 << 20}, in, out, errors))
        << errors.str();
    std::vector<bool> made_one;
    std::istringstream lines(out.str());
    for (std::string answer; std::getline(lines, answer);) {
        made_one.push_back(answer.find(R"("status":201)") != std::string::npos);
    }
    EXPECT_EQ(made_one, (std::vector<bool>{true, true, true, true, true, false}));
}

}  // namespace
}  // namespace ration
