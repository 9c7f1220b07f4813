// What ration answers by itself, and what becomes of the bytes behind a refused request.
#include <gtest/gtest.h>

#include "server/http/harness.h"

namespace ration::testing {
namespace {

// Spends /limited's one request.
void spend(GatewayWorld& world) {
    ASSERT_EQ(world.ask(get("/limited")).status(), 200);
}

TEST(Refusal, IsAnsweredWithoutTheUpstream) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    spend(world);
    Conn client = world.connect();
    for (int i = 0; i < 3; ++i) {
        client.send(get("/limited"));
        const Message answer = *client.read();
        EXPECT_EQ(answer.start_line, "HTTP/1.1 429 Too Many Requests");
        EXPECT_EQ(answer.field("Retry-After"), "3600");
        EXPECT_EQ(answer.field("Server"), "ration");
        EXPECT_EQ(answer.field("Content-Length"), std::to_string(answer.body.size()));
        EXPECT_EQ(answer.body, R"({"error":{"type":"too_many","message":"Too many requests."}})");
        EXPECT_FALSE(answer.has("Connection"));
        EXPECT_TRUE(answer.has("Date"));
        EXPECT_EQ(answer.field("Ration-Request-Id").size(), 32U);
    }
    client.send("HEAD /limited HTTP/1.1\r\nHost: a\r\n\r\n" + get("/free"));
    const Message head = *client.read(true);
    EXPECT_EQ(head.status(), 429);
    EXPECT_NE(head.field("Content-Length"), "0");
    EXPECT_EQ(client.read()->status(), 200);
    EXPECT_EQ(upstream.requests().size(), 2U);
    const std::vector<Seen> seen = world.recorder.wait_for(6);
    EXPECT_EQ(seen.at(1).outcome, RequestOutcome::refused);
    EXPECT_EQ(seen.at(1).status, 429);
    EXPECT_EQ(seen.at(1).upstream_status, 0);
}

TEST(Refusal, PreflightsAreAnswered) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    const Message answer = world.ask(
        "OPTIONS /limited HTTP/1.1\r\nHost: a\r\nOrigin: https://page.test\r\n"
        "Access-Control-Request-Method: GET\r\n\r\n");
    EXPECT_EQ(answer.status(), 204);
    EXPECT_TRUE(answer.has("Access-Control-Allow-Origin"));
    EXPECT_FALSE(answer.has("Content-Length"));
    EXPECT_EQ(world.recorder.wait_for(1).at(0).outcome, RequestOutcome::preflight);
    EXPECT_EQ(upstream.connections(), 0U);
}

TEST(Refusal, TheBodyOfARefusedRequestIsNotTheNextRequest) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    spend(world);
    Conn client = world.connect();
    const std::string trap = get("/trap");
    client.send(post("/limited", trap) + get("/next"));
    EXPECT_EQ(client.read()->status(), 429);
    EXPECT_EQ(client.read()->status(), 200);
    client.send("POST /limited HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" +
                std::string("5\r\nhello\r\n0\r\n\r\n") + get("/next"));
    EXPECT_EQ(client.read()->status(), 429);
    EXPECT_EQ(client.read()->status(), 200);
    for (const Message& request : upstream.requests()) {
        EXPECT_NE(request.target(), "/trap");
    }
}

TEST(Refusal, ABodyThatComesLaterIsReadAway) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    spend(world);
    Conn client = world.connect();
    const std::string request = post("/limited", std::string(5000, 'x'));
    client.send(std::string_view(request).substr(0, 200));
    EXPECT_EQ(client.read()->status(), 429);  // at once, not when the body is here
    client.send(request.substr(200) + get("/next"));
    EXPECT_EQ(client.read()->status(), 200);
}

