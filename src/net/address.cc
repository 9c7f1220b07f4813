#include "net/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/errno_status.h"

namespace ration::net {

namespace {

constexpr std::string_view unix_prefix = "unix:";
constexpr int backlog = 4096;

std::string without_brackets(const std::string& host) {
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
        return host.substr(1, host.size() - 2);
    }
    return host;
}

absl::StatusOr<Endpoint> unix_endpoint(std::string_view path) {
    Endpoint endpoint;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address.sun_path) {
        return absl::InvalidArgumentError(absl::StrCat("unix socket path \"", std::string(path),
                                                       "\" must have 1 to ",
                                                       sizeof address.sun_path - 1, " bytes"));
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    std::memcpy(&endpoint.storage, &address, sizeof address);
    endpoint.length = sizeof address;
    return endpoint;
}

// Removes a socket file nobody listens on; a file of another kind is somebody's, and stays.
void remove_stale(const Endpoint& endpoint, const std::string& path) {
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) {
        return;
    }
    const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (probe.valid() && ::connect(probe.get(), endpoint.get(), endpoint.length) != 0 &&
        errno == ECONNREFUSED) {
        ::unlink(path.c_str());
    }
}

absl::Status bind_and_listen(int fd, const Endpoint& endpoint, const std::string& shown) {
    const int on = 1;
    if (endpoint.family() != AF_UNIX) {
        ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    }
    if (endpoint.family() == AF_INET6) {
        ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    }
    if (::bind(fd, endpoint.get(), endpoint.length) != 0 || ::listen(fd, backlog) != 0) {
        return errno_status(errno, absl::StrCat("cannot listen on ", shown));
    }
    return absl::OkStatus();
}

}  // namespace

std::uint16_t Endpoint::port() const {
    if (family() == AF_INET) {
        return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
    }
    if (family() == AF_INET6) {
        return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
    }
    return 0;
}

std::string Endpoint::host() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* bytes = nullptr;
    if (family() == AF_INET) {
        bytes = &reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr;
    } else if (family() == AF_INET6) {
        bytes = &reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
    } else {
        return {};
    }
    return ::inet_ntop(family(), bytes, text.data(), text.size()) != nullptr ? text.data() : "";
}

bool is_unix_address(std::string_view host) {
    return host.substr(0, 5) == unix_prefix;
}

bool is_literal(std::string_view host) {
    const std::string bare = without_brackets(std::string(host));
    std::array<unsigned char, 16> ignored{};
    return is_unix_address(host) || ::inet_pton(AF_INET, bare.c_str(), ignored.data()) == 1 ||
           ::inet_pton(AF_INET6, bare.c_str(), ignored.data()) == 1;
}

absl::StatusOr<std::vector<Endpoint>> resolve(const std::string& host, std::uint16_t port) {
    if (is_unix_address(host)) {
        absl::StatusOr<Endpoint> endpoint =
            unix_endpoint(std::string_view(host).substr(unix_prefix.size()));
        if (!endpoint.ok()) {
            return endpoint.status();
        }
        return std::vector<Endpoint>{*endpoint};
    }
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const std::string service = absl::StrCat(port);
    const int code = ::getaddrinfo(without_brackets(host).c_str(), service.c_str(), &hints, &found);
    if (code != 0) {
        return absl::UnavailableError(
            absl::StrCat("cannot resolve \"", host, "\": ", gai_strerror(code)));
    }
    std::vector<Endpoint> endpoints;
    for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
        Endpoint endpoint;
        std::memcpy(&endpoint.storage, at->ai_addr, at->ai_addrlen);
        endpoint.length = at->ai_addrlen;
        endpoints.push_back(endpoint);
    }
    ::freeaddrinfo(found);
    return endpoints;
}

absl::StatusOr<Listener> listen_on(const std::string& address, std::uint16_t port) {
    absl::StatusOr<std::vector<Endpoint>> endpoints = resolve(address, port);
    if (!endpoints.ok()) {
        return endpoints.status();
    }
    const Endpoint& endpoint = endpoints->front();
    Listener listener;
    const bool local = endpoint.family() == AF_UNIX;
    if (local) {
        listener.unix_path = address.substr(unix_prefix.size());
        remove_stale(endpoint, listener.unix_path);
    }
    listener.fd.reset(::socket(endpoint.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener.fd.valid()) {
        return errno_status(errno, absl::StrCat("cannot listen on ", address));
    }
    const std::string shown = local ? address : absl::StrCat(address, ":", port);
    if (absl::Status status = bind_and_listen(listener.fd.get(), endpoint, shown); !status.ok()) {
        return status;
    }
    Endpoint bound;
    bound.length = sizeof bound.storage;
    ::getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.length);
    listener.port = bound.port();
    return listener;
}

absl::StatusOr<Fd> start_connect(const Endpoint& to) {
    Fd fd(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid()) {
        return errno_status(errno, "cannot open a socket");
    }
    if (to.family() != AF_UNIX) {
        set_no_delay(fd.get());
    }
    if (::connect(fd.get(), to.get(), to.length) != 0 && errno != EINPROGRESS) {
        return errno_status(errno, "cannot connect");
    }
    return fd;
}

int connect_error(int fd) {
    int error = 0;
    socklen_t length = sizeof error;
    return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

void set_no_delay(int fd) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace ration::net
