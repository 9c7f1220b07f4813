// Time and lifetime: timeouts, bounds on connections, drain, stop, listeners.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "server/http/harness.h"

namespace ration::testing {
namespace {

TEST(Timeouts, AHeadThatDoesNotEnd) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n");
    int sent = 0;
    // A byte now and then does not help.
    ASSERT_TRUE(world.advance_until([&] {
        if (client.readable(0)) {
            return true;
        }
        client.send("X");
        ++sent;
        return false;
    }));
    EXPECT_EQ(client.read()->status(), 408);
    EXPECT_TRUE(client.ended());
    EXPECT_GT(sent, 20);
    const Seen seen = world.recorder.wait_for(1).at(0);
    EXPECT_EQ(seen.outcome, RequestOutcome::malformed);
    EXPECT_EQ(seen.status, 408);
}

TEST(Timeouts, AnIdleConnection) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    client.send(get("/"));
    EXPECT_EQ(client.read()->status(), 200);
    ASSERT_TRUE(world.advance_until([&] { return client.readable(0); }));
    EXPECT_TRUE(client.ended());
    EXPECT_EQ(world.recorder.count(), 1U);
}

TEST(Timeouts, ABodyThatStops) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    for (const std::string start :
         {"POST /slot HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc",
          "POST /slot HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
          "POST /slot HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
        Conn client = world.connect();
        client.send(start);
        ASSERT_TRUE(world.advance_until([&] { return client.readable(0); })) << start;
        EXPECT_EQ(client.read()->status(), 408) << start;
        EXPECT_TRUE(client.ended()) << start;
    }
    EXPECT_EQ(upstream.requests().size(), 0U);
}

TEST(Timeouts, ASlowBodyIsNotAStoppedOne) {
    std::atomic<std::uint64_t> received{0};
    auto upstream = ScriptedUpstream::raw([&](Conn& connection) {
        while (!connection.buffer().ends_with("0123456789") && connection.more()) {
            received = connection.received();
        }
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    GatewayWorld world(upstream->port());
    Conn client = world.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n");
    ASSERT_TRUE(GatewayWorld::eventually([&] { return received > 0; }));
    for (const char byte : std::string("0123456789")) {
        const std::uint64_t before = received;
        world.world.clock.advance(std::chrono::seconds(29));
        client.send({&byte, 1});
        ASSERT_TRUE(GatewayWorld::eventually([&] { return received > before; })) << byte;
    }
    EXPECT_EQ(client.read()->status(), 200);
}

TEST(Timeouts, AClientThatDoesNotRead) {
    auto upstream = ScriptedUpstream::raw([](Conn& connection) {
        connection.read();
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
        const std::string piece(65536, 'x');
        while (connection.send(piece)) {
        }
    });
    GatewayWorld world(upstream->port());
    Conn client = world.connect();
    client.send(get("/slot"));
    ASSERT_TRUE(client.readable(patience_ms));
    EXPECT_TRUE(world.advance_until([&] { return world.recorder.count() == 1; }));
    EXPECT_EQ(world.recorder.wait_for(1).at(0).outcome, RequestOutcome::client_gone);
}

TEST(Bounds, ConnectionsOverTheBoundAreRefused) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorldOptions options;
    options.gateway.max_connections = 3;
    GatewayWorld world(upstream.port(), options);
    std::vector<Conn> clients;
    for (int i = 0; i < 3; ++i) {
        clients.push_back(world.connect());
        clients.back().send(get("/"));
        EXPECT_EQ(clients.back().read()->status(), 200);
    }
    Conn fourth = world.connect();
    EXPECT_EQ(fourth.read()->status(), 503);
    EXPECT_TRUE(fourth.ended());
    EXPECT_EQ(world.gateway->stats().refused_connections, 1U);
    EXPECT_EQ(world.gateway->stats().client_connections, 3U);
    clients.pop_back();
    EXPECT_TRUE(GatewayWorld::eventually([&] { return world.ask(get("/")).status() == 200; }));
}

TEST(Drain, IdleConnectionsCloseAtOnce) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    client.send(get("/"));
    EXPECT_EQ(client.read()->status(), 200);
    EXPECT_TRUE(world.gateway->drain(std::chrono::seconds(20)));
    EXPECT_TRUE(client.ended());
    EXPECT_LT(Conn::to_port(world.gateway->port(0)).fd(), 0);
    EXPECT_EQ(world.gateway->stats().client_connections, 0U);
}

TEST(Drain, WhatRunsIsFinished) {
    std::mutex mutex;
    std::condition_variable changed;
    bool go = false;
    ScriptedUpstream upstream([&](Conn& connection, const Message&) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return go; });
        return connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    client.send(get("/"));
    ASSERT_TRUE(upstream.wait_for_requests(1));
    std::atomic<bool> drained{false};
    std::atomic<bool> clean{false};
    std::thread drainer([&] {
        clean = world.gateway->drain(std::chrono::seconds(20));
        drained = true;
    });
    // Drained or not, new connections are not taken any more.
    EXPECT_TRUE(
        GatewayWorld::eventually([&] { return Conn::to_port(world.gateway->port(0)).fd() < 0; }));
    EXPECT_FALSE(drained);
    {
        const std::lock_guard lock(mutex);
        go = true;
    }
    changed.notify_all();
    const Message answer = *client.read();
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(answer.field("Connection"), "close");
    EXPECT_TRUE(client.ended());
    drainer.join();
    EXPECT_TRUE(clean);
}