TEST(Refusal, ALargeBodyClosesTheConnection) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    spend(world);
    Conn kept = world.connect();
    kept.send(post("/limited", std::string(64 * 1024, 'x')) + get("/next"));
    EXPECT_EQ(kept.read()->status(), 429);
    EXPECT_EQ(kept.read()->status(), 200);
    Conn closed = world.connect();
    closed.send(post("/limited", std::string(64 * 1024 + 1, 'x')) + get("/next"));
    const Message answer = *closed.read();
    EXPECT_EQ(answer.status(), 429);
    EXPECT_EQ(answer.field("Connection"), "close");
    EXPECT_TRUE(closed.ended());
    EXPECT_EQ(upstream.requests().size(), 2U);
}

TEST(Refusal, AHundredPipelinedRequests) {
    ScriptedUpstream upstream([](Conn& connection, const Message& request) {
        return connection.send(
            "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(request.target().size()) +
            "\r\n\r\n" + request.target());
    });
    GatewayWorld world(upstream.port());
    spend(world);
    std::string all;
    for (int i = 0; i < 100; ++i) {
        all += i % 3 == 0 ? post("/limited", get("/trap"))
                          : (i % 3 == 1 ? get("/" + std::to_string(i))
                                        : post("/" + std::to_string(i), "body"));
    }
    Conn client = world.connect();
    client.send(all);
    for (int i = 0; i < 100; ++i) {
        const std::optional<Message> answer = client.read();
        ASSERT_TRUE(answer) << i;
        if (i % 3 == 0) {
            ASSERT_EQ(answer->status(), 429) << i;
        } else {
            ASSERT_EQ(answer->body, "/" + std::to_string(i));
        }
    }
    EXPECT_EQ(world.recorder.wait_for(101).size(), 101U);
}

// ---- Expect ----

TEST(Expectation, ContinueIsSentWhenTheRequestIsAdmitted) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\n");
    EXPECT_EQ(client.read()->status(), 100);
    client.send("hello");
    EXPECT_EQ(client.read()->status(), 200);
    EXPECT_EQ(upstream.requests().at(0).body, "hello");
    EXPECT_FALSE(upstream.requests().at(0).has("Expect"));
    client.send(get("/"));
    EXPECT_EQ(client.read()->status(), 200);
}

TEST(Expectation, AClientThatDoesNotWaitGetsNoContinue) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    EXPECT_EQ(world.ask(post("/", "hello", "Expect: 100-continue\r\n")).status(), 200);
}

TEST(Expectation, ARefusalComesBeforeTheBody) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    spend(world);
    Conn client = world.connect();
    client.send(
        "POST /limited HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    const Message answer = *client.read();
    EXPECT_EQ(answer.status(), 429);
    EXPECT_EQ(answer.field("Connection"), "close");
    EXPECT_TRUE(client.ended());
}

TEST(Expectation, OthersAreRefused) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    EXPECT_EQ(world.ask(post("/", "x", "Expect: 200-ok\r\n")).status(), 417);
    EXPECT_EQ(upstream.connections(), 0U);
}

// ---- upgrades ----

TEST(Upgrade, IsRefusedClearly) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    const Message websocket =
        world.ask(get("/",
                      "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
                      "Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"));
    EXPECT_EQ(websocket.status(), 501);
    EXPECT_NE(websocket.body.find("upgrade_refused"), std::string::npos);
    EXPECT_EQ(world.ask("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n").status(), 501);
    EXPECT_EQ(upstream.connections(), 0U);
}

TEST(Upgrade, ToHttp2IsIgnoredAsItMayBe) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    const Message answer = world.ask(get("/",
                                         "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                                         "HTTP2-Settings: AAMAAABk\r\n"));
    EXPECT_EQ(answer.status(), 200);
    EXPECT_FALSE(upstream.requests().at(0).has("Upgrade"));
}

TEST(Upgrade, AnUpstreamThatSwitchesUnaskedIsBroken) {
    ScriptedUpstream upstream(
        answer_raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"));
    GatewayWorld world(upstream.port());
    EXPECT_EQ(world.ask(get("/")).status(), 502);
}

}  // namespace
}  // namespace ration::testing
