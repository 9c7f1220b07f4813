#include "raw_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "base/text.h"

namespace ration::client {

bool RawConnection::fill() {
    char bytes[16384];
    while (!server_.ending()) {
        pollfd ready{fd_, POLLIN, 0};
        if (!(tls_ && RawTls::has_unread(tls_)) && poll(&ready, 1, 50) <= 0) {
            continue;
        }
        const long got =
            tls_ ? RawTls::read(tls_, bytes, sizeof bytes) : recv(fd_, bytes, sizeof bytes, 0);
        if (got <= 0) {
            return false;
        }
        buffer_.append(bytes, static_cast<std::size_t>(got));
        return true;
    }
    return false;
}

bool RawConnection::read_bytes(std::size_t count, std::string& into) {
    while (buffer_.size() < count) {
        if (!fill()) {
            return false;
        }
    }
    into = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return true;
}

bool RawConnection::read_request() {
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
        if (!fill()) {
            return false;
        }
    }
    request = {};
    std::string head;
    static_cast<void>(read_bytes(end + 4, head));
    const std::size_t first = head.find(' ');
    const std::size_t second = head.find(' ', first + 1);
    request.method = head.substr(0, first);
    request.target = head.substr(first + 1, second - first - 1);
    for (std::size_t at = head.find("\r\n") + 2; at < head.size() - 2;) {
        const std::size_t stop = head.find("\r\n", at);
        const std::size_t colon = head.find(':', at);
        request.headers.emplace_back(head.substr(at, colon - at),
                                     head.substr(colon + 2, stop - colon - 2));
        at = stop + 2;
    }
    if (!request.header("expect").empty()) {
        if (!asks_for_bodies) {
            server_.note(request);
            return true;
        }
        send("HTTP/1.1 100 Continue\r\n\r\n");
    }
    const std::string length = request.header("content-length");
    bool whole = true;
    if (!length.empty()) {
        whole = read_bytes(std::strtoul(length.c_str(), nullptr, 10), request.body);
    }
    while (whole && request.header("transfer-encoding") == "chunked") {
        std::size_t line = 0;
        while (whole && (line = buffer_.find("\r\n")) == std::string::npos) {
            whole = fill();
        }
        std::string chunk;
        const std::size_t size = std::strtoul(buffer_.c_str(), nullptr, 16);
        whole = whole && read_bytes(line + 2, chunk) && read_bytes(size + 2, chunk);
        request.body += chunk.substr(0, size);
        if (size == 0) {
            break;
        }
    }
    request.complete = whole;
    server_.note(request);
    return whole;
}

bool RawConnection::send(std::string_view bytes) {
    while (!bytes.empty() && !server_.ending()) {
        pollfd ready{fd_, POLLOUT, 0};
        if (poll(&ready, 1, 50) <= 0) {
            continue;
        }
        const long sent =
            tls_ ? RawTls::write(tls_, bytes.data(), bytes.size())
                 : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return bytes.empty();
}

void RawConnection::answer(int status, std::string_view fields, std::string_view body) {
    send(cat("HTTP/1.1 ", status, " X\r\n", fields, "Content-Length: ", body.size(), "\r\n\r\n",
             body));
}

void RawConnection::reset() {
    const linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

void RawConnection::wait_for_end() {
    while (fill()) {
    }
}

RawServer::RawServer(Serve serve, const RawTls* tls) : serve_(std::move(serve)), tls_(tls) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(listener_, 512) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        throw std::runtime_error("no free port");
    }
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
}

RawServer::~RawServer() {
    ending_ = true;
    acceptor_.join();
    close(listener_);
    for (auto& [fd, thread] : open_) {
        thread.join();
    }
}

void RawServer::accept_all() {
    while (!ending_ && listening_) {
        pollfd ready{listener_, POLLIN, 0};
        if (poll(&ready, 1, 20) <= 0) {
            continue;
        }
        const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) {
            continue;
        }
        const int number = ++connections_;
        if (number >= broken_from_) {
            close(fd);
            continue;
        }
        open_.emplace_back(fd, std::thread([this, fd, number] {
                               void* session = tls_ ? tls_->accept(fd) : nullptr;
                               if (session || !tls_) {
                                   RawConnection connection(*this, fd, number, session);
                                   serve_(connection);
                               }
                               if (session) {
                                   RawTls::close(session);
                               }
                               close(fd);
                           }));
    }
}

void RawServer::stop_listening() {
    listening_ = false;
    shutdown(listener_, SHUT_RDWR);
}

void RawServer::note(const RawRequest& request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
}

std::vector<RawRequest> RawServer::requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
}

std::string RawServer::url(std::string_view path, std::string_view host) const {
    return cat(tls_ ? "https://" : "http://", host, ":", port_, path);
}

}  // namespace ration::client
