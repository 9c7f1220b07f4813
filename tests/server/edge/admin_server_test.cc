#include "server/admin/admin_server.h"

#include <gtest/gtest.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/manual_clock.h"
#include "base/text.h"
#include "engine/harness.h"
#include "server/edge/rules.h"
#include "server/edge/support.h"

namespace ration {
namespace {

using nlohmann::json;
using testing::Connection;
using testing::FieldMap;
using testing::HttpReply;

// A service as a test wants it to look.
class Backend final : public AdminBackend {
public:
    Backend() {
        shown.rules.policy = testing::read_policy(testing::ping_policy);
        shown.rules.directory = testing::read_directory(testing::ping_directory);
        shown.rules.policy_digest = "sha256:00";
        shown.config.policy = "policy.yaml";
        shown.config.directory = "directory.yaml";
    }
    [[nodiscard]] std::string token() const override { return secret; }
    [[nodiscard]] bool counters_answer() override { return counters; }
    [[nodiscard]] ProcessFacts facts() const override {
        ProcessFacts facts;
        facts.draining = draining;
        facts.reload.last_succeeded = reloaded_well;
        return facts;
    }
    [[nodiscard]] InForce in_force() const override { return shown; }
    ReloadResult reload() override {
        ReloadResult result;
        result.ok = reloaded_well;
        if (!result.ok) {
            result.problems.error("policy.yaml", {7, 5}, "unknown key of a limit 'refuze'");
        }
        return result;
    }

    std::string secret;
    bool counters = true;
    bool draining = false;
    bool reloaded_well = true;
    InForce shown;
};

class AdminServerTest : public ::testing::Test {
protected:
    void start(AdminServerOptions options = {}) {
        options.address = "127.0.0.1";
        auto started = AdminServer::start(
            options, clock_, [this](const AdminRequest& request) { return api_.handle(request); });
        ASSERT_TRUE(started.ok()) << started.status();
        server_ = *std::move(started);
    }
    [[nodiscard]] HttpReply ask(std::string_view method, std::string_view target,
                                const FieldMap& fields = {}) const {
        return testing::ask(server_->port(), method, target, fields);
    }

