// An upstream that is down, slow, broken or gone, and a pool that keeps its connections.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "server/http/harness.h"

namespace ration::testing {
namespace {

// The in-flight slot of /slot is free again: whatever ended the request settled it.
void expect_settled(GatewayWorld& world) {
    EXPECT_TRUE(GatewayWorld::eventually([&] { return world.ask(get("/slot")).status() != 429; }));
}

TEST(Upstream, Down) {
    std::uint16_t port = 0;
    {
        ScriptedUpstream gone(answer_with(""));
        port = gone.port();
    }
    GatewayWorld world(port);
    Conn client = world.connect();
    for (int i = 0; i < 2; ++i) {
        client.send(get("/slot"));
        const Message answer = *client.read();
        EXPECT_EQ(answer.status(), 502);
        EXPECT_NE(answer.body.find("bad_gateway"), std::string::npos);
        EXPECT_FALSE(answer.has("Connection"));
    }
    const Seen seen = world.recorder.wait_for(1).at(0);
    EXPECT_EQ(seen.outcome, RequestOutcome::refused);
    EXPECT_EQ(seen.upstream_status, 0);
    EXPECT_NE(seen.detail.find("refused"), std::string::npos) << seen.detail;
    EXPECT_EQ(world.gateway->stats().upstream_connections, 0U);
}

TEST(Upstream, Slow) {
    auto upstream = ScriptedUpstream::raw([](Conn& connection) { connection.read_to_end(); });
    GatewayWorld world(upstream->port());
    Conn client = world.connect();
    client.send(get("/slot"));
    ASSERT_TRUE(world.advance_until([&] { return client.readable(0); }));
    const Message answer = *client.read();
    EXPECT_EQ(answer.status(), 504);
    EXPECT_NE(answer.body.find("gateway_timeout"), std::string::npos);
    const Seen seen = world.recorder.wait_for(1).at(0);
    EXPECT_EQ(seen.status, 504);
    EXPECT_GE(seen.total, std::chrono::seconds(60));
    client.send(get("/other"));  // the connection lives on
    ASSERT_TRUE(world.advance_until([&] { return client.readable(0); }));
    EXPECT_EQ(client.read()->status(), 504);
}

struct Broken {
    std::string what;
    std::string bytes;
};

TEST(Upstream, AnswersThatAreNone) {
    const Broken all[] = {
        {"nothing", ""},
        {"half a status line", "HTTP/1.1 20"},
        {"half a head", "HTTP/1.1 200 OK\r\nContent-Le"},
        {"other protocol", "SSH-2.0-x\r\n\r\n"},
        {"bad length", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"},
        {"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"},
        {"length and coding",
         "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        {"unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab"},
        {"folded line", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n"},
        {"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 0\n\n"},
        {"head too long", "HTTP/1.1 200 OK\r\nX: " + std::string(40'000, 'a') + "\r\n\r\n"},
        {"status too small", "HTTP/1.1 099 No\r\nContent-Length: 0\r\n\r\n"},
        {"version 2", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"},
    };
    for (const Broken& broken : all) {
        ScriptedUpstream upstream(answer_raw(broken.bytes, false));
        GatewayWorld world(upstream.port());
        Conn client = world.connect();
        client.send(get("/slot"));
        const std::optional<Message> answer = client.read();
        ASSERT_TRUE(answer) << broken.what;
        EXPECT_EQ(answer->status(), 502) << broken.what;
        EXPECT_EQ(world.recorder.wait_for(1).at(0).outcome, RequestOutcome::admitted)
            << broken.what;
        client.send(get("/slot"));
        EXPECT_EQ(client.read()->status(), 502) << broken.what;
    }
}

TEST(Upstream, InterimAnswersWithoutEnd) {
    std::string many;
    for (int i = 0; i < 33; ++i) {
        many += "HTTP/1.1 102 Processing\r\n\r\n";
    }
    ScriptedUpstream upstream(answer_raw(many + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    client.send(get("/"));
    int interim = 0;
    std::optional<Message> answer = client.read();
    while (answer && answer->status() == 102) {
        ++interim;
        answer = client.read();
    }
    EXPECT_EQ(interim, 32);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status(), 502);
}

// What breaks after its head went out must not look whole to the client.
TEST(Upstream, AnswersThatBreakOff) {
    const Broken all[] = {
        {"short", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"},
        {"no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"},
        {"bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nx\r\n"},
        {"long chunk",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n"},
    };
    for (const Broken& broken : all) {
        ScriptedUpstream upstream(answer_raw(broken.bytes, false));
        GatewayWorld world(upstream.port());
        Conn client = world.connect();
        client.send(get("/slot"));
        const std::optional<Message> answer = client.read();
        EXPECT_FALSE(answer && answer->whole) << broken.what;
        const Seen seen = world.recorder.wait_for(1).at(0);
        EXPECT_EQ(seen.outcome, RequestOutcome::admitted) << broken.what;
        EXPECT_FALSE(seen.detail.empty()) << broken.what;
        Conn next = world.connect();
        next.send(get("/slot"));
        const std::optional<Message> second = next.read();
        EXPECT_FALSE(second && second->status() == 429) << broken.what << ": slot not given back";
    }
}

TEST(Upstream, BrokenForOldClientsIsAReset) {
    ScriptedUpstream upstream(
        answer_raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", false));
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    client.send("GET / HTTP/1.0\r\n\r\n");
    char bytes[4096];
    long count = 0;
    while ((count = ::recv(client.fd(), bytes, sizeof bytes, 0)) > 0) {
    }
    EXPECT_EQ(count, -1);
    EXPECT_EQ(errno, ECONNRESET);
}

// ---- the pool ----

TEST(UpstreamPool, AStaleConnectionIsReplacedForSafeMethods) {
    // The second request on a connection finds it closed just then.
    ScriptedUpstream upstream(
        [count = std::make_shared<std::atomic<int>>(0)](Conn& connection, const Message& request) {
            if (request.target() == "/stale" && count->fetch_add(1) == 0) {
                return false;
            }
            return connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        });
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    client.send(get("/first"));
    EXPECT_EQ(client.read()->status(), 200);
    client.send(get("/stale"));
    EXPECT_EQ(client.read()->status(), 200);
    EXPECT_EQ(upstream.connections(), 2U);
    EXPECT_EQ(upstream.requests().size(), 3U);
    EXPECT_EQ(world.recorder.wait_for(2).size(), 2U);
}

TEST(UpstreamPool, AStaleConnectionIsNotTriedAgainWithAWrite) {
    ScriptedUpstream upstream([](Conn& connection, const Message& request) {
        return request.target() != "/stale" &&
               connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    client.send(get("/first"));
    EXPECT_EQ(client.read()->status(), 200);
    client.send(post("/stale", "body"));
    EXPECT_EQ(client.read()->status(), 502);
    EXPECT_EQ(upstream.requests().size(), 2U);
}

TEST(UpstreamPool, AFreshConnectionIsNotTriedAgain) {
    ScriptedUpstream upstream(answer_raw("", false));
    GatewayWorld world(upstream.port());
    EXPECT_EQ(world.ask(get("/")).status(), 502);
    EXPECT_EQ(upstream.requests().size(), 1U);
}

TEST(UpstreamPool, ConnectionsClosedByTheUpstreamLeave) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(world.ask(post("/", "x")).status(), 200);
        upstream.close_connections();
        ASSERT_TRUE(GatewayWorld::eventually(
            [&] { return world.gateway->stats().upstream_connections == 0; }));
    }
}

// The close has crossed the wire, though its event may still be on its way through the loop.
TEST(UpstreamPool, AWriteDoesNotMeetAConnectionThatIsClosedAlready) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    for (int i = 0; i < 200; ++i) {
        upstream.close_connections();
        client.send(post("/", "x"));
        ASSERT_EQ(client.read()->status(), 200) << i;
    }
}

TEST(UpstreamPool, IdleConnectionsEnd) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    EXPECT_EQ(world.ask(get("/")).status(), 200);
    EXPECT_TRUE(
        world.advance_until([&] { return world.gateway->stats().upstream_connections == 0; }));
}

TEST(UpstreamPool, RequestsWaitInLine) {
    std::mutex mutex;
    std::condition_variable changed;
    bool go = false;
    ScriptedUpstream upstream([&](Conn& connection, const Message&) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return go; });
        return connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    GatewayWorldOptions options;
    options.gateway.upstream.max_connections = 2;
    options.gateway.upstream.max_waiting = 3;
    GatewayWorld world(upstream.port(), options);
    std::vector<Conn> clients;
    for (int i = 0; i < 5; ++i) {
        clients.push_back(world.connect());
        clients.back().send(get("/" + std::to_string(i)));
    }
    ASSERT_TRUE(upstream.wait_for_requests(2));
    // Five are under way (two asked, three in line): one more is one too many.
    ASSERT_TRUE(GatewayWorld::eventually([&] {
        const Message answer = world.ask(get("/sixth"));
        return answer.status() == 503;
    }));
    {
        const std::lock_guard lock(mutex);
        go = true;
    }
    changed.notify_all();
    for (Conn& client : clients) {
        const std::optional<Message> answer = client.read();
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->status(), 200);
    }
    EXPECT_EQ(upstream.connections(), 2U);
}

TEST(UpstreamPool, TheLineIsLeftInTime) {
    auto upstream = ScriptedUpstream::raw([](Conn& connection) { connection.read_to_end(); });
    GatewayWorldOptions options;
    options.gateway.upstream.max_connections = 1;
    options.gateway.upstream.connect_timeout = std::chrono::seconds(6);
    GatewayWorld world(upstream->port(), options);
    Conn first = world.connect();
    first.send(get("/"));
    ASSERT_TRUE(GatewayWorld::eventually([&] { return upstream->connections() == 1; }));
    Conn second = world.connect();
    second.send(get("/"));
    ASSERT_TRUE(world.advance_until([&] { return second.readable(0); }));
    EXPECT_EQ(second.read()->status(), 503);
}

TEST(UpstreamPool, AClientInLineMayLeave) {
    auto upstream = ScriptedUpstream::raw([](Conn& connection) { connection.read_to_end(); });
    GatewayWorldOptions options;
    options.gateway.upstream.max_connections = 1;
    GatewayWorld world(upstream->port(), options);
    Conn first = world.connect();
    first.send(get("/first"));
    ASSERT_TRUE(GatewayWorld::eventually([&] { return upstream->connections() == 1; }));
    {
        Conn second = world.connect();
        second.send(get("/second"));
    }
    first.close();
    const std::vector<Seen> seen = world.recorder.wait_for(2);
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(seen[0].outcome, RequestOutcome::client_gone);
    EXPECT_EQ(seen[1].outcome, RequestOutcome::client_gone);
}

TEST(UpstreamPool, SurplusIsNotKept) {
    ScriptedUpstream upstream(
        answer_raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n"));
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    for (int i = 0; i < 3; ++i) {
        client.send(get("/"));
        EXPECT_EQ(client.read()->body, "ok");
    }
    EXPECT_EQ(upstream.connections(), 3U);
}

// ---- clients that leave ----

TEST(ClientGone, TheUpstreamIsCancelled) {
    std::atomic<bool> cancelled{false};
    auto upstream = ScriptedUpstream::raw([&](Conn& connection) {
        connection.read();
        cancelled = connection.ended();
    });
    GatewayWorld world(upstream->port());
    {
        Conn client = world.connect();
        client.send(get("/slot"));
        ASSERT_TRUE(GatewayWorld::eventually([&] { return upstream->connections() == 1; }));
    }
    const Seen seen = world.recorder.wait_for(1).at(0);
    EXPECT_EQ(seen.outcome, RequestOutcome::client_gone);
    EXPECT_EQ(seen.status, 0);
    EXPECT_TRUE(GatewayWorld::eventually([&] { return cancelled.load(); }));
}

TEST(ClientGone, TheSlotIsFree) {
    std::atomic<int> asked{0};
    ScriptedUpstream upstream([&](Conn& connection, const Message&) {
        if (asked++ == 0) {
            return !connection.ended();  // answers nobody
        }
        return connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    GatewayWorld world(upstream.port());
    {
        Conn client = world.connect();
        client.send(get("/slot"));
        ASSERT_TRUE(upstream.wait_for_requests(1));
        EXPECT_EQ(world.ask(get("/slot")).status(), 429);
    }
    expect_settled(world);
}

TEST(ClientGone, InTheMiddleOfItsBody) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    {
        Conn client = world.connect();
        client.send("POST /slot HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc");
        ASSERT_TRUE(GatewayWorld::eventually([&] { return upstream.connections() == 1; }));
    }
    EXPECT_EQ(world.recorder.wait_for(1).at(0).outcome, RequestOutcome::client_gone);
    expect_settled(world);
}

TEST(ClientGone, WithAResetWhileItsAnswerStreams) {
    auto upstream = ScriptedUpstream::raw([](Conn& connection) {
        connection.read();
        connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        const std::string chunk = "1000\r\n" + std::string(0x1000, 'x') + "\r\n";
        while (connection.send(chunk)) {
        }
    });
    GatewayWorld world(upstream->port());
    Conn client = world.connect();
    client.send(get("/slot"));
    ASSERT_TRUE(client.readable(patience_ms));
    client.reset();
    EXPECT_EQ(world.recorder.wait_for(1).at(0).outcome, RequestOutcome::client_gone);
}

}  // namespace
}  // namespace ration::testing
