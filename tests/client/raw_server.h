// A server that says exactly what a test wants, byte by byte.
//
//   RawServer server([](RawConnection& peer) {
//       while (peer.read_request()) {
//           peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
//       }
//   });
//   client.call({.url = server.url("/thing")});
//
// Each connection has a thread of its own; the server's end cuts what is open and joins them.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "ration/client.h"
#include "raw_tls.h"

namespace ration::client {

struct RawRequest {
    std::string method, target, body;
    HeaderLines headers;
    bool complete = false;  // with its body

    [[nodiscard]] std::string header(std::string_view name) const {
        const std::string* value = find_header(headers, name);
        return value ? *value : "";
    }
};

class RawServer;

class RawConnection {
public:
    RawConnection(RawServer& server, int fd, int which, void* tls)
        : number(which), server_(server), fd_(fd), tls_(tls) {}

    // False when the peer is gone. The request is then in `request` and in the server's list.
    bool read_request();
    bool read_bytes(std::size_t count, std::string& into);
    // False when the peer is gone.
    bool send(std::string_view bytes);
    void answer(int status, std::string_view fields, std::string_view body);
    void reset();  // ends it with RST
    // Until the server ends or the peer is gone.
    void wait_for_end();

    // Whether bodies that wait for a word ("Expect") are asked for; else they are not read.
    bool asks_for_bodies = true;
    RawRequest request;
    const int number;  // of the connection, from 1

private:
    bool fill();

    RawServer& server_;
    int fd_;
    void* tls_;
    std::string buffer_;
};

class RawServer {
public:
    using Serve = std::function<void(RawConnection&)>;

    // With `tls` over TLS; it must outlive the server.
    explicit RawServer(Serve serve, const RawTls* tls = nullptr);
    ~RawServer();

    [[nodiscard]] std::string url(std::string_view path, std::string_view host = "127.0.0.1") const;
    [[nodiscard]] int port() const { return port_; }
    // Nobody can connect any more; those who are stay.
    void stop_listening();
    // Connections from that number on are closed at once, over TLS before the handshake.
    void break_from(int number) { broken_from_ = number; }
    [[nodiscard]] std::vector<RawRequest> requests() const;
    [[nodiscard]] int connections() const { return connections_; }
    [[nodiscard]] bool ending() const { return ending_; }

private:
    friend class RawConnection;
    void accept_all();
    void note(const RawRequest& request);

    Serve serve_;
    const RawTls* tls_;
    int listener_ = -1;
    int port_ = 0;
    std::atomic<bool> ending_ = false;
    std::atomic<bool> listening_ = true;
    std::atomic<int> broken_from_ = std::numeric_limits<int>::max();
    std::atomic<int> connections_ = 0;
    mutable std::mutex mutex_;
    std::vector<RawRequest> requests_;
    std::list<std::pair<int, std::thread>> open_;
    std::thread acceptor_;
};

}  // namespace ration::client