    ManualClock clock_{{Mono(std::chrono::hours(1)), Wall(std::chrono::seconds(1'800'000'000))}};
    Backend backend_;
    AdminApi api_{backend_};
    std::unique_ptr<AdminServer> server_;
};

// What a section is given, and that the token comes before it.
class Echo final : public AdminSection {
public:
    [[nodiscard]] std::optional<AdminResponse> handle(const AdminRequest& request) override {
        if (request.path != "/v1/echo") {
            return std::nullopt;
        }
        return admin_json(200, {{"query", request.query}, {"body", request.body}});
    }
};

TEST_F(AdminServerTest, ASectionGetsQueryAndBodyOfItsPaths) {
    Echo echo;
    api_.add(echo);
    start({.max_body_bytes = 10});
    Connection connection(server_->port());
    connection.send(
        "POST /v1/echo?a=b%20c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        "4\r\nten \r\n");
    connection.send("6\r\nbytes.\r\n0\r\n\r\n");
    const auto reply = connection.read();
    EXPECT_EQ(json::parse(reply.body), json({{"query", "a=b%20c"}, {"body", "ten bytes."}}));
    EXPECT_EQ(json::parse(ask("GET", "/v1/echo").body), json({{"query", ""}, {"body", ""}}));
    EXPECT_EQ(ask("GET", "/v1/echoes").status, 404);
    backend_.secret = "sixteen-bytes-at-least";
    EXPECT_EQ(ask("GET", "/v1/echo").status, 401);
}

TEST_F(AdminServerTest, HealthAndItsHead) {
    start();
    const HttpReply reply = ask("GET", "/healthz?verbose=1");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(json::parse(reply.body)["status"], "alive");
    EXPECT_EQ(reply.field("Content-Type"), "application/json");
    EXPECT_EQ(reply.field("Date"), "Fri, 15 Jan 2027 08:00:00 GMT");
    EXPECT_EQ(reply.field("Cache-Control"), "no-store");
    const HttpReply head = ask("HEAD", "/healthz");
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.field("Content-Length"), reply.field("Content-Length"));
    EXPECT_EQ(head.body, "");
}

TEST_F(AdminServerTest, Readiness) {
    start();
    EXPECT_EQ(ask("GET", "/readyz").status, 200);
    backend_.reloaded_well = false;
    HttpReply reply = ask("GET", "/readyz");
    EXPECT_EQ(reply.status, 200);  // the old rules are good
    EXPECT_EQ(json::parse(reply.body)["last_reload"], "failed");
    backend_.draining = true;
    reply = ask("GET", "/readyz");
    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(json::parse(reply.body)["draining"], true);
    backend_.draining = false;
    backend_.counters = false;
    reply = ask("GET", "/readyz");
    EXPECT_EQ(reply.status, 200);  // every limit is open then
    EXPECT_EQ(json::parse(reply.body)["counters"], "give no answer");
    const auto with = [](std::string_view line) {
        std::string text(testing::ping_policy);
        text.insert(text.find("    token_bucket: 10/hour"), line);
        return testing::read_policy(text);
    };
    backend_.shown.rules.policy = with("    store_down: closed\n");
    EXPECT_EQ(ask("GET", "/readyz").status, 503);
    backend_.shown.rules.policy = with("    store_down: closed\n    shadow: true\n");
    EXPECT_EQ(ask("GET", "/readyz").status, 200);
    EXPECT_EQ(ask("GET", "/healthz").status, 200);
}

TEST_F(AdminServerTest, MetricsHaveTheirContentType) {
    start();
    const HttpReply reply = ask("GET", "/metrics");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.field("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
    EXPECT_NE(reply.body.find("# TYPE ration_decisions_total counter"), std::string::npos);
}

TEST_F(AdminServerTest, ThePolicyInForce) {
    start();
    const HttpReply reply = ask("GET", "/v1/policy");
    ASSERT_EQ(reply.status, 200);
    const json policy = json::parse(reply.body);
    EXPECT_EQ(policy["policy"], "ping");
    EXPECT_EQ(policy["file"], "policy.yaml");
    EXPECT_EQ(policy["digest"], "sha256:00");
    EXPECT_EQ(policy["directory"]["credentials"], 1);
    EXPECT_EQ(policy["routes"][0]["name"], "ping");
    ASSERT_EQ(policy["limits"].size(), 2U);
    EXPECT_EQ(policy["limits"][0]["name"], "pings");
    EXPECT_EQ(policy["limits"][0]["kind"], "token_bucket");
    EXPECT_EQ(policy["limits"][0]["per"], json::array({"address"}));
    EXPECT_EQ(policy["limits"][0]["routes"], json::array({"ping"}));
    EXPECT_NE(policy["limits"][0]["numbers"]["default"].get<std::string>().find("10/h"),
              std::string::npos);
    EXPECT_EQ(policy["limits"][1]["shadow"], true);
    EXPECT_EQ(reply.body.find("s3cret"), std::string::npos);
}

TEST_F(AdminServerTest, ReloadAnswersWithTheProblems) {
    start();
    EXPECT_EQ(ask("POST", "/v1/reload").status, 200);
    backend_.reloaded_well = false;
    const HttpReply reply = ask("POST", "/v1/reload");
    EXPECT_EQ(reply.status, 422);
    const json problem = json::parse(reply.body)["problems"][0];
    EXPECT_EQ(problem["file"], "policy.yaml");
    EXPECT_EQ(problem["line"], 7);
    EXPECT_EQ(problem["column"], 5);
    EXPECT_EQ(problem["reason"], "unknown key of a limit 'refuze'");
}

TEST_F(AdminServerTest, OtherPathsAndMethods) {
    start();
    EXPECT_EQ(ask("GET", "/").status, 404);
    EXPECT_EQ(ask("GET", "/metrics/").status, 404);
    const HttpReply put = ask("PUT", "/metrics");
    EXPECT_EQ(put.status, 405);
    EXPECT_EQ(put.field("Allow"), "GET, HEAD");
    const HttpReply get = ask("GET", "/v1/reload");
    EXPECT_EQ(get.status, 405);
    EXPECT_EQ(get.field("Allow"), "POST");
}

TEST_F(AdminServerTest, WithATokenNothingIsOpen) {
    backend_.secret = "0123456789abcdef";
    start();
    const struct {
        FieldMap fields;
        int status;
    } cases[] = {
        {{}, 401},
        {{{"Authorization", "Bearer 0123456789abcdeF"}}, 401},
        {{{"Authorization", "Bearer 0123456789abcde"}}, 401},
        {{{"Authorization", "Bearer 0123456789abcdef0"}}, 401},
        {{{"Authorization", "Basic 0123456789abcdef"}}, 401},
        {{{"Authorization", "0123456789abcdef"}}, 401},
        {{{"Authorization", "Bearer 0123456789abcdef"}, {"authorization", "Bearer x"}}, 401},
        {{{"Authorization", "Bearer 0123456789abcdef"}}, 200},
        {{{"authorization", "bearer 0123456789abcdef"}}, 200},
    };
    for (const char* path : {"/healthz", "/readyz", "/metrics", "/v1/policy"}) {
        for (const auto& one : cases) {
            EXPECT_EQ(ask("GET", path, one.fields).status, one.status) << path;
        }
    }
    EXPECT_EQ(ask("POST", "/v1/reload").status, 401);
    EXPECT_EQ(ask("GET", "/nowhere").status, 401);
    EXPECT_NE(ask("GET", "/healthz").field("WWW-Authenticate"), "");
}

TEST_F(AdminServerTest, OneConnectionManyRequests) {
    start();
    Connection connection(server_->port());
    connection.send(
        "POST /v1/reload HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde"
        "POST /v1/reload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
        "chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        "HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(connection.read().status, 200);
    EXPECT_EQ(connection.read().status, 200);
    EXPECT_EQ(connection.read(true).status, 200);
    for (const char c :
         std::string("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")) {
        connection.send({&c, 1});
    }
    const HttpReply last = connection.read();
    EXPECT_EQ(last.status, 200);
    EXPECT_EQ(last.field("Connection"), "close");
    EXPECT_TRUE(connection.closes());
}

TEST_F(AdminServerTest, GarbageIsRefusedAndClosed) {
    start();
    std::string zeros(4096, '\0');
    const std::string cases[] = {
        "\x16\x03\x01\x02\r\n\r\n",
        "GET /healthz\r\n\r\n",
        "GET /healthz HTTP/1.1\nHost: a\n\n",
        "GET /healthz HTTP/1.1\r\n\r\n",
        "GET /healthz HTTP/2.0\r\nHost: a\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        zeros + "\r\n\r\n",
    };
    for (const std::string& bytes : cases) {
        Connection connection(server_->port());
        connection.send(bytes);
        EXPECT_EQ(connection.read().status, 400) << bytes;
        EXPECT_TRUE(connection.closes()) << bytes;
    }
    EXPECT_EQ(ask("GET", "/healthz").status, 200);
}

TEST_F(AdminServerTest, SizesAtTheBoundAndPastIt) {
    start({.max_header_bytes = 512, .max_body_bytes = 10});
    const std::string begin = "GET /healthz HTTP/1.1\r\nHost: a\r\nX: ";
    const std::string fits = begin + std::string(512 - begin.size() - 4, 'x') + "\r\n\r\n";
    Connection at_bound(server_->port());
    at_bound.send(fits);
    EXPECT_EQ(at_bound.read().status, 200);
    Connection past(server_->port());
    past.send(begin + std::string(512 - begin.size() - 3, 'x') + "\r\n\r\n");
    EXPECT_EQ(past.read().status, 431);
    EXPECT_TRUE(past.closes());
    Connection endless(server_->port());
    endless.send(begin + std::string(1000, 'x'));
    EXPECT_EQ(endless.read().status, 431);
    Connection long_line(server_->port());
    long_line.send(cat("GET /healthz?", std::string(1000, 'x'), " HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_EQ(long_line.read().status, 414);
    EXPECT_TRUE(long_line.closes());
    const auto post = [&](std::string_view fields, std::string_view body) {
        Connection connection(server_->port());
        connection.send(cat("POST /v1/reload HTTP/1.1\r\nHost: a\r\n", fields, "\r\n\r\n", body));
        return connection.read().status;
    };
    EXPECT_EQ(post("Content-Length: 10", "0123456789"), 200);
    EXPECT_EQ(post("Content-Length: 11", ""), 413);
    EXPECT_EQ(post("Transfer-Encoding: chunked", "a\r\n0123456789\r\n0\r\n\r\n"), 200);
    EXPECT_EQ(post("Transfer-Encoding: chunked", "b\r\n01234567890\r\n0\r\n\r\n"), 413);
}

TEST_F(AdminServerTest, ConnectionsAtTheBoundAndPastIt) {
    start({.max_connections = 3});
    std::vector<std::unique_ptr<Connection>> held;
    for (int i = 0; i < 3; ++i) {
        held.push_back(std::make_unique<Connection>(server_->port()));
        held.back()->send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
        EXPECT_EQ(held.back()->read().status, 200);
    }
    Connection past(server_->port());
    EXPECT_TRUE(past.closes());
    held.pop_back();
    EXPECT_TRUE(testing::eventually([&] { return ask("GET", "/healthz").status == 200; }));
}

TEST_F(AdminServerTest, SlowClientsAreClosed) {
    start({.request_timeout = std::chrono::seconds(10), .idle_timeout = std::chrono::seconds(60)});
    Connection idle(server_->port());
    Connection slow(server_->port());
    Connection started(server_->port());
    slow.send("GET /healthz HT");
    started.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET");
    EXPECT_EQ(started.read().status, 200);
    EXPECT_EQ(ask("GET", "/healthz").status, 200);  // all three are known by now
    clock_.advance(std::chrono::seconds(11));
    EXPECT_TRUE(slow.closes());
    EXPECT_TRUE(started.closes());
    idle.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(idle.read().status, 200);
    clock_.advance(std::chrono::seconds(61));
    EXPECT_TRUE(idle.closes());
}

TEST_F(AdminServerTest, EndsWithConnectionsOpen) {
    start();
    Connection one(server_->port());
    one.send("GET /healthz HT");
    EXPECT_EQ(ask("GET", "/healthz").status, 200);
    server_.reset();
    EXPECT_TRUE(one.closes());
}

}  // namespace
}  // namespace ration
