// Large and slow bodies: what is in the gateway at any time stays bounded, both ways.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <future>
#include <thread>

#include "server/http/harness.h"

namespace ration::testing {
namespace {

constexpr std::size_t large = 16 << 20;

std::string pattern(std::size_t size) {
    std::string text(size, '\0');
    std::uint32_t state = 1;
    for (char& c : text) {
        state = state * 1664525U + 1013904223U;
        c = static_cast<char>(state >> 24);
    }
    return text;
}

void small_buffers(int fd) {
    const int size = 128 * 1024;
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

// More than two connections' buffers can hold in the kernel, at whatever it lets them grow to.
std::size_t beyond_kernel_buffers() {
    std::size_t largest = 0;
    for (const char* name : {"/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem"}) {
        std::ifstream file(name);
        std::size_t least = 0;
        std::size_t usual = 0;
        std::size_t most = 8 << 20;
        file >> least >> usual >> most;
        largest += most;
    }
    return 2 * largest + (16U << 20);
}

// Waits until `sent` has not moved for a tenth of a second, which is not sooner than it stops.
bool stands_still(const std::atomic<std::size_t>& sent) {
    std::size_t last = 0;
    int still = 0;
    return GatewayWorld::eventually([&] {
        const std::size_t now = sent;
        still = now == last && now > 0 ? still + 1 : 0;
        last = now;
        return still > 50;
    });
}

TEST(Streaming, LargeBodiesBothWays) {
    const std::string body = pattern(large);
    ScriptedUpstream upstream([](Conn& connection, const Message& request) {
        if (request.chunked) {
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for (std::size_t at = 0; at < request.body.size(); at += 50'000) {
                const std::string piece = request.body.substr(at, 50'000);
                char size[32];
                std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
                connection.send(size + piece + "\r\n");
            }
            return connection.send("0\r\n\r\n");
        }
        return connection.send("HTTP/1.1 200 OK\r\nContent-Length: " +
                               std::to_string(request.body.size()) + "\r\n\r\n" + request.body);
    });
    GatewayWorld world(upstream.port());
    Conn client = world.connect();
    client.send(post("/", body));
    std::optional<Message> answer = client.read();
    ASSERT_TRUE(answer && answer->whole);
    EXPECT_TRUE(answer->body == body);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (std::size_t at = 0; at < body.size(); at += 100'000) {
        const std::string piece = body.substr(at, 100'000);
        char size[32];
        std::snprintf(size, sizeof size, "%zX;n=v\r\n", piece.size());
        client.send(size + piece + "\r\n");
    }
    client.send("0\r\n\r\n");
    answer = client.read();
    ASSERT_TRUE(answer && answer->whole);
    EXPECT_TRUE(answer->body == body);
    EXPECT_EQ(world.recorder.wait_for(2).at(1).request_bytes, large);
}

// The client does not read: the upstream cannot get rid of more than the buffers hold.
TEST(Streaming, AClientThatDoesNotReadStopsTheUpstream) {
    const std::size_t size = beyond_kernel_buffers();
    std::atomic<std::size_t> sent{0};
    auto upstream = ScriptedUpstream::raw([&](Conn& connection) {
        small_buffers(connection.fd());
        connection.read();
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n");
        const std::string piece(1 << 16, 'x');
        while (sent < size &&
               connection.send(piece.substr(0, std::min(piece.size(), size - sent)))) {
            sent += std::min(piece.size(), size - sent);
        }
        connection.read_to_end();
    });
    GatewayWorld world(upstream->port());
    Conn client = world.connect();
    small_buffers(client.fd());
    client.send(get("/"));
    EXPECT_TRUE(stands_still(sent));
    EXPECT_LT(sent, size);
    const std::optional<Message> answer = client.read();
    ASSERT_TRUE(answer && answer->whole);
    EXPECT_EQ(answer->body.size(), size);
}

TEST(Streaming, AnUpstreamThatDoesNotReadStopsTheClient) {
    const std::size_t size = beyond_kernel_buffers();
    std::promise<void> go;
    auto upstream = ScriptedUpstream::raw([&, told = go.get_future().share()](Conn& connection) {
        small_buffers(connection.fd());
        told.wait();
        const std::optional<Message> request = connection.read();
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" +
                        std::string(request && request->body.size() == size ? "ok" : "no"));
        connection.read_to_end();
    });
    GatewayWorldOptions options;
    options.gateway.max_body_bytes = size;
    GatewayWorld world(upstream->port(), options);
    Conn client = world.connect();
    small_buffers(client.fd());
    std::atomic<std::size_t> sent{0};
    std::thread sender([&] {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(size) +
                    "\r\n\r\n");
        const std::string piece(1 << 16, 'x');
        while (sent < size && client.send(piece.substr(0, std::min(piece.size(), size - sent)))) {
            sent += std::min(piece.size(), size - sent);
        }
    });
    EXPECT_TRUE(stands_still(sent));
    EXPECT_LT(sent, size);
    go.set_value();
    sender.join();
    EXPECT_EQ(client.read()->body, "ok");
}

TEST(Streaming, AnEarlyAnswerEndsTheUpload) {
    auto upstream = ScriptedUpstream::raw([](Conn& connection) {
        connection.more();
        connection.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
        connection.read_to_end();
    });
    GatewayWorld world(upstream->port());
    Conn client = world.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\nabc");
    const Message answer = *client.read();
    EXPECT_EQ(answer.status(), 403);
    EXPECT_EQ(answer.body, "no");
    EXPECT_EQ(answer.field("Connection"), "close");
    // A small rest is read away instead.
    Conn second = world.connect();
    second.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    EXPECT_FALSE(second.read()->has("Connection"));
    second.send("defghij" + get("/"));
    EXPECT_EQ(second.read()->status(), 403);
}

TEST(Streaming, BodiesFlowBothWaysAtOnce) {
    auto upstream = ScriptedUpstream::raw([](Conn& connection) {
        std::string head;
        while (connection.buffer().find("\r\n\r\n") == std::string::npos) {
            connection.more();
        }
        connection.buffer().erase(0, connection.buffer().find("\r\n\r\n") + 4);
        connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; i < 5; ++i) {  // echoes each chunk before the next is sent
            while (connection.buffer().find("!\r\n") == std::string::npos) {
                connection.more();
            }
            connection.buffer().erase(0, connection.buffer().find("!\r\n") + 3);
            connection.send("4\r\necho\r\n");
        }
        connection.send("0\r\n\r\n");
        connection.read_to_end();
    });
    GatewayWorld world(upstream->port());
    Conn client = world.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 5; ++i) {
        client.send("5\r\nping!\r\n");
        const std::string wanted = "4\r\necho\r\n";
        while (client.buffer().find(wanted) == std::string::npos) {
            ASSERT_TRUE(client.more());
        }
        client.buffer().erase(0, client.buffer().find(wanted) + wanted.size());
    }
    client.send("0\r\n\r\n");
    while (client.buffer() != "0\r\n\r\n") {
        ASSERT_TRUE(client.more());
    }
}

}  // namespace
}  // namespace ration::testing
