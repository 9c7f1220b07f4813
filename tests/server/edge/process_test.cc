// The command as a process: signals, exit codes, what it prints.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "server/edge/rules.h"
#include "server/edge/support.h"

namespace ration {
namespace {

using testing::eventually;
using testing::Folder;
using testing::HttpReply;
using testing::Upstream;
using namespace std::chrono_literals;

// `ration ARGUMENTS...` with its output in files of a folder.
class Process {
public:
    Process(const Folder& folder, std::vector<std::string> arguments) : folder_(folder) {
        arguments.insert(arguments.begin(), RATION_BINARY);
        std::vector<char*> argv;
        for (std::string& argument : arguments) {
            argv.push_back(argument.data());
        }
        argv.push_back(nullptr);
        posix_spawn_file_actions_t files;
        posix_spawn_file_actions_init(&files);
        constexpr int flags = O_WRONLY | O_CREAT | O_APPEND;
        posix_spawn_file_actions_addopen(&files, 1, folder.path("out").c_str(), flags, 0600);
        posix_spawn_file_actions_addopen(&files, 2, folder.path("err").c_str(), flags, 0600);
        EXPECT_EQ(posix_spawn(&pid_, RATION_BINARY, &files, nullptr, argv.data(), environ), 0);
        posix_spawn_file_actions_destroy(&files);
    }
    ~Process() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            static_cast<void>(wait());
        }
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    void signal(int number) const { ::kill(pid_, number); }
    // The exit code; -1 when a signal ended it.
    int wait() {
        int status = 0;
        ::waitpid(pid_, &status, 0);
        pid_ = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    [[nodiscard]] std::string errors() const { return folder_.read("err"); }

private:
    const Folder& folder_;
    pid_t pid_ = 0;
};

class ServeCommand : public ::testing::Test {
protected:
    void start(std::chrono::milliseconds upstream_delay = 0ms, std::string_view more = "") {
        upstream_ = std::make_unique<Upstream>(upstream_delay);
        folder_.write("policy.yaml", testing::ping_policy);
        folder_.write("directory.yaml", testing::ping_directory);
        folder_.write("serve.yaml",
                      cat("policy: policy.yaml\ndirectory: directory.yaml\n"
                          "listeners: 127.0.0.1:0\nadmin: 127.0.0.1:0\ncounters: {memory: 1MiB}\n"
                          "access_log: access.jsonl\nupstream: http://127.0.0.1:",
                          upstream_->port(), "\n", more));
        process_ = std::make_unique<Process>(
            folder_, std::vector<std::string>{"serve", folder_.path("serve.yaml")});
        ASSERT_TRUE(eventually([&] { return port_after("admin http://127.0.0.1:") != 0; }, 60))
            << process_->errors();
        gateway_ = port_after("gateway http://127.0.0.1:");
        admin_ = port_after("admin http://127.0.0.1:");
    }
    [[nodiscard]] std::uint16_t port_after(std::string_view text) const {
        const std::string errors = process_->errors();
        const std::size_t at = errors.find(text);
        const std::size_t end = errors.find('\n', at == std::string::npos ? 0 : at);
        return at == std::string::npos || end == std::string::npos
                   ? std::uint16_t{0}
                   : static_cast<std::uint16_t>(std::stoi(errors.substr(at + text.size())));
    }
    [[nodiscard]] std::future<HttpReply> ping_in_background() const {
        return std::async(std::launch::async,
                          [port = gateway_] { return testing::ask(port, "GET", "/v1/ping"); });
    }

