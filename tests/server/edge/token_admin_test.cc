// Issued tokens in a whole server whose ledger fails when told to.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ledger/faulty_ledger.h"
#include "server/edge/fixture.h"

namespace ration {
namespace {

using nlohmann::json;
using testing::eventually;
using testing::HttpReply;

constexpr std::string_view policy = R"(
policy: tokens
unmatched: forward
identify:
  credentials: {personal_token: {bearer: axp_*}}
  accepts: {else: [personal_token]}
  issue: {personal_token: {owner: user, numbers: {rate_limit_per_min: {from: 1, to: 1000, default: 60}}}}
limits:
  - {name: tokens, per: [credential], headers: x_ratelimit,
     fixed_window: {limit: credential.rate_limit_per_min, every: minute, count: attempts}}
)";

class TokenAdminTest : public testing::ServerTest {
protected:
    ~TokenAdminTest() override { server_.reset(); }

    void open(Ledger* ledger) {
        folder_.write("policy.yaml", policy);
        folder_.write("directory.yaml", "credentials: {}\n");
        write_settings("");
        Problems problems;
        const auto config =
            ServeConfig::load(folder_.path("serve.yaml"), testing::no_environment, problems);
        ASSERT_TRUE(config.has_value()) << problems.status();
        auto started = Server::start(*config, {.clock = clock_,
                                               .log = log_,
                                               .environment = testing::no_environment,
                                               .ledger = ledger,
                                               .tick = std::chrono::milliseconds(20)});
        ASSERT_TRUE(started.ok()) << started.status();
        server_ = *std::move(started);
    }
    [[nodiscard]] HttpReply tell(std::string_view method, std::string_view path,
                                 std::string_view body = "") const {
        return testing::ask(server_->admin_port(), method, path, {}, body);
    }
    [[nodiscard]] HttpReply call(const std::string& secret) const {
        return testing::ask(server_->gateway_port(0), "GET", "/x",
                            {{"Authorization", "Bearer " + secret}});
    }
    [[nodiscard]] json made() const {
        const HttpReply reply = tell("POST", "/v1/tokens", R"({"user": "u_1"})");
        EXPECT_EQ(reply.status, 201) << reply.body;
        return json::parse(reply.body);
    }

    std::unique_ptr<Ledger> ledger_ =
        open_sqlite_ledger({.path = ":memory:", .sync_point = {}}).value();
    FaultyLedger faulty_{*ledger_};
};

TEST_F(TokenAdminTest, WhatCouldNotBeWrittenDownHasNotHappened) {
    open(&faulty_);
    const json token = made();
    const std::string id = token["id"];
    EXPECT_EQ(call(token["secret"]).status, 200);

    faulty_.set_down(true);
    const HttpReply refused = tell("POST", "/v1/tokens", R"({"user": "u_1"})");
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(json::parse(refused.body)["error"]["type"], "ledger_unavailable");
    EXPECT_EQ(refused.body.find("axp_"), std::string::npos);
    EXPECT_EQ(tell("DELETE", "/v1/tokens/" + id).status, 503);
    EXPECT_EQ(call(token["secret"]).status, 200) << "it is not revoked";
    EXPECT_EQ(json::parse(tell("GET", "/v1/tokens").body)["tokens"].size(), 1U);

    faulty_.set_down(false);
    ASSERT_TRUE(eventually([&] { return tell("DELETE", "/v1/tokens/" + id).status == 200; }));
    EXPECT_EQ(call(token["secret"]).status, 401);
    EXPECT_TRUE(ledger_->tokens()->empty());
}

TEST_F(TokenAdminTest, LastUsesAreWrittenDown) {
    open(&faulty_);
    const json token = made();
    EXPECT_EQ(call(token["secret"]).status, 200);
    EXPECT_TRUE(eventually([&] {
        const auto kept = ledger_->tokens();
        return kept.ok() && kept->size() == 1 && kept->front().last_used > kept->front().created;
    }));
}

TEST_F(TokenAdminTest, WithoutALedgerNothingIsIssued) {
    open(nullptr);
    EXPECT_EQ(tell("GET", "/v1/tokens").status, 404);
    const HttpReply reply = tell("POST", "/v1/tokens", R"({"user": "u_1"})");
    EXPECT_EQ(reply.status, 404);
    EXPECT_EQ(json::parse(reply.body)["error"]["type"], "no_ledger");
    EXPECT_EQ(tell("GET", "/v1/blocks").status, 200);
}

TEST_F(TokenAdminTest, MethodsAndPaths) {
    open(&faulty_);
    const std::string id = made()["id"];
    EXPECT_EQ(tell("PUT", "/v1/tokens").status, 405);
    EXPECT_EQ(tell("OPTIONS", "/v1/tokens/" + id).status, 405);
    EXPECT_EQ(tell("GET", "/v1/tokens/tok_none").status, 404);
    EXPECT_EQ(tell("GET", "/v1/tokensx").status, 404);
    EXPECT_EQ(tell("GET", "/v1/tokens?colour=red").status, 400);
    EXPECT_EQ(tell("GET", "/v1/tokens?limit=1000").status, 200);
    EXPECT_EQ(tell("GET", "/v1/tokens?limit=1001").status, 400);
}

}  // namespace
}  // namespace ration
