// Gateways whose counters are on a Redis: what they share, and what they do while it is away.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "counters/redis/proxy.h"
#include "counters/redis/server.h"
#include "server/edge/support.h"
#include "server/server.h"

namespace ration {
namespace {

using nlohmann::json;
using testing::eventually;
using testing::HttpReply;

constexpr std::string_view policy_text = R"(policy: shared
identify: {address: {header: X-Forwarded-For, trusted: [127.0.0.0/8]}}
routes:
  open:   GET /open
  closed: GET /closed
  local:  GET /local
  switch: GET /switch
  slots:  ANY /slots
  shadow: GET /shadow
  login:  POST /login
  free:   GET /free
limits:
  - {name: open, routes: [open], per: [], token_bucket: 60/day, headers: x_ratelimit}
  - {name: closed, routes: [closed], per: [], token_bucket: 60/day, store_down: closed}
  - {name: local, routes: [local], per: [], token_bucket: 10/day, store_down: local}
  - {name: switch, routes: [switch], per: [], token_bucket: 60/day, store_down: {closed_if: env.FAIL_CLOSED}}
  - {name: slots, routes: [slots], per: [], concurrency: 2, store_down: closed}
  - {name: both, routes: [shadow], per: [], token_bucket: 60/day}
  - {name: in shadow, routes: [shadow], per: [], token_bucket: 1/day, shadow: true}
strikes:
  - {name: failed logins, routes: [login], per: [address], failed: [401], failures: 3 per hour, block: 1 hour}
refusals:
  rate_limiter_unavailable: {body: {error: rate_limiter_unavailable}}
)";

const char* no_environment(const char*) {
    return nullptr;
}

const char* fail_closed(const char* name) {
    return std::string_view(name) == "FAIL_CLOSED" ? "true" : nullptr;
}

// One gateway, with a log of its own.
struct Node {
    testing::RecordingLog log;
    std::unique_ptr<Server> server;

    [[nodiscard]] std::uint16_t port() const { return server->gateway_port(0); }
    [[nodiscard]] HttpReply get(std::string_view path) const {
        return testing::ask(port(), "GET", path);
    }
    [[nodiscard]] HttpReply admin(std::string_view path) const {
        return testing::ask(server->admin_port(), "GET", path);
    }
    [[nodiscard]] std::string metric(std::string_view name) const {
        const std::string text = admin("/metrics").body;
        const std::string start = cat("\n", name, " ");
        const std::size_t at = text.find(start);
        return at == std::string::npos
                   ? "none"
                   : text.substr(at + start.size(), text.find('\n', at + 1) - at - start.size());
    }
};

class RedisServers : public ::testing::Test {
protected:
    explicit RedisServers(std::chrono::milliseconds upstream_takes = {})
        : upstream_(upstream_takes) {}

    // With a ledger where one is named.
    std::unique_ptr<Node> start(std::string_view redis_settings = "",
                                Policy::Environment environment = no_environment,
                                std::string_view ledger = "", bool reached = true) {
        const std::string folder = cat("node", std::to_string(nodes_++), ".yaml");
        folder_.write("policy.yaml", policy_text);
        folder_.write(folder,
                      cat("policy: policy.yaml\nlisteners: 127.0.0.1:0\n"
                          "admin: {listen: \"127.0.0.1:0\"}\nthreads: 1\n"
                          "access_log: off\nupstream: http://127.0.0.1:",
                          upstream_.port(), "\ncounters:\n  memory: 1MiB\n  replicas: 2\n",
                          "  redis: {address: \"127.0.0.1:", proxy_.port(), "\", ",
                          redis_settings.empty() ? "deadline: 500ms" : redis_settings, "}\n",
                          ledger.empty() ? std::string() : cat("ledger: ", ledger, "\n")));
        Problems problems;
        auto config = ServeConfig::load(folder_.path(folder), environment, problems);
        EXPECT_TRUE(config.has_value()) << problems.status();
        config->gateway.waiting_steps = waiting_steps_;
        auto node = std::make_unique<Node>();
        auto started = Server::start(*config, {.clock = clock_,
                                               .log = node->log,
                                               .environment = environment,
                                               .tick = std::chrono::milliseconds(20)});
        EXPECT_TRUE(started.ok()) << started.status();
        node->server = *std::move(started);
        EXPECT_TRUE(!reached || answers(*node));
        return node;
    }
    // Its connections to the counters are up.
    static bool answers(const Node& node) {
        return eventually([&] { return node.metric("ration_redis_connections_ready") == "2"; });
    }
    static bool is_down(const Node& node) {
        return eventually([&] { return node.metric("ration_redis_connections_ready") == "0"; });
    }

