// What reaches the upstream and what comes back: heads, bodies, connections.
#include <gtest/gtest.h>

#include <array>

#include "server/http/harness.h"

namespace ration::testing {
namespace {

TEST(Forwarding, ARequestAndItsAnswer) {
    ScriptedUpstream upstream(answer_with("hello"));
    GatewayWorld world(upstream.port());
    const Message answer = world.ask(get("/a/../b?x=1", "X-Custom: yes\r\n"));
    EXPECT_EQ(answer.start_line, "HTTP/1.1 200 OK");
    EXPECT_EQ(answer.body, "hello");
    EXPECT_EQ(answer.field("Content-Length"), "5");
    EXPECT_EQ(answer.field("Ration-Request-Id").size(), 32U);
    EXPECT_TRUE(answer.has("Date"));
    const Message request = upstream.requests().at(0);
    EXPECT_EQ(request.start_line, "GET /b?x=1 HTTP/1.1");
    EXPECT_EQ(request.field("Host"), "api.test");
    EXPECT_EQ(request.field("X-Custom"), "yes");
    EXPECT_EQ(request.field("X-Forwarded-For"), "127.0.0.1");
    EXPECT_EQ(request.field("X-Forwarded-Proto"), "http");
    EXPECT_EQ(request.field("Ration-Request-Id"), answer.field("Ration-Request-Id"));
    EXPECT_EQ(request.field("Ration-Address"), "127.0.0.1");
    const Seen seen = world.recorder.wait_for(1).at(0);
    EXPECT_EQ(seen.outcome, RequestOutcome::admitted);
    EXPECT_EQ(seen.status, 200);
    EXPECT_EQ(seen.upstream_status, 200);
    EXPECT_EQ(seen.response_bytes, 5U);
    EXPECT_EQ(seen.target, "/a/../b?x=1");
    EXPECT_EQ(seen.id, answer.field("Ration-Request-Id"));
}

TEST(Forwarding, ConnectionsAreKeptOnBothSides) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(client.send(get("/")));
        ASSERT_EQ(client.read()->status(), 200);
    }
    EXPECT_EQ(upstream.connections(), 1U);
    EXPECT_EQ(world.gateway->stats().accepted, 1U);
    EXPECT_TRUE(
        GatewayWorld::eventually([&] { return world.gateway->stats().upstream_idle == 1; }));
}

TEST(Forwarding, HopByHopFieldsStay) {
    ScriptedUpstream upstream(answer_raw(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\n"
        "Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nX-Stays: 1\r\n"
        "Ration-Request-Id: forged\r\nAccess-Control-Allow-Origin: http://other\r\n\r\nok"));
    GatewayWorld world(upstream.port());
    const Message answer = world.ask(
        get("/",
            "Connection: X-Private, Authorization, X-Forwarded-For, keep-alive\r\n"
            "X-Private: 1\r\nAuthorization: Bearer t\r\nKeep-Alive: 5\r\nTE: gzip\r\n"
            "Proxy-Authorization: secret\r\nRation-Address: 1.2.3.4\r\nRation_Workspace: w\r\n"
            "Upgrade: h2c\r\nHTTP2-Settings: x\r\nProxy-Connection: keep-alive\r\n"
            "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: gopher\r\n"));
    const Message request = upstream.requests().at(0);
    for (const std::string_view gone :
         {"Connection", "Keep-Alive", "TE", "Proxy-Authorization", "Ration_Workspace", "Upgrade",
          "HTTP2-Settings", "Proxy-Connection"}) {
        EXPECT_FALSE(request.has(gone)) << gone;
    }
    EXPECT_FALSE(answer.has("X-Hop"));
    EXPECT_FALSE(answer.has("Keep-Alive"));
    EXPECT_FALSE(answer.has("Connection"));
    EXPECT_EQ(answer.field("X-Stays"), "1");
    EXPECT_EQ(answer.field("Ration-Request-Id").size(), 32U);
    // What decides who is asking cannot be taken away by naming it.
    EXPECT_EQ(request.field("Authorization"), "Bearer t");
    EXPECT_EQ(request.field("X-Forwarded-For"), "203.0.113.9, 127.0.0.1");
    EXPECT_EQ(request.field("X-Forwarded-Proto"), "http");
    EXPECT_EQ(request.field("Ration-Address"), "127.0.0.1");
}

TEST(Forwarding, NamedPrivateFieldsGo) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    world.ask(get("/", "Connection: Custom-Hop\r\nCustom-Hop: 1\r\nCustom: 2\r\n"));
    EXPECT_FALSE(upstream.requests().at(0).has("Custom-Hop"));
    EXPECT_EQ(upstream.requests().at(0).field("Custom"), "2");
}

TEST(Forwarding, AbsoluteTargetsNameTheHost) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    const Message answer =
        world.ask("GET http://other.test:81/p?q HTTP/1.1\r\nHost: api.test\r\n\r\n");
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(upstream.requests().at(0).start_line, "GET /p?q HTTP/1.1");
    EXPECT_EQ(upstream.requests().at(0).field("Host"), "other.test:81");
}

TEST(Forwarding, TheHostCanBeReplaced) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorldOptions options;
    options.gateway.upstream.host_header = "inner.test";
    GatewayWorld world(upstream.port(), options);
    world.ask(get("/"));
    EXPECT_EQ(upstream.requests().at(0).field("Host"), "inner.test");
}

