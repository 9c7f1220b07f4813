// The ledger's paths of the admin listener, its metrics, readiness and log, in a whole server.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "ledger/faulty_ledger.h"
#include "server/admin/ledger_admin.h"
#include "server/edge/fixture.h"

namespace ration {
namespace {

using nlohmann::json;
using testing::eventually;
using testing::FieldMap;
using testing::HttpReply;

constexpr std::string_view policy = R"(
policy: shop
routes:
  make: POST /v1/calendars
  drop: DELETE /v1/calendars/{id}
  buy: POST /v1/orders
  ping: GET /v1/ping
identify:
  address: {header: X-Forwarded-For, trusted: [127.0.0.0/8]}
  credentials: {key: {bearer: k_*}}
  accepts: {ping: [any], else: [key]}
ceilings:
  - {name: daily orders, routes: [buy], per: [workspace, address], at_most: 2 per day in UTC}
quotas:
  - {name: active calendars, per: [account], at_most: account.plan.calendars, up: {make: body.id}, down: {drop: path.id}}
  - {name: by address, per: [address], at_most: 5, up: {make: body.id}}
idempotency:
  - {routes: [buy], scope: [workspace], doubt: refuse}
)";

constexpr std::string_view directory = R"(
entities:
  plan: {starter: {calendars: 3}}
  account: {acc_1: {plan: starter}, acc_2: {}}
  workspace: {ws_1: {account: acc_1}}
credentials:
  k_one: {kind: key, workspace: ws_1}
)";

class LedgerAdminTest : public testing::ServerTest {
protected:
    ~LedgerAdminTest() override { server_.reset(); }

    void open(std::string_view more = "") {
        folder_.write("policy.yaml", policy);
        folder_.write("directory.yaml", directory);
        write_settings(more);
        Problems problems;
        const auto config =
            ServeConfig::load(folder_.path("serve.yaml"), testing::no_environment, problems);
        ASSERT_TRUE(config.has_value()) << problems.status();
        auto started = Server::start(*config, {.clock = clock_,
                                               .log = log_,
                                               .environment = testing::no_environment,
                                               .ledger = use_ledger ? &faulty_ : nullptr,
                                               .tick = std::chrono::milliseconds(20)});
        ASSERT_TRUE(started.ok()) << started.status();
        server_ = *std::move(started);
    }
    [[nodiscard]] HttpReply tell(std::string_view method, std::string_view path,
                                 std::string_view body) const {
        return testing::ask(server_->admin_port(), method, path, {}, body);
    }
    [[nodiscard]] json shown(std::string_view path) const {
        return json::parse(admin(path).body, nullptr, false);
    }
    // Puts an attempt of that key (or none) in doubt, as a crash would.
    AttemptId doubt(std::string_view key = "") {
        FieldMap fields{{"Authorization", "Bearer k_one"}, {"X-Forwarded-For", "203.0.113.7"}};
        if (!key.empty()) {
            fields["Idempotency-Key"] = std::string(key);
        }
        faulty_.fail(LedgerOperation::settle, 1);
        const HttpReply reply =
            testing::ask(server_->gateway_port(0), "POST", "/v1/orders", fields);
        EXPECT_EQ(reply.status, 200);
        const auto doubts = ledger_->doubtful(0, 1000);
        return doubts.empty() ? 0 : doubts.back().attempt;
    }
    [[nodiscard]] int status_of(std::string_view method, std::string_view path,
                                std::string_view body) const {
        return tell(method, path, body).status;
    }

    bool use_ledger = true;
    std::unique_ptr<Ledger> ledger_ = *open_sqlite_ledger({":memory:", {}});
    FaultyLedger faulty_{*ledger_};
};