    static HttpReply sign_in(const Node& node, std::string_view address) {
        testing::Connection connection(node.port());
        connection.send(cat("POST /login HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n",
                            "X-Forwarded-For: ", address, "\r\n\r\n"));
        return connection.read();
    }
    static bool blocked(const Node& node, std::string_view address) {
        return sign_in(node, address).status == 429;
    }
    void block(const Node& node, std::string_view address) {
        upstream_.answer(401);
        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(sign_in(node, address).status, 401) << i;
        }
        upstream_.answer(200);
        EXPECT_TRUE(blocked(node, address));
    }

    testing::Folder folder_;
    testing::Upstream upstream_;
    SystemClock clock_;
    RedisServer redis_;
    RedisProxy proxy_{redis_.socket()};
    int nodes_ = 0;
    std::size_t waiting_steps_ = 4096;
};

TEST_F(RedisServers, SixtyAreSixtyOverBoth) {
    const auto one = start();
    const auto two = start();
    std::atomic<int> admitted{0};
    std::atomic<int> refused{0};
    {
        std::vector<std::jthread> callers;
        for (int caller = 0; caller < 4; ++caller) {
            callers.emplace_back([&, caller] {
                for (int i = 0; i < 25; ++i) {
                    const HttpReply reply = (caller % 2 == 0 ? *one : *two).get("/open");
                    ++(reply.status == 200 ? admitted : refused);
                    EXPECT_TRUE(reply.status == 200 || reply.status == 429) << reply.status;
                }
            });
        }
    }
    EXPECT_EQ(admitted, 60);
    EXPECT_EQ(refused, 40);
    const HttpReply reply = one->get("/open");
    EXPECT_EQ(reply.status, 429);
    EXPECT_EQ(reply.field("X-RateLimit-Limit"), "60");
    EXPECT_EQ(reply.field("X-RateLimit-Remaining"), "0");
    EXPECT_EQ(one->metric("ration_counters_up"), "1");
    EXPECT_NE(one->metric("ration_redis_calls_total"), "0");
}

TEST_F(RedisServers, InFlightIsCountedOverBothAndFreed) {
    const auto one = start();
    const auto two = start();
    testing::Upstream slow(std::chrono::milliseconds(0));
    for (int round = 0; round < 30; ++round) {
        EXPECT_EQ((round % 2 == 0 ? *one : *two).get("/slots").status, 200) << round;
    }
    EXPECT_TRUE(eventually([&] {
        return redis_.command({"KEYS", "*slots*"}).empty();
    })) << "every slot was given back";
}

TEST_F(RedisServers, AFreshRestartKeepsWhatWasUsed) {
    auto node = start();
    EXPECT_EQ(node->get("/open").field("X-RateLimit-Remaining"), "59");
    node.reset();
    node = start();
    EXPECT_EQ(node->get("/open").field("X-RateLimit-Remaining"), "58");
}

TEST_F(RedisServers, ShadowLimitsAreAskedInTheSameBreath) {
    const auto node = start();
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(node->get("/shadow").status, 200);
    }
    EXPECT_TRUE(eventually(
        [&] { return node->metric("ration_shadow_refusals_total{rule=\"in shadow\"}") == "2"; }));
}