    Folder folder_;
    std::unique_ptr<Upstream> upstream_;
    std::unique_ptr<Process> process_;
    std::uint16_t gateway_ = 0;
    std::uint16_t admin_ = 0;
};

TEST_F(ServeCommand, TermFinishesWhatRunsAndExitsWith0) {
    start(1500ms);
    std::future<HttpReply> running = ping_in_background();
    ASSERT_TRUE(eventually([&] { return upstream_->requests() == 1; }));
    process_->signal(SIGTERM);
    EXPECT_TRUE(eventually([&] { return !testing::Connection(gateway_).open(); }));
    EXPECT_EQ(testing::ask(admin_, "GET", "/readyz").status, 503);
    EXPECT_EQ(running.get().body, "hello");
    EXPECT_EQ(process_->wait(), 0) << process_->errors();
    EXPECT_NE(folder_.read("access.jsonl").find("\"status\":200"), std::string::npos);
}

TEST_F(ServeCommand, InterruptStopsAnIdleServerAtOnce) {
    start();
    process_->signal(SIGINT);
    EXPECT_EQ(process_->wait(), 0) << process_->errors();
}

TEST_F(ServeCommand, ASecondSignalStopsAtOnce) {
    start(10'000ms);
    std::future<HttpReply> running = ping_in_background();
    ASSERT_TRUE(eventually([&] { return upstream_->requests() == 1; }));
    process_->signal(SIGTERM);
    ASSERT_TRUE(
        eventually([&] { return process_->errors().find("stopping") != std::string::npos; }));
    process_->signal(SIGTERM);
    EXPECT_EQ(process_->wait(), 1);
    EXPECT_EQ(running.get().status, 0);
}

TEST_F(ServeCommand, WhatOutlivesTheDrainTimeIsCut) {
    start(10'000ms, "drain: 100ms\n");
    std::future<HttpReply> running = ping_in_background();
    ASSERT_TRUE(eventually([&] { return upstream_->requests() == 1; }));
    process_->signal(SIGTERM);
    EXPECT_EQ(process_->wait(), 1) << process_->errors();
    EXPECT_EQ(running.get().status, 0);
}

TEST_F(ServeCommand, HangUpReloads) {
    start();
    std::string policy(testing::ping_policy);
    policy.replace(policy.find("10/hour"), 7, "oops");
    folder_.replace("policy.yaml", policy);
    process_->signal(SIGHUP);
    EXPECT_TRUE(eventually([&] {
        return process_->errors().find("error " + folder_.path("policy.yaml") + ":14:") !=
               std::string::npos;
    })) << process_->errors();
    EXPECT_EQ(testing::ask(gateway_, "GET", "/v1/ping").status, 200);
}

TEST_F(ServeCommand, User1ReopensTheAccessLog) {
    start();
    ASSERT_EQ(testing::ask(gateway_, "GET", "/v1/ping").status, 200);
    ASSERT_TRUE(eventually([&] { return !folder_.read("access.jsonl").empty(); }));
    ASSERT_EQ(std::rename(folder_.path("access.jsonl").c_str(), folder_.path("old").c_str()), 0);
    process_->signal(SIGUSR1);
    EXPECT_TRUE(
        eventually([&] { return ::access(folder_.path("access.jsonl").c_str(), F_OK) == 0; }));
    ASSERT_EQ(testing::ask(gateway_, "GET", "/v1/ping").status, 200);
    EXPECT_TRUE(eventually([&] { return !folder_.read("access.jsonl").empty(); }));
}

TEST_F(ServeCommand, ABrokenPipeIsNoReasonToEnd) {
    start();
    process_->signal(SIGPIPE);
    EXPECT_EQ(testing::ask(gateway_, "GET", "/v1/ping").status, 200);
    process_->signal(SIGTERM);
    EXPECT_EQ(process_->wait(), 0);
}

TEST(ServeCommandErrors, ExitCodes) {
    const Folder folder;
    folder.write("bad.yaml", "polcy: p.yaml\nupstream: http://127.0.0.1:1\n");
    Process bad(folder, {"serve", folder.path("bad.yaml")});
    EXPECT_EQ(bad.wait(), 1);
    EXPECT_NE(bad.errors().find("bad.yaml:1:1: unknown key of serve.yaml 'polcy'; did you mean "
                                "'policy'?"),
              std::string::npos)
        << bad.errors();
    Process missing(folder, {"serve", folder.path("nowhere.yaml")});
    EXPECT_EQ(missing.wait(), 1);
    EXPECT_NE(missing.errors().find("nowhere.yaml"), std::string::npos);
    Process no_file(folder, {"serve"});
    EXPECT_EQ(no_file.wait(), 2);
}

constexpr std::string_view booking_policy =
    "policy: p\nroutes: {book: POST /bookings}\nlimits: []\n"
    "idempotency:\n  - {routes: [book], scope: [address]}\n"
    "ceilings:\n  - {name: c, routes: [book], per: [address], at_most: 1 per day in Etc/UTC}\n";

// What shows only when a setting is used stands at the setting too.
TEST(ServeCommandErrors, HaveTheirPlace) {
    const Upstream other;
    const std::string taken = cat("127.0.0.1:", other.port());
    const struct {
        std::string settings;
        std::string error;
    } cases[] = {
        {"", "policy.yaml:5:5: ceilings, quotas and idempotency need a ledger"},
        {"ledger: no/such/folder.db\n", "serve.yaml:4:9: "},
        {"ledger: held.db\n", "held.db: in use by process "},
        {"ledger: l.db\nlisteners:\n  - 127.0.0.1:0\n  - " + taken + "\n",
         "serve.yaml:7:5: cannot listen on "},
        {"ledger: l.db\nadmin:\n  listen: " + taken + "\n", "serve.yaml:6:3: cannot listen on "},
        {"ledger: l.db\naccess_log: no/such/folder.log\n", "serve.yaml:5:13: access log "},
        {"ledger: l.db\nlisteners:\n  - {address: \"127.0.0.1:0\", tls: {certificate: "
         "policy.yaml, key: policy.yaml}}\n",
         "serve.yaml:6:5: listener 127.0.0.1:0: "},
        {"ledger: l.db\ncounters: {redis: {address: \"127.0.0.1:1\", tls: {ca: policy.yaml}}}\n",
         "serve.yaml:5:19: counters: redis: "},
    };
    for (const auto& one : cases) {
        const Folder folder;
        folder.write("policy.yaml", booking_policy);
        const std::string first = "policy: policy.yaml\nupstream: http://127.0.0.1:1\n";
        const std::string admin =
            one.settings.find("admin:") == std::string::npos ? "admin: off\n" : "# admin\n";
        folder.write("serve.yaml", first + admin + one.settings);
        const int held = ::open(folder.path("held.db.lock").c_str(), O_RDWR | O_CREAT, 0600);
        ASSERT_EQ(::flock(held, LOCK_EX), 0);
        Process process(folder, {"serve", folder.path("serve.yaml")});
        EXPECT_EQ(process.wait(), 1);
        const std::string errors = process.errors();
        const bool of_file = one.error.find(".yaml:") != std::string::npos;
        EXPECT_NE(errors.find(of_file ? folder.path(one.error) : one.error), std::string::npos)
            << one.settings << errors;
        if (one.settings.find("held") != std::string::npos) {
            EXPECT_EQ(errors.find(folder.path("serve.yaml:4:9: ")), 0U) << errors;
        }
        ::close(held);
    }
}

// Reading a pipe would wait for a writer, and nobody could stop the process meanwhile.
TEST(ServeCommandErrors, APipeIsNoPolicy) {
    const Folder folder;
    ASSERT_EQ(::mkfifo(folder.path("policy.yaml").c_str(), 0600), 0);
    folder.write("serve.yaml", "policy: policy.yaml\nupstream: http://127.0.0.1:1\n");
    for (const char* command : {"serve", "check"}) {
        Process process(folder, {command, folder.path("serve.yaml")});
        EXPECT_EQ(process.wait(), 1);
        EXPECT_NE(process.errors().find(folder.path("policy.yaml: is a pipe, a socket or a "
                                                    "device, not a file")),
                  std::string::npos)
            << process.errors();
    }
}

// A ledger is opened at the start alone.
TEST_F(ServeCommand, ALedgerGivenAtAReloadNeedsARestart) {
    start();
    folder_.replace("serve.yaml", folder_.read("serve.yaml") + "ledger: late.db\n");
    process_->signal(SIGHUP);
    EXPECT_TRUE(eventually([&] {
        return process_->errors().find("in force only after a restart: ledger") !=
               std::string::npos;
    })) << process_->errors();
    folder_.replace("policy.yaml", booking_policy);
    process_->signal(SIGHUP);
    EXPECT_TRUE(eventually([&] {
        return process_->errors().find("policy.yaml:5:5: ceilings, quotas and idempotency need") !=
               std::string::npos;
    })) << process_->errors();
    EXPECT_EQ(testing::ask(gateway_, "GET", "/v1/ping").status, 200);
}

// The subject of the certificate that a new connection is shown.
std::string shown_certificate(std::uint16_t port) {
    const std::string command = cat("openssl s_client -connect 127.0.0.1:", port,
                                    " </dev/null 2>/dev/null | openssl x509 -noout -subject");
    FILE* pipe = ::popen(command.c_str(), "r");
    char line[256] = {};
    const bool read = std::fgets(line, sizeof line, pipe) != nullptr;
    ::pclose(pipe);
    return read ? line : "";
}

void make_certificate(const Folder& folder, std::string_view name) {
    const std::string command =
        cat("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
            "/CN=",
            name, " -keyout ", folder.path("new.key"), " -out ", folder.path("new.crt"),
            " 2>/dev/null");
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

TEST_F(ServeCommand, CertificatesAreRenewedByAReload) {
    make_certificate(folder_, "first");
    folder_.write("tls.crt", folder_.read("new.crt"));
    folder_.write("tls.key", folder_.read("new.key"));
    start(0ms, "");
    std::string settings = folder_.read("serve.yaml");
    settings.replace(settings.find("listeners: 127.0.0.1:0"), 22,
                     "listeners: [\"127.0.0.1:0\", {address: \"127.0.0.1:0\", tls: {certificate: "
                     "tls.crt, key: tls.key}}]");
    process_.reset();
    folder_.write("err", "");
    folder_.write("serve.yaml", settings);
    process_ = std::make_unique<Process>(
        folder_, std::vector<std::string>{"serve", folder_.path("serve.yaml")});
    ASSERT_TRUE(eventually([&] { return port_after("admin http://127.0.0.1:") != 0; }, 60));
    const std::uint16_t port = port_after("gateway https://127.0.0.1:");
    EXPECT_NE(shown_certificate(port).find("first"), std::string::npos);

    // A certificate without its key: the old pair stays, and the place is told.
    make_certificate(folder_, "second");
    folder_.replace("tls.crt", folder_.read("new.crt"));
    process_->signal(SIGHUP);
    EXPECT_TRUE(eventually([&] {
        return process_->errors().find(folder_.path("serve.yaml:3:28: listener 127.0.0.1:0: ")) !=
               std::string::npos;
    })) << process_->errors();
    EXPECT_NE(shown_certificate(port).find("first"), std::string::npos);

    // The key comes after it: noticed without a signal.
    folder_.replace("tls.key", folder_.read("new.key"));
    EXPECT_TRUE(
        eventually([&] { return shown_certificate(port).find("second") != std::string::npos; }, 60))
        << process_->errors();
}

}  // namespace
}  // namespace ration
