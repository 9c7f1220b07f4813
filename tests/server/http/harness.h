// A gateway in this process, between raw sockets on both sides.
//
//   ScriptedUpstream upstream(answer_with("hello"));
//   GatewayWorld world(upstream.port());
//   Conn client = world.connect();
//   client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
//   EXPECT_EQ(client.read()->status(), 200);
//
// The gateway's clock moves only when told. Nothing sleeps: tests wait for bytes, for a report of
// the gateway, or push the clock until something happens.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/harness.h"
#include "server/gateway.h"
#include "server/http/socket.h"

namespace ration::testing {

// An upstream that does what the test says: `script` is called with each whole request, or
// `per_connection` with each new connection.
class ScriptedUpstream {
public:
    // Sends the answer; false ends the connection.
    using Script = std::function<bool(Conn& connection, const Message& request)>;
    using Raw = std::function<void(Conn& connection)>;

    explicit ScriptedUpstream(Script script);
    static std::unique_ptr<ScriptedUpstream> raw(Raw per_connection);
    ~ScriptedUpstream();

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::vector<Message> requests();
    [[nodiscard]] std::size_t connections();
    // Stops listening: new connections are refused.
    void stop_listening();
    // Ends every open connection from this side, and waits until each is seen off.
    void close_connections();
    // Waits until that many requests have come.
    bool wait_for_requests(std::size_t count);
    // Runs `wrap` on each accepted socket (TLS).
    std::function<std::unique_ptr<Transport>(int fd)> wrap;

private:
    ScriptedUpstream();
    void listen();
    void accept_all();
    void serve(int fd);

    Script script_;
    Raw raw_;
    int listener_ = -1;
    std::uint16_t port_ = 0;
    std::thread acceptor_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Message> requests_;
    std::vector<int> open_;
    std::vector<std::thread> threads_;
    std::size_t connections_ = 0;
    bool stopping_ = false;
};

// 200 with that body and a length.
[[nodiscard]] ScriptedUpstream::Script answer_with(std::string body);
// Sends exactly these bytes to every request.
[[nodiscard]] ScriptedUpstream::Script answer_raw(std::string bytes, bool keep = true);

// What the gateway reported about a request, copied.
struct Seen {
    RequestOutcome outcome = RequestOutcome::admitted;
    bool has_exchange = false;
    std::string id, method, target, detail;
    int status = 0;
    int upstream_status = 0;
    std::uint64_t request_bytes = 0;
    std::uint64_t response_bytes = 0;
    Nanos total{0};
    Nanos upstream{0};
    bool tls = false;
};

class Recorder final : public RequestObserver {
public:
    void on_request(const RequestRecord& record) override;
    // The first `count` reports, in order; fewer when they do not come.
    std::vector<Seen> wait_for(std::size_t count);
    [[nodiscard]] std::size_t count();

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Seen> seen_;
};

// Everything passes; /limited once an hour, /slot one at a time, per address.
extern const std::string_view open_policy;

struct GatewayWorldOptions {
    std::string policy{open_policy};
    GatewayOptions gateway = {};  // listeners empty: one plain TCP listener
};

class GatewayWorld {
public:
    explicit GatewayWorld(std::uint16_t upstream_port, GatewayWorldOptions options = {});

    World world;
    Recorder recorder;
    std::unique_ptr<Gateway> gateway;

    [[nodiscard]] Conn connect() const { return Conn::to_port(gateway->port(0)); }
    // Sends one request on a connection of its own and reads the answer.
    Message ask(std::string_view request);
    // Moves the clock on, step by step, until `done` holds; false when it never does.
    bool advance_until(const std::function<bool()>& done,
                       Nanos step = std::chrono::milliseconds(500));
    // Waits, without moving the clock, until `done` holds.
    static bool eventually(const std::function<bool()>& done);
};

// "GET path HTTP/1.1" with a Host and what else is given (lines with their line ends).
[[nodiscard]] std::string get(std::string_view path, std::string_view more_fields = "");
[[nodiscard]] std::string post(std::string_view path, std::string_view body,
                               std::string_view more_fields = "");

}  // namespace ration::testing