TEST_F(RedisServers, AnOutageIsWhatEachLimitSays) {
    const auto node = start();
    EXPECT_EQ(node->get("/open").field("X-RateLimit-Remaining"), "59");
    redis_.kill();
    EXPECT_TRUE(is_down(*node));
    const int forwarded = upstream_.requests();
    for (int i = 0; i < 5; ++i) {
        const HttpReply open = node->get("/open");
        EXPECT_EQ(open.status, 200);
        EXPECT_EQ(open.head.find("X-RateLimit"), std::string::npos) << "no number is known";
        EXPECT_EQ(node->get("/switch").status, 200);
    }
    EXPECT_EQ(upstream_.requests(), forwarded + 10);
    const HttpReply closed = node->get("/closed");
    EXPECT_EQ(closed.status, 503);
    EXPECT_EQ(closed.field("Retry-After"), "60");
    EXPECT_EQ(json::parse(closed.body), json({{"error", "rate_limiter_unavailable"}}));
    EXPECT_EQ(upstream_.requests(), forwarded + 10) << "it was not called";
    int admitted = 0;
    for (int i = 0; i < 10; ++i) {
        admitted += node->get("/local").status == 200 ? 1 : 0;
    }
    EXPECT_EQ(admitted, 5) << "a half of ten: two gateways share it";
    EXPECT_TRUE(eventually([&] { return node->log.count("warning: the counters give no") == 1; }));
    EXPECT_EQ(node->admin("/readyz").status, 503) << "some limit refuses";
    EXPECT_EQ(node->metric("ration_counters_up"), "0");
    redis_.start();
    EXPECT_TRUE(answers(*node));
    EXPECT_EQ(node->get("/closed").status, 200);
    EXPECT_EQ(node->get("/open").field("X-RateLimit-Limit"), "60");
    EXPECT_EQ(node->admin("/readyz").status, 200);
    EXPECT_TRUE(eventually([&] { return node->log.count("the counters answer again") == 1; }));
    EXPECT_EQ(node->log.count("the counters give no"), 1) << "one line an outage";
    EXPECT_NE(node->log.text().find(cat("127.0.0.1:", proxy_.port())), std::string::npos);
}

TEST_F(RedisServers, AnOutageIsSeenAndItsEndTooThoughNobodyAsks) {
    const auto node = start();
    EXPECT_TRUE(eventually([&] { return node->metric("ration_counters_up") == "1"; }));
    redis_.kill();
    EXPECT_TRUE(eventually([&] { return node->metric("ration_counters_up") == "0"; }));
    EXPECT_EQ(node->admin("/readyz").status, 503);
    redis_.start();
    EXPECT_TRUE(eventually([&] { return node->metric("ration_counters_up") == "1"; }));
    EXPECT_TRUE(eventually([&] { return node->admin("/readyz").status == 200; }));
    EXPECT_EQ(node->log.count("warning: the counters give no answer"), 1);
    EXPECT_EQ(node->log.count("the counters answer again"), 1);
}

