#include "workbench/scripted_upstream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/errno_status.h"
#include "base/text.h"
#include "net/address.h"
#include "workbench/wire_reader.h"

namespace ration {

namespace {

std::string answer_bytes(const ScriptedAnswer& answer, std::string_view method) {
    const bool bodiless = answer.status == 204 || answer.status == 304;
    std::string bytes = cat("HTTP/1.1 ", answer.status, " Scripted\r\n");
    for (const auto& [name, value] : answer.headers) {
        bytes += cat(name, ": ", value, "\r\n");
    }
    if (!bodiless) {
        bytes += cat("Content-Length: ", answer.body.size(), "\r\n");
    }
    bytes += "\r\n";
    return bodiless || method == "HEAD" ? bytes : bytes + answer.body;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScriptedUpstream>> ScriptedUpstream::start() {
    std::unique_ptr<ScriptedUpstream> upstream(new ScriptedUpstream);
    upstream->listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    const int fd = upstream->listener_.get();
    if (fd < 0 || ::bind(fd, any, length) != 0 || ::listen(fd, 64) != 0 ||
        ::getsockname(fd, any, &length) != 0) {
        return absl::UnavailableError(cat("no port for the upstream: ", errno_text(errno)));
    }
    upstream->port_ = ntohs(address.sin_port);
    upstream->accepting_ = std::thread([self = upstream.get()] { self->accept_all(); });
    return upstream;
}

ScriptedUpstream::~ScriptedUpstream() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        for (const net::Fd& connection : connections_) {
            ::shutdown(connection.get(), SHUT_RDWR);
        }
    }
    ::shutdown(listener_.get(), SHUT_RDWR);
    if (accepting_.joinable()) {
        accepting_.join();
    }
    for (std::thread& thread : serving_) {
        thread.join();
    }
}

void ScriptedUpstream::accept_all() {
    for (;;) {
        net::Fd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        const int accepted = connection.valid() ? 0 : errno;
        const std::lock_guard lock(mutex_);
        if (stopping_) {
            return;
        }
        if (accepted == EINTR || accepted == ECONNABORTED) {
            continue;
        }
        if (accepted != 0) {
            return;
        }
        const int fd = connection.get();
        net::set_no_delay(fd);
        connections_.push_back(std::move(connection));
        serving_.emplace_back([this, fd] { serve(fd); });
    }
}

void ScriptedUpstream::serve(int fd) {
    WireReader reader(fd);
    for (;;) {
        auto message = reader.next(false);
        if (!message.ok()) {
            break;
        }
        const std::string& line = message->start_line;
        const std::size_t blank = line.find(' ');
        ForwardedRequest seen;
        seen.method = line.substr(0, blank);
        seen.target = line.substr(blank + 1, line.rfind(' ') - blank - 1);
        seen.headers = std::move(message->headers);
        std::string bytes;
        {
            const std::lock_guard lock(mutex_);
            bytes = answer_bytes(answer_, seen.method);
            seen_ = std::move(seen);
        }
        if (!write_all(fd, bytes).ok()) {
            break;
        }
    }
    ::shutdown(fd, SHUT_RDWR);
}

void ScriptedUpstream::script(ScriptedAnswer answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
    seen_.reset();
}

std::optional<ForwardedRequest> ScriptedUpstream::take_seen() {
    const std::lock_guard lock(mutex_);
    return std::exchange(seen_, std::nullopt);
}

}  // namespace ration