TEST_F(LedgerAdminTest, NumbersOfTheLedger) {
    open();
    (void)doubt("k");
    // The failure is over when the ledger was tried again.
    ASSERT_TRUE(eventually([&] { return shown("/v1/ledger")["status"] == "answers"; }));
    const json numbers = shown("/v1/ledger");
    EXPECT_EQ(numbers["status"], "answers");
    EXPECT_EQ(numbers["in_doubt"], 1);
    EXPECT_EQ(numbers["reservations"]["started"], 1);
    EXPECT_EQ(numbers["failures"], 1);
    EXPECT_EQ(numbers["last_error"], "disk I/O error");
    EXPECT_EQ(numbers["rows"]["attempts"], 1);
    EXPECT_GE(numbers["commits"], 1);
    ASSERT_TRUE(eventually([&] {
        return admin("/metrics").body.find("ration_ledger_in_doubt 1\n") != std::string::npos;
    }));
    const std::string metrics = admin("/metrics").body;
    for (const char* line :
         {"ration_ledger_reservations_total{verdict=\"started\"} 1\n", "ration_ledger_in_doubt 1\n",
          "ration_ledger_failures_total 1\n", "ration_ledger_up 1\n",
          "ration_ledger_batch_size_bucket{le=\"1\"} 1\n", "ration_ledger_queue 0\n"}) {
        EXPECT_NE(metrics.find(line), std::string::npos) << line << metrics;
    }
    EXPECT_EQ(status_of("POST", "/v1/ledger", ""), 405);
    EXPECT_EQ(admin("/v1/ledgers").status, 404);
    EXPECT_EQ(admin("/v1/ledger/other").status, 404);
}

TEST_F(LedgerAdminTest, DoubtsAreListedWithTheirPlacesPageByPage) {
    open();
    const AttemptId first = doubt("k-1");
    const AttemptId second = doubt();
    const json page = shown("/v1/ledger/doubts?limit=1");
    ASSERT_EQ(page["doubts"].size(), 1U) << page;
    const json& told = page["doubts"][0];
    EXPECT_EQ(told["attempt"], first);
    EXPECT_EQ(told["key"], json({{"rule", "idempotency"},
                                 {"of", {{"workspace", "ws_1"}}},
                                 {"credential", "key"},
                                 {"key", "k-1"}}));
    EXPECT_EQ(told["places"],
              json::array({{{"rule", "daily orders"},
                            {"of", {{"workspace", "ws_1"}, {"address", "203.0.113.7"}}}}}));
    EXPECT_EQ(page["next"], first);
    const json rest = shown(cat("/v1/ledger/doubts?limit=1&after=", first));
    EXPECT_EQ(rest["doubts"][0]["attempt"], second);
    EXPECT_EQ(rest["doubts"][0]["key"], nullptr);
    EXPECT_EQ(rest["next"], nullptr);
    for (const char* wrong :
         {"?limit=0", "?limit=1001", "?after=x", "?limit=1&limit=2", "?page=2"}) {
        EXPECT_EQ(admin(cat("/v1/ledger/doubts", wrong)).status, 400) << wrong;
    }
    EXPECT_EQ(admin("/v1/ledger/doubts?limit=1000").status, 200);
}

TEST_F(LedgerAdminTest, ADoubtIsSettledOnceAndSayingItAgainIsGood) {
    open();
    const AttemptId kept = doubt("kept");
    const AttemptId dropped = doubt("dropped");
    const auto settle = [&](AttemptId attempt, std::string_view outcome) {
        return tell("POST", cat("/v1/ledger/doubts/", attempt),
                    cat(R"({"outcome": ")", outcome, "\"}"));
    };
    EXPECT_EQ(json::parse(settle(kept, "written").body),
              json({{"attempt", kept}, {"outcome", "written"}, {"changed", true}}));
    EXPECT_EQ(json::parse(settle(kept, "written").body)["changed"], false);
    EXPECT_EQ(settle(kept, "not_written").status, 409);
    EXPECT_EQ(settle(dropped, "not_written").status, 200);
    EXPECT_EQ(settle(dropped, "not_written").status, 200);
    const HttpReply taken_back = settle(dropped, "written");
    EXPECT_EQ(taken_back.status, 409);
    EXPECT_EQ(json::parse(taken_back.body)["error"]["type"], "settled_otherwise");
    EXPECT_EQ(settle(dropped + 1, "written").status, 404);
    for (const char* name : {"0", "-1", "x", "1x", "99999999999999999999", ""}) {
        EXPECT_EQ(status_of("POST", cat("/v1/ledger/doubts/", name), R"({"outcome":"written"})"),
                  404)
            << name;
    }
    for (const char* body : {"", "{}", "[]", R"({"outcome":"maybe"})", R"({"outcome":1})",
                             R"({"outcome":"written","more":1})", "{\"outcome\":\"writ"}) {
        EXPECT_EQ(status_of("POST", cat("/v1/ledger/doubts/", kept), body), 400) << body;
    }
    EXPECT_EQ(admin(cat("/v1/ledger/doubts/", kept)).status, 405);
    // Written: the key is done and cannot be replayed. Not written: it is free.
    const auto order = [&](std::string_view key) {
        const FieldMap fields{{"Authorization", "Bearer k_one"},
                              {"X-Forwarded-For", "203.0.113.7"},
                              {"Idempotency-Key", std::string(key)}};
        return testing::ask(server_->gateway_port(0), "POST", "/v1/orders", fields).status;
    };
    EXPECT_EQ(order("kept"), 409);
    EXPECT_EQ(order("dropped"), 200);
    EXPECT_EQ(order("third"), 429);
}