// It can be read, so a look at a key would find nothing wrong.
TEST_F(RedisServers, AServerThatTakesNoWritesIsNotReady) {
    const auto node = start();
    EXPECT_TRUE(eventually([&] { return node->get("/closed").status == 200; }));
    redis_.command({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_TRUE(eventually([&] { return node->get("/closed").status == 503; }));
    EXPECT_EQ(node->admin("/readyz").status, 503);
    EXPECT_TRUE(eventually([&] { return node->metric("ration_counters_up") == "0"; }));
    redis_.command({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_TRUE(eventually([&] { return node->metric("ration_counters_up") == "1"; }));
    EXPECT_EQ(node->admin("/readyz").status, 200);
    EXPECT_EQ(node->get("/closed").status, 200);
}

// One caller's key is of a wrong type: its own limits do as they say, everybody else's count.
TEST_F(RedisServers, ABrokenKeyIsNoOutage) {
    const auto node = start();
    EXPECT_TRUE(eventually([&] { return node->get("/closed").status == 200; }));
    const std::string key = redis_.command({"KEYS", "*:closed:*"});
    EXPECT_EQ(redis_.command({"DEL", key}), "1");
    EXPECT_EQ(redis_.command({"RPUSH", key, "x"}), "1");
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(node->get("/closed").status, 503);
        EXPECT_NE(node->get("/open").field("X-RateLimit-Remaining"), "");
    }
    EXPECT_TRUE(eventually([&] { return node->log.count("the counters gave no answer to") == 1; }));
    EXPECT_EQ(node->metric("ration_counters_up"), "1");
    EXPECT_EQ(node->admin("/readyz").status, 200);
    EXPECT_EQ(node->log.count("answer again"), 0);
}

TEST_F(RedisServers, TheEnvironmentClosesWhatThePolicyLeavesToIt) {
    const auto node = start("deadline: 500ms", fail_closed);
    EXPECT_EQ(node->get("/switch").status, 200);
    proxy_.refuse();
    EXPECT_TRUE(is_down(*node));
    EXPECT_EQ(node->get("/switch").status, 503);
    EXPECT_EQ(node->get("/open").status, 200);
    proxy_.pass();
    EXPECT_TRUE(answers(*node));
    EXPECT_EQ(node->get("/switch").status, 200);
}

TEST_F(RedisServers, WhateverTheServerSaysTheChoiceHolds) {
    const auto node = start();
    for (const char* answer :
         {"-OOM command not allowed when used memory > 'maxmemory'.", "-READONLY replica",
          "-LOADING Redis is loading the dataset in memory", "-BUSY a script runs", "+OK", ":1"}) {
        EXPECT_TRUE(answers(*node));
        proxy_.answer_scripts(answer);
        EXPECT_EQ(node->get("/open").status, 200) << answer;
        EXPECT_EQ(node->get("/closed").status, 503) << answer;
        proxy_.answer_scripts("");
    }
    EXPECT_TRUE(answers(*node));
    for (const int bytes : {0, 3, 20}) {
        // The answer that is cut may be one to the server's own look at the counters.
        EXPECT_TRUE(eventually([&] {
            proxy_.cut_next_answer_after(bytes);
            return node->get("/closed").status == 503;
        })) << bytes;
        EXPECT_TRUE(eventually([&] { return node->get("/closed").status == 200; }));
    }
}

// The loop has other things to do than to wait: a request that needs no counters passes one that
// waits for them, on the same thread.
TEST_F(RedisServers, ASlowStoreHoldsUpNobodyElse) {
    const auto node = start("deadline: 3s");
    proxy_.swallow();
    testing::Connection waiting(node->port());
    waiting.send("GET /closed HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(eventually([&] { return proxy_.script_runs() == 1; }));
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(node->get("/free").status, 200);
    }
    EXPECT_EQ(node->metric("ration_requests_total{outcome=\"refused\"}"), "0") << "it waits still";
    EXPECT_EQ(waiting.read().status, 503);
    EXPECT_EQ(node->get("/closed").status, 503) << "and nobody waits a second time";
    proxy_.pass();
    EXPECT_TRUE(eventually([&] { return node->get("/closed").status == 200; }));
}

TEST_F(RedisServers, APausedRedisEndsInTheChoiceAndRecovers) {
    const auto node = start("deadline: 200ms");
    redis_.pause();
    EXPECT_EQ(node->get("/closed").status, 503);
    EXPECT_EQ(node->get("/open").status, 200);
    redis_.go_on();
    EXPECT_TRUE(eventually([&] { return node->get("/closed").status == 200; }));
    EXPECT_TRUE(
        eventually([&] { return !node->get("/open").field("X-RateLimit-Remaining").empty(); }));
}

TEST_F(RedisServers, AClientThatLeavesWhileTheCountersAreAskedKeepsNoSlot) {
    const auto node = start("deadline: 2s");
    int left = 0;
    for (const char* request :
         {"GET /slots HTTP/1.1\r\nHost: a\r\n\r\n",
          "POST /slots HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"}) {
        const std::uint64_t before = proxy_.script_runs();
        proxy_.delay(300);
        {
            testing::Connection leaving(node->port());
            leaving.send(request);
            EXPECT_TRUE(eventually([&] { return proxy_.script_runs() == before + 1; }));
        }
        proxy_.pass();
        ++left;
        EXPECT_TRUE(eventually([&] {
            return node->metric("ration_requests_total{outcome=\"client_gone\"}") == cat(left) &&
                   redis_.command({"KEYS", "*slots*"}).empty();
        })) << request;
    }
    EXPECT_EQ(upstream_.requests(), 0) << "nobody waited for it";
}

TEST_F(RedisServers, BlocksHoldInEveryGateway) {
    const auto one = start();
    const auto two = start();
    upstream_.answer(401);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(testing::ask(one->port(), "POST", "/login").status, 401) << i;
    }
    upstream_.answer(200);
    EXPECT_EQ(testing::ask(one->port(), "POST", "/login").status, 429);
    const HttpReply blocked = testing::ask(two->port(), "POST", "/login");
    EXPECT_EQ(blocked.status, 429);
    EXPECT_GT(std::stoi(blocked.field("Retry-After")), 3000);
    EXPECT_EQ(upstream_.requests(), 3);
}

class RedisAwayBeforeTheAnswer : public RedisServers {
protected:
    RedisAwayBeforeTheAnswer() : RedisServers(std::chrono::milliseconds(400)) {}
};

// Their places were taken while the counters were there; what each is owed comes when they are
// back.
TEST_F(RedisAwayBeforeTheAnswer, AttemptsThatDidNotFailBlockNobody) {
    const auto node = start("deadline: 200ms");
    {
        std::vector<std::jthread> callers;
        for (int i = 0; i < 3; ++i) {
            callers.emplace_back(
                [&] { EXPECT_EQ(sign_in(*node, "203.0.113.1").status, 200) << "open"; });
        }
        EXPECT_TRUE(eventually([&] { return upstream_.requests() == 3; }));
        redis_.pause();
    }
    redis_.go_on();
    EXPECT_TRUE(answers(*node));
    EXPECT_TRUE(eventually([&] { return sign_in(*node, "203.0.113.1").status == 200; }));
    upstream_.answer(401);
    EXPECT_EQ(sign_in(*node, "203.0.113.1").status, 401);
    EXPECT_EQ(sign_in(*node, "203.0.113.1").status, 401) << "no place of theirs is left";
}

// Nobody waits until a failure is counted when too many are in line for that; it counts all the
// same, and as many as lead to a block are let through.
TEST_F(RedisServers, FailuresCountThoughNoneCanWaitForIt) {
    waiting_steps_ = 0;
    const auto node = start();
    upstream_.answer(401);
    int let_through = 0;
    for (int i = 0; i < 20; ++i) {
        const HttpReply reply = sign_in(*node, "203.0.113.1");
        let_through += reply.status == 401 ? 1 : 0;
        EXPECT_TRUE(reply.status == 401 || reply.status == 429) << reply.status;
    }
    EXPECT_EQ(let_through, 3);
    upstream_.answer(200);
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(sign_in(*node, "203.0.113.2").status, 200) << "its place was given back";
    }
}

// What was used is forgotten then; a block must not be, for the ledger keeps it.
TEST_F(RedisServers, BlocksThatRedisLostArePutBack) {
    const auto one = start("", no_environment, "one.db");
    const auto two = start("", no_environment, "two.db");
    const auto unkept = start();
    block(*one, "203.0.113.1");
    block(*two, "203.0.113.2");
    block(*unkept, "203.0.113.3");
    const auto all_blocked = [&] {
        return blocked(*one, "203.0.113.2") && blocked(*two, "203.0.113.3") &&
               blocked(*unkept, "203.0.113.1");
    };
    EXPECT_TRUE(all_blocked());
    for (const bool restart : {false, true, false}) {
        if (restart) {
            redis_.kill();
            EXPECT_TRUE(is_down(*one) && is_down(*two) && is_down(*unkept));
            redis_.start();
        } else {
            redis_.command({"FLUSHALL"});
        }
        EXPECT_TRUE(eventually(all_blocked)) << restart;
        EXPECT_FALSE(blocked(*one, "203.0.113.4"));
    }
    for (const Node* node : {one.get(), two.get(), unkept.get()}) {
        EXPECT_TRUE(eventually([&] { return node->log.count("lost what they held") == 3; }));
        EXPECT_EQ(node->log.count("blocks put back: 1"), 3) << node->log.text();
    }
    const HttpReply reply = sign_in(*two, "203.0.113.1");
    EXPECT_GT(std::stoi(reply.field("Retry-After")), 3000);
    EXPECT_LE(std::stoi(reply.field("Retry-After")), 3600);
}

TEST_F(RedisServers, ABlockOfBeforeHoldsWhenRedisComesAfterTheGateway) {
    auto node = start("", no_environment, "one.db");
    block(*node, "203.0.113.1");
    node.reset();
    redis_.kill();
    node = start("", no_environment, "one.db", false);
    EXPECT_FALSE(blocked(*node, "203.0.113.1"));
    redis_.start();
    EXPECT_TRUE(eventually([&] { return blocked(*node, "203.0.113.1"); }));
    EXPECT_EQ(node->log.count("lost what they held"), 0) << "nobody knows that";
}

TEST_F(RedisServers, NothingIsPutBackThatWasLifted) {
    const auto one = start("", no_environment, "one.db");
    block(*one, "203.0.113.1");
    block(*one, "203.0.113.2");
    EXPECT_EQ(testing::ask(one->server->admin_port(), "POST", "/v1/blocks/lift", {},
                           R"({"subject": "203.0.113.1"})")
                  .status,
              200);
    redis_.command({"FLUSHALL"});
    EXPECT_TRUE(eventually([&] { return one->log.count("blocks put back: 1") == 1; }));
    EXPECT_FALSE(blocked(*one, "203.0.113.1"));
    EXPECT_TRUE(blocked(*one, "203.0.113.2"));
}

TEST_F(RedisServers, PipelinedAndParallelRequestsAllGetTheirOwnAnswers) {
    const auto node = start();
    std::vector<std::jthread> callers;
    std::atomic<int> wrong{0};
    for (int caller = 0; caller < 6; ++caller) {
        callers.emplace_back([&] {
            testing::Connection connection(node->port());
            for (int round = 0; round < 20; ++round) {
                connection.send(
                    "GET /free HTTP/1.1\r\nHost: a\r\n\r\nGET /closed HTTP/1.1\r\nHost: a\r\n\r\n"
                    "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n");
                const int first = connection.read().status;
                const int second = connection.read().status;
                const int third = connection.read().status;
                wrong += first == 200 && (second == 200 || second == 429) && third == 404 ? 0 : 1;
            }
        });
    }
    callers.clear();
    EXPECT_EQ(wrong, 0);
}

TEST_F(RedisServers, NumbersThatRedisCannotHoldAreRefusedWhenTheyAreLoaded) {
    const auto node = start();
    std::string other(policy_text);
    other.replace(other.find("token_bucket: 60/day"), 20, "fixed_window: 1 per 1500ns");
    folder_.replace("policy.yaml", other);
    const ReloadResult result = node->server->reload(ReloadCause::admin);
    EXPECT_FALSE(result.ok);
    ASSERT_EQ(result.problems.errors().size(), 1U);
    EXPECT_NE(result.problems.errors()[0].text().find("'open'"), std::string::npos);
    EXPECT_NE(result.problems.errors()[0].text().find("whole microseconds"), std::string::npos);
    EXPECT_EQ(node->get("/open").status, 200);
}

}  // namespace
}  // namespace ration
