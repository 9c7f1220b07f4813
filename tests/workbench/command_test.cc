// The command as it is called: what it prints where, and how it ends.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdio>
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
        const std::string command = std::string(RATION_COMMAND) + " >" + folder_ + "out 2>" +
                                    folder_ + "err </dev/null " + arguments;
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

// The word that means nothing is named, wherever it stands, before what else is missing.
TEST_F(CommandTest, AWordWithoutAMeaningIsNamed) {
    const struct {
        const char* arguments;
        const char* message;
    } cases[] = {
        {"--nope", "ration: no option '--nope'; there are --help, --version\n"},
        {"--versoin", "ration: no option '--versoin'; did you mean '--version'?\n"},
        {"-x", "ration: no option '-x'; there are --help, --version\n"},
        {"chekc", "ration: no command 'chekc'; did you mean 'check'?\n"},
        {"chekc --help", "ration: no command 'chekc'; did you mean 'check'?\n"},
        {"--help serv", "ration: no command 'serv'; did you mean 'serve'?\n"},
        {"nope --help",
         "ration: no command 'nope'; there are serve, check, test, replay, schema, ledger, token, "
         "block, call\n"},
        {"check --directry d p",
         "ration check: no option '--directry'; did you mean '--directory'?\n"},
        {"replay --polcy=p", "ration replay: no option '--polcy'; did you mean '--policy'?\n"},
        {"ledger", "A subcommand is required\nRun with --help for more information.\n"},
        {"ledger doubt", "ration ledger: no command 'doubt'; did you mean 'doubts'?\n"},
        {"ledger --json doubts", "ration ledger: no option '--json'; there are --help\n"},
        {"token create --usr u_1",
         "ration token create: no option '--usr'; did you mean '--user'?\n"},
        {"call -HX:y --hedaer z http://127.0.0.1:1",
         "ration call: no option '--hedaer'; did you mean '--header'?\n"},
    };
    for (const auto& one : cases) {
        const Ended ended = run(one.arguments);
        EXPECT_EQ(ended.code, 2) << one.arguments;
        EXPECT_EQ(ended.out, "") << one.arguments;
        EXPECT_EQ(ended.err, one.message) << one.arguments;
    }
    // Values and what stands behind "--" are nobody's options.
    EXPECT_EQ(run("check -- --nope").err, "--nope: cannot be opened for reading\n");
    EXPECT_EQ(run("replay --upstream-timeout -5s --policy p").err,
              "--upstream-timeout: not a span of time above 0: -5s\n");
}

TEST_F(CommandTest, OutputThatCannotBeWrittenIsTwo) {
    const std::string policy = file("p.yaml", good_policy);
    const std::string lines = file("in.jsonl", "{\"at\":0,\"method\":\"GET\",\"path\":\"/\"}\n");
    for (const std::string& arguments :
         {std::string("schema"), "check " + policy, std::string("--help"),
          "replay --policy " + policy + " " + lines}) {
        const std::string command = std::string(RATION_COMMAND) + " " + arguments +
                                    " >/dev/full 2>" + folder_ + "err </dev/null";
        const int status = std::system(command.c_str());
        EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 2) << arguments;
        EXPECT_EQ(slurp(folder_ + "err"), "ration: the output could not be written\n") << arguments;
    }
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

TEST_F(CommandTest, CheckNamesTheMethodThatWasMeant) {
    const std::string bad = file("bad.yaml",
                                 "policy: a\nroutes:\n  get: GTE /things\n  post: \"GET,PSOT "
                                 "/things\"\n  put: [put /things]\n");
    const Ended ended = run("check " + bad);
    EXPECT_EQ(ended.code, 1);
    EXPECT_NE(ended.err.find(bad + ":3:8: "), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find("did you mean 'GET'?"), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find(bad + ":4:9: "), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find("did you mean 'POST'?"), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find(bad + ":5:9: "), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find("methods are written in capitals"), std::string::npos) << ended.err;
}

TEST_F(CommandTest, CheckFindsSlipsThatADirectoryWouldSettle) {
    const std::string policy = file("p.yaml", R"(policy: small
routes: {thing: GET /thing}
identify: {credentials: {app: {bearer: app_*}}, accepts: {else: [app]}}
limits:
  - {name: thing, per: [projct], token_bucket: 1/s}
  - {name: other, per: [users], token_bucket: 1/s}
)");
    const Ended alone = run("check " + policy);
    EXPECT_EQ(alone.code, 1);
    EXPECT_EQ(alone.err, policy +
                             ":6:25: unknown word 'users'; did you mean 'user'? (or give the "
                             "directory that has it)\n");
    const std::string directory =
        file("d.yaml", "entities:\n  users: {u: {}}\n  project: {p: {}}\n");
    for (const std::string& arguments :
         {"check " + policy + " " + directory, "check " + policy + " --directory " + directory,
          "replay --policy " + policy + " --directory " + directory}) {
        EXPECT_EQ(run(arguments).err,
                  policy + ":5:25: unknown word 'projct'; did you mean 'project'?\n")
            << arguments;
    }
}

TEST_F(CommandTest, CheckCountsItsWarnings) {
    const std::string used = "  - {name: thing, per: [address], token_bucket: 1/s}\n";
    const std::string top = "policy: small\nroutes: {thing: GET /thing}\nlimits:\n" + used;
    EXPECT_EQ(run("check " + file("a.yaml", top + "refusals: {a: {}}\n")).out, "good, 1 warning\n");
    EXPECT_EQ(run("check " + file("b.yaml", top + "refusals: {a: {}, b: {}}\n")).out,
              "good, 2 warnings\n");
}

// What the process was handed open is read, and read once; a pipe elsewhere would wait.
TEST_F(CommandTest, PipesAreReadWhenTheyAreHandedIn) {
    const std::string policy = file("p.yaml", good_policy);
    const Ended handed = run("check /dev/stdin <" + policy);
    EXPECT_EQ(handed.out, "good\n") << handed.err;
    const std::string pipe = folder_ + "pipe";
    std::remove(pipe.c_str());
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    for (const std::string& arguments :
         {"check " + pipe, "test " + pipe, "serve " + pipe, "replay --policy " + pipe,
          "check " + policy + " --directory " + pipe}) {
        const Ended ended = run(arguments);
        EXPECT_GT(ended.code, 0) << arguments;
        EXPECT_NE(ended.err.find(pipe + ": is a pipe, a socket or a device, not a file\n"),
                  std::string::npos)
            << ended.err;
    }
    std::remove(pipe.c_str());
    EXPECT_EQ(run("check /tmp").err, "/tmp: is a directory, not a file\n");
    EXPECT_EQ(run("replay --policy " + policy + " /tmp").err, "/tmp: cannot be read\n");
    EXPECT_EQ(run("replay --policy " + policy + " /tmp").code, 2);
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
