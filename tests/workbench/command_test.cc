// The command as it is called: what it prints where, and how it ends.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace ration {
namespace {

struct Ended {
    int code = -1;
    std::string out;
    std::string err;
};

std::string slurp(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

class CommandTest : public ::testing::Test {
protected:
    // A file of the test, written now.
    std::string file(const std::string& name, std::string_view text) {
        std::string path = folder_ + name;
        std::ofstream(path, std::ios::binary) << text;
        return path;
    }

    Ended run(const std::string& arguments) {
        const std::string command = std::string(RATION_COMMAND) + " " + arguments + " >" + folder_ +
                                    "out 2>" + folder_ + "err </dev/null";
        const int status = std::system(command.c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(folder_ + "out"),
                slurp(folder_ + "err")};
    }

    const std::string folder_ = [] {
        const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
        return ::testing::TempDir() + "ration_command_" + test->name() + "_";
    }();
};

constexpr std::string_view good_policy = R"(policy: small
routes: {thing: GET /thing}
limits:
  - {name: thing, per: [address], token_bucket: 1/s}
)";

TEST_F(CommandTest, WrongUseIsTwo) {
    EXPECT_EQ(run("").code, 2);
    EXPECT_EQ(run("nonsense").code, 2);
    EXPECT_EQ(run("replay").code, 2);
    EXPECT_EQ(run("check").code, 2);
    EXPECT_EQ(run("test --nonsense x").code, 2);
}

TEST_F(CommandTest, HelpIsEverywhere) {
    for (const char* command : {"", "check", "test", "replay", "schema", "serve"}) {
        const Ended help = run(std::string(command) + " --help");
        EXPECT_EQ(help.code, 0) << command;
        EXPECT_NE(help.out.find("Usage:"), std::string::npos) << command;
    }
    const Ended version = run("--version");
    EXPECT_EQ(version.code, 0);
    EXPECT_EQ(version.out.rfind("ration ", 0), 0U);
}

TEST_F(CommandTest, CheckSaysWhatIsWrongAndWhere) {
    EXPECT_EQ(run("check " + file("good.yaml", good_policy)).code, 0);
    const std::string bad = file("bad.yaml", "policy: small\nroutes: {thing: GET thing}\n");
    const Ended ended = run("check " + bad);
    EXPECT_EQ(ended.code, 1);
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(ended.err.rfind(bad + ":2:", 0), 0U) << ended.err;
    EXPECT_EQ(run("check " + folder_ + "nowhere.yaml").code, 1);
}

TEST_F(CommandTest, CheckReadsDirectoriesToo) {
    const std::string policy = file("p.yaml", good_policy);
    const std::string bad =
        file("d.yaml", "entities:\n  account: {a: {}}\n  workspace: {w: {account: nobody}}\n");
    const Ended ended = run("check " + policy + " " + bad);
    EXPECT_EQ(ended.code, 1);
    EXPECT_EQ(ended.err.rfind(bad + ":3:", 0), 0U) << ended.err;
    EXPECT_EQ(run("check " + policy + " --directory " + bad).code, 1);
}

TEST_F(CommandTest, SchemaIsPrinted) {
    const Ended ended = run("schema");
    EXPECT_EQ(ended.code, 0);
    EXPECT_NE(ended.out.find("\"$schema\""), std::string::npos);
}

TEST_F(CommandTest, TestCountsAndEnds) {
    file("p.yaml", good_policy);
    const std::string good = file("good.test.yaml", R"(policy: COMMAND_p.yaml
cases:
  - {name: one, steps: [{request: GET /thing, expect: {status: 200}}]}
)");
    std::string text = slurp(good);
    const std::string prefix = folder_.substr(folder_.rfind('/') + 1);
    text.replace(text.find("COMMAND_"), 8, prefix);
    file("good.test.yaml", text);
    const Ended passed = run("test " + good);
    EXPECT_EQ(passed.code, 0) << passed.err;
    EXPECT_EQ(passed.out, "1 passed, 0 failed\n");
    text.replace(text.find("200"), 3, "201");
    const std::string wrong = file("wrong.test.yaml", text);
    const Ended failed = run("test " + good + " " + wrong);
    EXPECT_EQ(failed.code, 1);
    EXPECT_NE(failed.out.find("1 passed, 1 failed\n"), std::string::npos) << failed.out;
    EXPECT_NE(failed.out.find("expected  201"), std::string::npos);
    EXPECT_EQ(run("test " + folder_ + "nowhere.yaml").code, 2);
}

TEST_F(CommandTest, ReplayEndsWithTwoOnWrongInput) {
    const std::string policy = file("p.yaml", good_policy);
    const std::string lines = file("in.jsonl", R"({"at":0,"method":"GET","path":"/thing"}
{"at":0,"method":"GET"}
)");
    const Ended ended = run("replay --policy " + policy + " " + lines);
    EXPECT_EQ(ended.code, 2);
    EXPECT_EQ(ended.out.rfind("{\"id\":null,\"at\":0,\"outcome\":\"admitted\"", 0), 0U);
    EXPECT_EQ(ended.err, lines + ":2:1: \"path\" is missing\n");
    EXPECT_EQ(run("replay --policy " + policy + " " + folder_ + "nowhere").code, 2);
    EXPECT_EQ(run("replay --policy " + folder_ + "nowhere " + lines).code, 2);
    EXPECT_EQ(run("replay --policy " + policy + " --upstream-timeout soon " + lines).code, 2);
    EXPECT_EQ(run("replay --policy " + policy).code, 0);  // nothing in, nothing out
}

}  // namespace
}  // namespace ration
