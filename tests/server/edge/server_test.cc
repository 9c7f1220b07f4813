#include "server/server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "server/edge/fixture.h"

namespace ration {
namespace {

using nlohmann::json;
using testing::eventually;
using testing::HttpReply;

// Memory counters that can be made to give no answer.
class Switchable final : public Counters {
public:
    Switchable() : behind_(*open_memory_counters({.max_bytes = 1 << 20})) {}
    void apply(std::span<const Transaction> transactions, Now now,
               std::span<Outcome> outcomes) override {
        if (down) {
            for (Outcome& outcome : outcomes) {
                outcome = {};
                outcome.status = absl::StatusCode::kUnavailable;
            }
            return;
        }
        behind_->apply(transactions, now, outcomes);
    }
    void sweep(Now now, std::size_t budget) override {
        ++sweeps;
        behind_->sweep(now, budget);
    }
    [[nodiscard]] CounterStats stats() const override { return behind_->stats(); }

    std::atomic<bool> down{false};
    std::atomic<int> sweeps{0};

private:
    std::unique_ptr<Counters> behind_;
};

class WholeServer : public testing::ServerTest {
protected:
    WholeServer() { counters_ = &switchable_; }
    ~WholeServer() override { server_.reset(); }  // it uses the counters until then
    Switchable switchable_;
};

TEST_F(WholeServer, ServesAndSaysWhere) {
    start();
    const HttpReply reply = ping();
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "hello");
    EXPECT_EQ(upstream_.requests(), 1);
    EXPECT_EQ(log_.count(cat("info: gateway http://127.0.0.1:", server_->gateway_port(0),
                             " → http://127.0.0.1:", upstream_.port())),
              1)
        << log_.text();
    EXPECT_EQ(log_.count(cat("info: admin http://127.0.0.1:", server_->admin_port())), 1);
}

TEST_F(WholeServer, MetricsAgreeWithWhatWasAnswered) {
    start();
    EXPECT_EQ(pings(13), 10);
    const auto has = [&](std::string_view line) {
        return admin("/metrics").body.find(cat("\n", line, "\n")) != std::string::npos;
    };
    // The last line of a request is told after its last byte.
    EXPECT_TRUE(eventually(
        [&] { return has("ration_decisions_total{rule=\"pings\",outcome=\"refused\"} 3"); }));
    EXPECT_TRUE(has("ration_decisions_total{rule=\"pings\",outcome=\"admitted\"} 10"));
    EXPECT_TRUE(has("ration_responses_total{class=\"4xx\"} 3"));
    EXPECT_TRUE(has("ration_refusal_wait_seconds_count 3"));
    EXPECT_TRUE(has("ration_upstream_duration_seconds_count 10"));
    EXPECT_TRUE(has("ration_connections_accepted_total 13"));
    EXPECT_TRUE(has("ration_build_info{version=\"1.2.3\"} 1"));
}

TEST_F(WholeServer, LabelsDoNotGrowWithCallers) {
    start();
    static_cast<void>(ping());
    const auto series = [&] {
        const std::string body = admin("/metrics").body;
        return std::count(body.begin(), body.end(), '\n');
    };
    const auto before = series();
    for (int i = 0; i < 50; ++i) {
        static_cast<void>(testing::ask(server_->gateway_port(0), cat("M", i), cat("/p/", i),
                                       {{"Authorization", cat("Bearer sk_guess", i)}}));
    }
    EXPECT_EQ(series(), before);
}

TEST_F(WholeServer, NoSecretAnywhere) {
    start();
    const std::string secrets[] = {"sk_live_s3cret", "sk_guess_s3cret", "pw_s3cret"};
    for (const std::string& secret : secrets) {
        static_cast<void>(ping("198.51.100.1", secret));
        static_cast<void>(
            testing::ask(server_->gateway_port(0), "GET", cat("/v1/ping?key=", secret),
                         {{"Cookie", cat("session=", secret)}, {"X-Api-Key", secret}}));
        testing::Connection broken(server_->gateway_port(0));
        broken.send(cat("GET ", secret, " HTTP/1.1\r\nHost: a\r\nX y: ", secret, "\r\n\r\n"));
        EXPECT_EQ(broken.read().body.find("s3cret"), std::string::npos);
    }
    std::string all = cat(admin("/metrics").body, admin("/v1/policy").body);
    EXPECT_TRUE(eventually([&] {
        const std::string lines = folder_.read("access.jsonl");
        return std::count(lines.begin(), lines.end(), '\n') == 9;
    }));
    all += cat(folder_.read("access.jsonl"), log_.text());
    EXPECT_EQ(all.find("s3cret"), std::string::npos) << all;
    EXPECT_NE(all.find("\"credential\":\"secret\""), std::string::npos);
    EXPECT_NE(all.find("\"credential\":\"unknown\""), std::string::npos);
}

TEST_F(WholeServer, AnOutageOfTheCounters) {
    start();
    EXPECT_EQ(ping().status, 200);
    EXPECT_EQ(admin("/readyz").status, 200);
    switchable_.down = true;
    EXPECT_EQ(ping().status, 200);  // open
    EXPECT_EQ(ping().status, 200);
    EXPECT_EQ(admin("/readyz").status, 200) << "open: it still serves";
    EXPECT_EQ(json::parse(admin("/readyz").body)["counters"], "give no answer");
    EXPECT_EQ(admin("/healthz").status, 200);
    EXPECT_TRUE(
        eventually([&] { return log_.count("warning: the counters give no answer") == 1; }));
    EXPECT_TRUE(eventually([&] {  // a request is counted when its answer is on its way
        return admin("/metrics")
                   .body.find("\nration_store_down_total{rule=\"pings\",choice=\"open\"} 2\n") !=
               std::string::npos;
    }));
    EXPECT_NE(admin("/metrics").body.find("\nration_counters_up 0\n"), std::string::npos);
    switchable_.down = false;
    EXPECT_EQ(ping().status, 200);
    EXPECT_EQ(admin("/readyz").status, 200);
    EXPECT_TRUE(eventually([&] { return log_.count("the counters answer again") == 1; }));
    EXPECT_EQ(log_.count("give no answer"), 1);
    EXPECT_NE(admin("/metrics").body.find("\nration_counters_up 1\n"), std::string::npos);
}

// No look at all comes along here, so each of these is known by the question that /readyz asked.
TEST_F(WholeServer, WhatReadyzFindsIsWhatTheMetricAndTheLogSay) {
    tick_ = recheck_ = std::chrono::hours(1);
    start();
    const auto says = [&](std::string_view counters, int up) {
        EXPECT_EQ(json::parse(admin("/readyz").body)["counters"], counters);
        EXPECT_NE(admin("/metrics").body.find(cat("\nration_counters_up ", up, "\n")),
                  std::string::npos);
    };
    for (int outage = 1; outage <= 3; ++outage) {
        says("answer", 1);
        switchable_.down = true;
        EXPECT_EQ(ping().status, 200);
        says("give no answer", 0);
        says("give no answer", 0);
        EXPECT_EQ(log_.count("warning: the counters give no answer"), outage);
        switchable_.down = false;
        says("answer", 1);
        EXPECT_EQ(log_.count("the counters answer again"), outage);
    }
    EXPECT_EQ(log_.count("warning: the counters"), 3);
    EXPECT_EQ(switchable_.sweeps, 0);
}

TEST_F(WholeServer, AnOutageEndsBetweenTwoLooksThoughNobodyAsks) {
    tick_ = std::chrono::hours(1);
    recheck_ = std::chrono::milliseconds(5);
    start();
    switchable_.down = true;
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(ping().status, 200);  // more than will be answered afterwards
    }
    EXPECT_EQ(json::parse(admin("/readyz").body)["counters"], "give no answer");
    switchable_.down = false;
    EXPECT_TRUE(eventually([&] { return log_.count("the counters answer again") == 1; }));
    EXPECT_NE(admin("/metrics").body.find("\nration_counters_up 1\n"), std::string::npos);
    EXPECT_EQ(switchable_.sweeps, 0);
}