TEST(Drain, IsCutWhenPatienceEnds) {
    auto upstream = ScriptedUpstream::raw([](Conn& connection) { connection.read_to_end(); });
    GatewayWorld world(upstream->port());
    Conn client = world.connect();
    client.send(get("/slot"));
    ASSERT_TRUE(GatewayWorld::eventually([&] { return upstream->connections() == 1; }));
    EXPECT_FALSE(world.gateway->drain(std::chrono::milliseconds(50)));
    EXPECT_EQ(client.read_to_end(), "");
    EXPECT_EQ(world.recorder.wait_for(1).at(0).outcome, RequestOutcome::client_gone);
}

TEST(Stop, EndsEverythingAtOnce) {
    auto upstream = ScriptedUpstream::raw([](Conn& connection) { connection.read_to_end(); });
    GatewayWorld world(upstream->port());
    std::vector<Conn> clients;
    for (int i = 0; i < 20; ++i) {
        clients.push_back(world.connect());
        clients.back().send(get("/"));
    }
    ASSERT_TRUE(GatewayWorld::eventually([&] { return upstream->connections() == 20; }));
    world.gateway.reset();
    EXPECT_EQ(world.recorder.count(), 20U);
    for (Conn& client : clients) {
        EXPECT_TRUE(client.ended());
    }
}

TEST(Listeners, OnAUnixSocket) {
    ScriptedUpstream upstream(answer_with("ok"));
    const std::string path =
        (std::filesystem::temp_directory_path() / ("ration_" + std::to_string(::getpid())))
            .string();
    for (int round = 0; round < 2; ++round) {
        GatewayWorldOptions options;
        options.gateway.listeners = {{.address = "unix:" + path}};
        options.gateway.threads = 2;
        GatewayWorld world(upstream.port(), options);
        Conn client = Conn::to_unix(path);
        client.send(get("/"));
        EXPECT_EQ(client.read()->status(), 200);
        EXPECT_EQ(upstream.requests().back().field("Ration-Address"), "unix");
        EXPECT_FALSE(upstream.requests().back().has("X-Forwarded-For"));
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

// Only a socket that a process before left there is taken away.
TEST(Listeners, AFileWhereTheSocketWouldBeStays) {
    const std::string path =
        (std::filesystem::temp_directory_path() / ("ration_file_" + std::to_string(::getpid())))
            .string();
    std::ofstream(path) << "somebody's";
    World world(open_policy, "");
    Recorder recorder;
    GatewayOptions options;
    options.listeners = {{.address = "unix:" + path}};
    options.upstream.port = 1;
    const auto gateway = Gateway::start(options, world.engine(), world.clock, recorder);
    ASSERT_FALSE(gateway.ok());
    EXPECT_NE(gateway.status().message().find(path), std::string::npos) << gateway.status();
    EXPECT_EQ(std::filesystem::file_size(path), 10U);
    std::filesystem::remove(path);
}

TEST(Listeners, APortInUseIsAnError) {
    ScriptedUpstream upstream(answer_with("ok"));
    ScriptedUpstream other(answer_with("ok"));
    World world(open_policy, "");
    Recorder recorder;
    GatewayOptions options;
    options.listeners = {{.port = other.port()}};
    options.upstream.port = upstream.port();
    const auto gateway = Gateway::start(options, world.engine(), world.clock, recorder);
    ASSERT_FALSE(gateway.ok());
    EXPECT_NE(gateway.status().message().find(std::to_string(other.port())), std::string::npos);
}

TEST(Listeners, AnUnknownUpstreamNameIsAnError) {
    World world(open_policy, "");
    Recorder recorder;
    GatewayOptions options;
    options.listeners.emplace_back();
    options.upstream.host = "does-not-exist.invalid";
    options.upstream.port = 80;
    const auto gateway = Gateway::start(options, world.engine(), world.clock, recorder);
    ASSERT_FALSE(gateway.ok());
    EXPECT_NE(gateway.status().message().find("does-not-exist.invalid"), std::string::npos);
}

TEST(Listeners, ManyThreadsShareThePort) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorldOptions options;
    options.gateway.threads = 4;
    GatewayWorld world(upstream.port(), options);
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 50; ++i) {
                good += world.ask(i % 2 == 0 ? get("/") : post("/", "x")).status() == 200 ? 1 : 0;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(good, 200);
    EXPECT_EQ(world.recorder.wait_for(200).size(), 200U);
}

TEST(RequestIds, AreRepeatableWhenAsked) {
    ScriptedUpstream upstream(answer_with("ok"));
    std::string ids[2];
    for (std::string& id : ids) {
        GatewayWorldOptions options;
        options.gateway.request_id_seed = 7;
        GatewayWorld world(upstream.port(), options);
        id = world.ask(get("/")).field("Ration-Request-Id");
        EXPECT_NE(world.ask(get("/")).field("Ration-Request-Id"), id);
    }
    EXPECT_EQ(ids[0], ids[1]);
    EXPECT_EQ(ids[0].find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace ration::testing