TEST_F(LedgerAdminTest, AQuotasObjectsAreStated) {
    open();
    const std::string quota = "/v1/ledger/quotas?quota=active%20calendars&account=acc_1";
    EXPECT_EQ(shown(quota), json({{"of", {{"account", "acc_1"}}},
                                  {"quota", "active calendars"},
                                  {"level", 0},
                                  {"at_most", 3},
                                  {"objects", json::array()},
                                  {"next", nullptr}}));
    const json stated = json::parse(tell("PUT", quota, R"({"objects": ["c", "a", 7, "a"]})").body);
    EXPECT_EQ(stated["objects"], json({"7", "a", "c"}));
    EXPECT_EQ(stated["level"], 3);
    const FieldMap key{{"Authorization", "Bearer k_one"}};
    const auto make = [&] {
        return testing::ask(server_->gateway_port(0), "POST", "/v1/calendars", key).status;
    };
    EXPECT_EQ(make(), 402);
    const json changed =
        json::parse(tell("PATCH", quota, R"({"add": ["d"], "remove": ["a", "c", "x"]})").body);
    EXPECT_EQ(changed["objects"], json({"7", "d"}));
    EXPECT_EQ(make(), 200);
    EXPECT_EQ(shown(quota + "&limit=1")["next"], "7");
    EXPECT_EQ(shown(quota + "&limit=1&after=7")["objects"], json({"d"}));
    EXPECT_EQ(json::parse(tell("PUT", quota, R"({"objects": []})").body)["level"], 0);
    const json nobody = shown("/v1/ledger/quotas?quota=active+calendars&account=acc_2");
    EXPECT_EQ(nobody["at_most"], nullptr);
    const std::string by_address = "/v1/ledger/quotas?quota=by+address&address=";
    EXPECT_EQ(status_of("PUT", by_address + "2001:db8::1", R"({"objects": ["x"]})"), 200);
    EXPECT_EQ(shown(by_address + "2001:db8::2")["level"], 1);
    EXPECT_EQ(shown(by_address + "2001:db8::2")["of"]["address"], "2001:db8::");
}

TEST_F(LedgerAdminTest, MistakesAboutQuotasAreTold) {
    open();
    const std::string path = "/v1/ledger/quotas";
    const std::map<std::string, int> reads = {
        {"", 400},
        {"?quota=calendars&account=acc_1", 404},
        {"?quota=active+calendars", 400},
        {"?quota=active+calendars&account=", 400},
        {"?quota=active+calendars&account=acc_9", 404},
        {"?quota=active+calendars&account=acc_1&workspace=ws_1", 400},
        {"?quota=active+calendars&account=acc_1&account=acc_2", 400},
        {"?quota=by+address&address=here", 400},
    };
    for (const auto& [query, status] : reads) {
        EXPECT_EQ(admin(path + query).status, status) << query;
        EXPECT_EQ(status_of("PUT", path + query, R"({"objects": []})"), status) << query;
    }
    const std::string quota = path + "?quota=active+calendars&account=acc_1";
    const std::string longest(256, 'x');
    EXPECT_EQ(status_of("PUT", quota, R"({"objects": [")" + longest + "\"]}"), 200);
    for (const std::string& body :
         {std::string(), std::string("{}"), std::string("[]"), std::string(R"({"objects": "a"})"),
          std::string(R"({"objects": [""]})"), std::string(R"({"objects": [1.5]})"),
          std::string(R"({"objects": [null]})"), std::string(R"({"objects": [], "more": 1})"),
          std::string(R"({"add": ["a"]})"), R"({"objects": [")" + longest + "y\"]}"}) {
        EXPECT_EQ(status_of("PUT", quota, body), 400) << body;
    }
    const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
    EXPECT_EQ(status_of("PUT", quota, cat(R"({"objects": [)", deep, "]}")), 400);
    EXPECT_EQ(status_of("PATCH", quota, R"({"objects": []})"), 400);
    EXPECT_EQ(status_of("POST", quota, R"({"objects": []})"), 405);
    EXPECT_EQ(shown(quota)["objects"], json({longest}));
}