TEST_F(WholeServer, CountersAreSweptWithoutRequests) {
    start();
    EXPECT_TRUE(eventually([&] { return switchable_.sweeps >= 3; }));
}

TEST_F(WholeServer, ADrainingServerSaysSo) {
    start("drain: 1s\n");
    testing::Connection idle(server_->gateway_port(0));
    EXPECT_EQ(admin("/readyz").status, 200);
    EXPECT_TRUE(server_->drain());
    EXPECT_TRUE(idle.closes());
    const HttpReply ready = admin("/readyz");
    EXPECT_EQ(ready.status, 503);
    EXPECT_EQ(json::parse(ready.body)["draining"], true);
    EXPECT_EQ(admin("/healthz").status, 200);
    EXPECT_FALSE(testing::Connection(server_->gateway_port(0)).open());
}

TEST_F(WholeServer, StartErrorsNameTheirCause) {
    start();
    const auto again = [&](std::string_view settings) {
        Problems problems;
        const auto config = ServeConfig::parse(folder_.path("serve.yaml"), settings,
                                               testing::no_environment, problems);
        EXPECT_TRUE(config.has_value()) << problems.status();
        return std::string(
            Server::start(*config,
                          {.clock = clock_, .log = log_, .environment = testing::no_environment})
                .status()
                .message());
    };
    const std::string rest = "\nupstream: http://127.0.0.1:1\naccess_log: off\n";
    const std::string file = folder_.path("serve.yaml");
    // The listeners share their ports among threads, but not with another server.
    EXPECT_EQ(again(cat("policy: policy.yaml\nadmin: off\nlisteners: 127.0.0.1:",
                        server_->gateway_port(0), rest)),
              cat(file, ":3:12: cannot listen on 127.0.0.1:", server_->gateway_port(0),
                  ": another process listens there"));
    EXPECT_EQ(again(cat("policy: policy.yaml\nlisteners: 127.0.0.1:0\nadmin: 127.0.0.1:",
                        server_->admin_port(), rest)),
              cat(file, ":3:8: cannot listen on 127.0.0.1:", server_->admin_port(),
                  ": another process listens there"));
    const std::string free = cat("admin: off\nlisteners: 127.0.0.1:0", rest);
    EXPECT_EQ(again(cat("policy: nowhere.yaml\n", free)),
              cat(folder_.path("nowhere.yaml"), ": cannot be opened for reading"));
    folder_.write("bad.yaml", "policy: p\nroutes: {a: GET a}\n");
    EXPECT_TRUE(
        again(cat("policy: bad.yaml\n", free)).starts_with(cat(folder_.path("bad.yaml"), ":2:")));
}

}  // namespace
}  // namespace ration