TEST(Forwarding, OldClients) {
    ScriptedUpstream upstream(answer_raw(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"));
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    client.send("GET / HTTP/1.0\r\n\r\n");
    const Message answer = *client.read();
    EXPECT_FALSE(answer.has("Transfer-Encoding"));
    EXPECT_EQ(answer.field("Connection"), "close");
    EXPECT_EQ(answer.body, "abcde");
    EXPECT_EQ(upstream.requests().at(0).field("Host"),
              "127.0.0.1:" + std::to_string(upstream.port()));
}

TEST(Forwarding, OldClientsThatStay) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    for (int i = 0; i < 3; ++i) {
        client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        const Message answer = *client.read();
        EXPECT_EQ(answer.field("Connection"), "keep-alive");
        EXPECT_EQ(answer.body, "ok");
    }
}

TEST(Forwarding, CloseIsHonouredBothWays) {
    ScriptedUpstream upstream(
        answer_raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", false));
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    client.send(get("/"));
    EXPECT_FALSE(client.read()->has("Connection"));  // the upstream's wish is not the client's
    client.send(get("/", "Connection: close\r\n"));
    EXPECT_EQ(client.read()->field("Connection"), "close");
    EXPECT_TRUE(client.ended());
    EXPECT_EQ(upstream.connections(), 2U);
}

TEST(Forwarding, BodilessAnswersKeepTheirLength) {
    ScriptedUpstream upstream([](Conn& connection, const Message& request) {
        if (request.target() == "/204") {
            return connection.send("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n");
        }
        if (request.target() == "/304") {
            return connection.send("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
        }
        return connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    });
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(client.read(true)->field("Content-Length"), "5");
    client.send(get("/204"));
    EXPECT_FALSE(client.read()->has("Content-Length"));
    client.send(get("/304"));
    EXPECT_EQ(client.read()->field("Content-Length"), "5");
    client.send(get("/204"));
    EXPECT_EQ(client.read()->status(), 204);
    EXPECT_EQ(upstream.connections(), 1U);
}

TEST(Forwarding, AnswersEndedByTheConnection) {
    ScriptedUpstream upstream(answer_raw("HTTP/1.1 200 OK\r\n\r\nuntil the end", false));
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    for (int i = 0; i < 2; ++i) {
        client.send(get("/"));
        const Message answer = *client.read();
        EXPECT_TRUE(answer.chunked);
        EXPECT_EQ(answer.body, "until the end");
    }
}

TEST(Forwarding, InterimAnswersPass) {
    ScriptedUpstream upstream(
        answer_raw("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    client.send(get("/"));
    const Message hints = *client.read();
    EXPECT_EQ(hints.status(), 103);
    EXPECT_EQ(hints.field("Link"), "</a>");
    EXPECT_EQ(client.read()->status(), 200);
    client.send("GET / HTTP/1.0\r\n\r\n");
    EXPECT_EQ(client.read()->status(), 200);
}

TEST(Forwarding, TrailersBothWays) {
    ScriptedUpstream upstream(
        answer_raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
                   "2\r\nok\r\n0\r\nSum: 7\r\nContent-Length: 5\r\nSet-Cookie: a=b\r\n"
                   "Retry-After: 9\r\nIdempotent-Replayed: true\r\nVary: *\r\n\r\n"));
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\n"
        "Connection: TE\r\n\r\n3;ext=\"1\"\r\nabc\r\n0\r\nCheck: 9\r\nAuthorization: x\r\n"
        "Ration_Workspace: 9\r\nX_Api_Key: 9\r\ncontent_length: 9\r\n\r\n");
    const Message answer = *client.read();
    EXPECT_EQ(answer.body, "ok");
    ASSERT_EQ(answer.trailers.size(), 1U);
    EXPECT_EQ(answer.trailers[0].first, "Sum");
    const Message request = upstream.requests().at(0);
    EXPECT_EQ(request.body, "abc");
    ASSERT_EQ(request.trailers.size(), 1U);
    EXPECT_EQ(request.trailers[0].first, "Check");
    EXPECT_EQ(request.field("TE"), "trailers");
    EXPECT_EQ(request.field("Connection"), "TE");
}

TEST(Forwarding, UnusualMethodsPass) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    for (const std::string method : {"TRACE", "PURGE", "OPTIONS", "M-SEARCH"}) {
        EXPECT_EQ(world.ask(method + " / HTTP/1.1\r\nHost: a\r\n\r\n").status(), 200) << method;
    }
    EXPECT_EQ(world.ask("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").status(), 200);
    EXPECT_EQ(upstream.requests().at(0).method(), "TRACE");
    EXPECT_EQ(upstream.requests().at(4).start_line, "OPTIONS * HTTP/1.1");
}

TEST(Forwarding, EmptyLinesBeforeARequest) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    EXPECT_EQ(world.ask("\r\n\r\n" + get("/")).status(), 200);
    EXPECT_EQ(world.ask("\r\n\r\n\r\n\r\n\r\n" + get("/")).status(), 400);  // one past the bound
}

}  // namespace
}  // namespace ration::testing
