#include "server/process/port_check.h"

#include <sys/socket.h>

#include <cerrno>

#include "base/text.h"
#include "net/address.h"
#include "server/config/address_text.h"

namespace ration {

absl::Status check_port_free(const std::string& address, std::uint16_t port) {
    if (port == 0 || net::is_unix_address(address)) {
        return absl::OkStatus();
    }
    const auto endpoints = net::resolve(address, port);
    if (!endpoints.ok()) {
        return endpoints.status();
    }
    const net::Endpoint& endpoint = endpoints->front();
    const net::Fd fd(::socket(endpoint.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    // Lets the port of a process that just ended be taken; one that is listened on stays refused.
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(fd.get(), endpoint.get(), endpoint.length) != 0 && errno == EADDRINUSE) {
        return absl::AlreadyExistsError(cat("cannot listen on ", endpoint_text(address, port),
                                            ": another process listens there"));
    }
    return absl::OkStatus();
}

}  // namespace ration
