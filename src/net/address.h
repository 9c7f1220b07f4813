// Socket addresses: written form to system form and back, listening and connecting.
//
// Errors say which address and what the system answered. Thread rule: pure functions, any thread;
// `resolve` waits for the name service.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "net/fd.h"

namespace ration::net {

struct Endpoint {
    sockaddr_storage storage{};
    socklen_t length = 0;

    [[nodiscard]] int family() const { return storage.ss_family; }
    [[nodiscard]] const sockaddr* get() const {
        return reinterpret_cast<const sockaddr*>(&storage);
    }
    [[nodiscard]] std::uint16_t port() const;  // 0 for a Unix socket
    // "203.0.113.7", "2001:db8::1"; empty for a Unix socket. No port.
    [[nodiscard]] std::string host() const;
};

// True for "unix:/path".
[[nodiscard]] bool is_unix_address(std::string_view host);
// True when `host` is an IP address or a Unix path: nothing that a name service would change.
[[nodiscard]] bool is_literal(std::string_view host);

// Every address of `host` ("127.0.0.1", "[::1]", "localhost", "unix:/path").
[[nodiscard]] absl::StatusOr<std::vector<Endpoint>> resolve(const std::string& host,
                                                            std::uint16_t port);

struct Listener {
    Fd fd;
    std::uint16_t port = 0;
    std::string unix_path;  // to remove afterwards
};

// A non-blocking listening socket; TCP ones share their port among threads (SO_REUSEPORT). A Unix
// path left behind by a dead process is taken over; one that somebody listens on is an error.
[[nodiscard]] absl::StatusOr<Listener> listen_on(const std::string& address, std::uint16_t port);

// Starts to connect; completion shows as writability, its result in `connect_error`.
[[nodiscard]] absl::StatusOr<Fd> start_connect(const Endpoint& to);
[[nodiscard]] int connect_error(int fd);  // errno, 0 when connected

void set_no_delay(int fd);

}  // namespace ration::net
