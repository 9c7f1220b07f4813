// A whole server in this process, on ports of the system's choice, before a scripted upstream.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/text.h"
#include "server/edge/rules.h"
#include "server/edge/support.h"
#include "server/server.h"

namespace ration::testing {

inline const char* no_environment(const char*) {
    return nullptr;
}

class ServerTest : public ::testing::Test {
protected:
    // Writes the files and starts; `more` is added to serve.yaml.
    void start(std::string_view more = "") {
        folder_.write("policy.yaml", ping_policy);
        folder_.write("directory.yaml", ping_directory);
        write_settings(more);
        Problems problems;
        const auto config = ServeConfig::load(folder_.path("serve.yaml"), no_environment, problems);
        ASSERT_TRUE(config.has_value()) << problems.status();
        auto started = Server::start(*config, {.clock = clock_,
                                               .log = log_,
                                               .environment = no_environment,
                                               .counters = counters_,
                                               .tick = tick_,
                                               .recheck = recheck_,
                                               .version = "1.2.3"});
        ASSERT_TRUE(started.ok()) << started.status();
        server_ = *std::move(started);
    }
    void write_settings(std::string_view more) const {
        folder_.replace("serve.yaml",
                        cat("policy: policy.yaml\ndirectory: directory.yaml\n"
                            "listeners: 127.0.0.1:0\nadmin: {listen: \"127.0.0.1:0\"}\n"
                            "counters: {memory: 1MiB}\nthreads: 2\n"
                            "access_log: access.jsonl\nupstream: http://127.0.0.1:",
                            upstream_.port(), "\n", more));
    }
    // The policy with other numbers for "pings".
    [[nodiscard]] static std::string policy_with(std::string_view rate) {
        std::string text(ping_policy);
        text.replace(text.find("10/hour"), 7, rate);
        return text;
    }
    [[nodiscard]] HttpReply ping(std::string_view address = "198.51.100.1",
                                 std::string_view key = "") const {
        FieldMap fields{{"X-Forwarded-For", std::string(address)}};
        if (!key.empty()) {
            fields["Authorization"] = cat("Bearer ", key);
        }
        return ask(server_->gateway_port(0), "GET", "/v1/ping", fields);
    }
    // How many of `times` pings are admitted.
    [[nodiscard]] int pings(int times, std::string_view address = "198.51.100.1") const {
        int admitted = 0;
        for (int i = 0; i < times; ++i) {
            admitted += ping(address).status == 200 ? 1 : 0;
        }
        return admitted;
    }
    [[nodiscard]] HttpReply admin(std::string_view path, std::string_view method = "GET") const {
        return ask(server_->admin_port(), method, path);
    }

    // How often the files are looked at; set before `start`. Where a test reloads by itself and
    // counts what was told, nothing else may come first.
    Nanos tick_ = std::chrono::milliseconds(20);
    Nanos recheck_ = std::chrono::milliseconds(20);
    Folder folder_;
    RecordingLog log_;
    Upstream upstream_;
    SystemClock clock_;
    Counters* counters_ = nullptr;
    std::unique_ptr<Server> server_;
};

}  // namespace ration::testing