TEST_F(LedgerAdminTest, AStatementHasABound) {
    open();
    const std::string quota = "/v1/ledger/quotas?quota=active+calendars&account=acc_1";
    json body;
    for (std::size_t i = 0; i < max_stated_objects; ++i) {
        body["objects"].push_back(i);
    }
    EXPECT_EQ(status_of("PUT", quota, body.dump()), 200);
    EXPECT_EQ(shown(quota)["level"], max_stated_objects);
    EXPECT_EQ(shown(quota)["objects"].size(), default_page);
    body["objects"].push_back("one more");
    EXPECT_EQ(status_of("PUT", quota, body.dump()), 400);
    EXPECT_EQ(shown(quota)["level"], max_stated_objects);
}

TEST_F(LedgerAdminTest, AnOutageIsSaidOnceAndItsEndToo) {
    open();
    EXPECT_EQ(shown("/readyz")["ledger"], "answers");
    faulty_.set_reason("database or disk is full");
    faulty_.set_down(true);
    const FieldMap key{{"Authorization", "Bearer k_one"}};
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(testing::ask(server_->gateway_port(0), "POST", "/v1/orders", key).status, 503);
        EXPECT_EQ(ping().status, 200);
    }
    EXPECT_EQ(admin("/readyz").status, 200);
    EXPECT_EQ(shown("/readyz")["ledger"], "gives no answer");
    EXPECT_EQ(shown("/v1/ledger")["rows"], nullptr);
    EXPECT_EQ(status_of("POST", "/v1/ledger/doubts/1", R"({"outcome":"written"})"), 503);
    EXPECT_EQ(admin("/v1/ledger/quotas?quota=active+calendars&account=acc_1").status, 503);
    EXPECT_TRUE(eventually([&] { return log_.count("database or disk is full") == 1; }));
    faulty_.set_down(false);
    // Nobody asks for anything: it is found out all the same.
    EXPECT_TRUE(eventually([&] { return log_.count("the ledger is written again") == 1; }));
    EXPECT_EQ(shown("/readyz")["ledger"], "answers");
    EXPECT_EQ(log_.count("the ledger cannot be written"), 1);
}

TEST_F(LedgerAdminTest, TheTokenHoldsForTheLedgerToo) {
    folder_.write("token", "sixteen-bytes-at-least\n");
    open("");
    server_.reset();
    folder_.replace("serve.yaml", [&] {
        std::string text = folder_.read("serve.yaml");
        const std::string_view plain = "admin: {listen: \"127.0.0.1:0\"}";
        return text.replace(text.find(plain), plain.size(),
                            "admin: {listen: \"127.0.0.1:0\", token_file: token}");
    }());
    Problems problems;
    const auto config =
        ServeConfig::load(folder_.path("serve.yaml"), testing::no_environment, problems);
    ASSERT_TRUE(config.has_value()) << problems.status();
    server_ = *Server::start(
        *config,
        {.clock = clock_, .log = log_, .environment = testing::no_environment, .ledger = &faulty_});
    EXPECT_EQ(admin("/v1/ledger").status, 401);
    const FieldMap token{{"Authorization", "Bearer sixteen-bytes-at-least"}};
    EXPECT_EQ(testing::ask(server_->admin_port(), "GET", "/v1/ledger", token).status, 200);
}

TEST(LedgerAdminWithoutLedger, SaysSo) {
    LedgerAdmin section(LedgerAdminParts{});
    const auto reply = section.handle({.method = "GET", .path = "/v1/ledger/doubts"});
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->status, 404);
    EXPECT_NE(reply->body.find("no_ledger"), std::string::npos);
    EXPECT_FALSE(section.handle({.method = "GET", .path = "/v1/ledge"}).has_value());
}

}  // namespace
}  // namespace ration
