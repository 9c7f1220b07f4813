// Reload as callers and operators see it: through the real gateway and the real files.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "server/edge/fixture.h"

namespace ration {
namespace {

using nlohmann::json;
using testing::eventually;
using testing::HttpReply;

class ReloadTest : public testing::ServerTest {
protected:
    [[nodiscard]] bool metric(std::string_view line) const {
        return admin("/metrics").body.find(cat("\n", line, "\n")) != std::string::npos;
    }
    // For tests that reload by themselves and count what was told.
    void start_without_watch() {
        tick_ = std::chrono::hours(1);
        start();
    }
    // Other rules, another access log, a token for the admin listener, one more thread.
    void change_settings() const {
        folder_.write("other.yaml", policy_with("3/hour"));
        folder_.write("token", "0123456789abcdef\n");
        std::string settings = folder_.read("serve.yaml");
        settings.replace(settings.find("policy.yaml"), 11, "other.yaml");
        settings.replace(settings.find("access.jsonl"), 12, "second.jsonl");
        settings.replace(settings.find("threads: 2"), 10, "threads: 3");
        settings.replace(settings.find("\"127.0.0.1:0\"}"), 14,
                         "\"127.0.0.1:0\", token_file: token}");
        folder_.replace("serve.yaml", settings);
    }
    [[nodiscard]] std::ptrdiff_t lines_of(std::string_view file) const {
        const std::string lines = folder_.read(file);
        return std::count(lines.begin(), lines.end(), '\n');
    }
};

TEST_F(ReloadTest, UseIsKeptAndNewNumbersHoldAtOnce) {
    start_without_watch();
    EXPECT_EQ(pings(12), 10);
    folder_.write("policy.yaml", policy_with("20/hour"));
    EXPECT_TRUE(server_->reload(ReloadCause::signal).ok);
    EXPECT_EQ(pings(12), 10);  // twenty less the ten already used
    folder_.write("policy.yaml", policy_with("5/hour"));
    EXPECT_TRUE(server_->reload(ReloadCause::signal).ok);
    EXPECT_EQ(pings(3), 0);
    EXPECT_EQ(pings(7, "198.51.100.2"), 5);
}

TEST_F(ReloadTest, ABadFileChangesNothingAndSaysWhere) {
    start_without_watch();
    EXPECT_EQ(pings(3), 3);
    std::string bad = policy_with("20/hour");
    bad.replace(bad.find("token_bucket"), 12, "token_bukcet");
    folder_.write("policy.yaml", bad);
    const ReloadResult result = server_->reload(ReloadCause::signal);
    EXPECT_FALSE(result.ok);
    EXPECT_FALSE(result.changed);
    ASSERT_FALSE(result.problems.errors().empty());
    EXPECT_EQ(log_.count(cat("error: ", folder_.path("policy.yaml"), ":14:5: ")), 1) << log_.text();
    EXPECT_EQ(log_.count("what was in force stays in force"), 1);
    EXPECT_TRUE(metric("ration_reload_last_succeeded 0"));
    EXPECT_TRUE(metric("ration_reloads_total{result=\"failure\"} 1"));
    EXPECT_EQ(json::parse(admin("/readyz").body)["last_reload"], "failed");
    EXPECT_EQ(admin("/readyz").status, 200);
    EXPECT_EQ(pings(10), 7);  // the old ten
    folder_.write("policy.yaml", policy_with("20/hour"));
    EXPECT_TRUE(server_->reload(ReloadCause::signal).ok);
    EXPECT_TRUE(metric("ration_reload_last_succeeded 1"));
    EXPECT_EQ(pings(12), 10);
}

TEST_F(ReloadTest, ABadDirectoryKeepsTheGoodPolicyOut) {
    start_without_watch();
    folder_.write("policy.yaml", policy_with("20/hour"));
    folder_.write("directory.yaml",
                  "entities: {workspace: {ws_1: {}}}\n"
                  "credentials:\n  sk_x: {kind: secret, workspace: ws_nowhere}\n");
    const ReloadResult result = server_->reload(ReloadCause::signal);
    EXPECT_FALSE(result.ok);
    ASSERT_FALSE(result.problems.errors().empty());
    EXPECT_EQ(result.problems.errors()[0].file, folder_.path("directory.yaml"));
    EXPECT_EQ(result.problems.errors()[0].at.line, 3);
    EXPECT_EQ(pings(15), 10);
}

TEST_F(ReloadTest, AChangedFileIsNoticedHoweverItIsWritten) {
    start();
    EXPECT_EQ(pings(10), 10);
    folder_.replace("policy.yaml", policy_with("11/hour"));
    EXPECT_TRUE(
        eventually([&] { return log_.count("file change): new rules are in force") == 1; }));
    EXPECT_EQ(pings(2), 1);
    // Editors that move the old file away first: nothing is there for a while.
    std::filesystem::rename(folder_.path("policy.yaml"), folder_.path("policy.yaml~"));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    folder_.replace("policy.yaml", policy_with("12/hour"));
    EXPECT_TRUE(
        eventually([&] { return log_.count("file change): new rules are in force") == 2; }));
    EXPECT_EQ(pings(2), 1);
    EXPECT_EQ(log_.count("error"), 0) << log_.text();
    // In place: who writes slowly enough is met half-way, which is told and changes nothing.
    folder_.write("policy.yaml", policy_with("13/hour"));
    EXPECT_TRUE(
        eventually([&] { return log_.count("file change): new rules are in force") == 3; }));
    EXPECT_EQ(pings(2), 1);
}

TEST_F(ReloadTest, ABadFileIsToldOnceAndItsCureTaken) {
    start();
    folder_.replace("policy.yaml", "policy: [");
    EXPECT_TRUE(eventually([&] { return log_.count("reload (file change) failed") == 1; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_EQ(log_.count("reload (file change) failed"), 1);
    folder_.replace("policy.yaml", "policy: [");  // touched, not cured
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_EQ(log_.count("reload (file change) failed"), 1);
    folder_.replace("policy.yaml", policy_with("20/hour"));
    EXPECT_TRUE(eventually([&] { return log_.count("new rules are in force") == 1; }));
    EXPECT_EQ(pings(25), 20);
}

TEST_F(ReloadTest, TheSameTextIsNoNewPolicy) {
    start();
    const std::string before = json::parse(admin("/v1/policy").body)["loaded_at"];
    folder_.replace("policy.yaml", testing::ping_policy);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_EQ(log_.count("reload"), 0) << log_.text();
    const ReloadResult result = server_->reload(ReloadCause::signal);
    EXPECT_TRUE(result.ok);
    EXPECT_FALSE(result.changed);
    EXPECT_EQ(json::parse(admin("/v1/policy").body)["loaded_at"], before);
}

TEST_F(ReloadTest, ByTheAdminListener) {
    start_without_watch();
    folder_.write("policy.yaml", "policy: ping\nroutes: {ping: GET v1}\n");
    const HttpReply bad = admin("/v1/reload", "POST");
    EXPECT_EQ(bad.status, 422);
    EXPECT_EQ(json::parse(bad.body)["problems"][0]["line"], 2);
    const std::string raised = policy_with("20/hour");
    folder_.write("policy.yaml", raised);
    const HttpReply good = admin("/v1/reload", "POST");
    EXPECT_EQ(good.status, 200);
    EXPECT_EQ(json::parse(good.body)["changed"], true);
    EXPECT_EQ(log_.count("new rules are in force"), 1);
    const json policy = json::parse(admin("/v1/policy").body);
    EXPECT_EQ(policy["digest"], text_digest(raised));
    EXPECT_NE(policy["limits"][0]["numbers"]["default"].get<std::string>().find("20/h"),
              std::string::npos);
}

TEST_F(ReloadTest, SettingsThatCanChangeDoAndTheRestIsNamed) {
    start_without_watch();
    EXPECT_EQ(ping().status, 200);
    // The answer is out before it is reported.
    EXPECT_TRUE(eventually([&] { return lines_of("access.jsonl") == 1; }));
    change_settings();
    const ReloadResult result = server_->reload(ReloadCause::signal);
    EXPECT_TRUE(result.ok) << log_.text();
    EXPECT_EQ(result.restart_needed, "threads");
    EXPECT_EQ(log_.count("in force only after a restart: threads"), 1);
    EXPECT_EQ(pings(5, "198.51.100.9"), 3);
    EXPECT_EQ(admin("/healthz").status, 401);
    EXPECT_TRUE(eventually([&] { return lines_of("second.jsonl") == 5; }));
    EXPECT_EQ(lines_of("access.jsonl"), 1);
}

TEST_F(ReloadTest, TheFilesThatAreNamedNowAreTheOnesThatAreWatched) {
    start();
    change_settings();
    const auto told = [&] { return log_.count("file change): new rules are in force"); };
    EXPECT_TRUE(eventually([&] { return told() == 1; }));
    folder_.replace("other.yaml", policy_with("4/hour"));
    EXPECT_TRUE(eventually([&] { return told() == 2; }));
    folder_.replace("policy.yaml", policy_with("5/hour"));  // named no more
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_EQ(told(), 2);
    EXPECT_EQ(pings(6, "198.51.100.9"), 4);
}

TEST_F(ReloadTest, BadSettingsChangeNothing) {
    start_without_watch();
    folder_.write("policy.yaml", policy_with("20/hour"));
    write_settings("drain: soon\n");
    const ReloadResult result = server_->reload(ReloadCause::signal);
    EXPECT_FALSE(result.ok);
    ASSERT_FALSE(result.problems.errors().empty());
    EXPECT_EQ(result.problems.errors()[0].at.line, 9);
    EXPECT_EQ(pings(15), 10);
    std::string settings = folder_.read("serve.yaml");
    settings.replace(settings.find("drain: soon"), 11, "drain: 1s");
    settings.replace(settings.find("access.jsonl"), 12, "no/folder.jsonl");
    folder_.write("serve.yaml", settings);
    EXPECT_FALSE(server_->reload(ReloadCause::signal).ok);
    EXPECT_EQ(pings(15, "198.51.100.3"), 10);
}

}  // namespace
}  // namespace ration
