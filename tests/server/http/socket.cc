#include "server/http/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

namespace ration::testing {

namespace {

class PlainTransport final : public Transport {
public:
    explicit PlainTransport(int fd) : fd_(fd) {}
    long read(char* into, std::size_t size) override { return ::recv(fd_, into, size, 0); }
    long write(const char* from, std::size_t size) override {
        return ::send(fd_, from, size, MSG_NOSIGNAL);
    }

private:
    int fd_;
};

void be_patient(int fd) {
    const timeval limit{patience_ms / 1000, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

bool same_name(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
        return std::tolower(x) == std::tolower(y);
    });
}

std::pair<std::string, std::string> split_field(const std::string& line) {
    const std::size_t colon = line.find(':');
    std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
    const std::size_t start = value.find_first_not_of(" \t");
    return {line.substr(0, colon), start == std::string::npos ? "" : value.substr(start)};
}

std::string word(const std::string& line, std::size_t index) {
    std::size_t begin = 0;
    for (; index > 0; --index) {
        begin = line.find(' ', begin) + 1;
    }
    return line.substr(begin, line.find(' ', begin) - begin);
}

}  // namespace

int Message::status() const {
    return std::atoi(word(start_line, 1).c_str());
}
std::string Message::method() const {
    return word(start_line, 0);
}
std::string Message::target() const {
    return word(start_line, 1);
}

std::string Message::field(std::string_view name) const {
    std::string value;
    int seen = 0;
    for (const auto& [key, text] : fields) {
        if (same_name(key, name)) {
            value = text;
            ++seen;
        }
    }
    return seen > 1 ? "(twice)" : value;
}

bool Message::has(std::string_view name) const {
    return std::any_of(fields.begin(), fields.end(),
                       [&](const auto& field) { return same_name(field.first, name); });
}

Conn::Conn(int fd) : Conn(fd, std::make_unique<PlainTransport>(fd)) {}

Conn::Conn(int fd, std::unique_ptr<Transport> transport)
    : fd_(fd), transport_(std::move(transport)) {
    be_patient(fd_);
}

Conn::Conn(Conn&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      transport_(std::move(other.transport_)),
      buffer_(std::move(other.buffer_)),
      received_(other.received_) {}

Conn::~Conn() {
    close();
}

Conn Conn::to_port(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        ::close(fd);
        return Conn(-1);
    }
    return Conn(fd);
}

Conn Conn::to_unix(const std::string& path) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        ::close(fd);
        return Conn(-1);
    }
    return Conn(fd);
}

bool Conn::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const long sent = transport_->write(bytes.data(), bytes.size());
        if (sent <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

bool Conn::send_slowly(std::string_view bytes) {
    for (const char& byte : bytes) {
        if (!send({&byte, 1})) {
            return false;
        }
    }
    return true;
}

bool Conn::more() {
    char bytes[65536];
    const long count = transport_->read(bytes, sizeof bytes);
    if (count <= 0) {
        return false;
    }
    buffer_.append(bytes, static_cast<std::size_t>(count));
    received_ += static_cast<std::uint64_t>(count);
    return true;
}

bool Conn::take(std::size_t count, std::string& into) {
    while (buffer_.size() < count) {
        if (!more()) {
            return false;
        }
    }
    into.append(buffer_, 0, count);
    buffer_.erase(0, count);
    return true;
}

bool Conn::take_line(std::string& line) {
    std::size_t end = std::string::npos;
    while ((end = buffer_.find("\r\n")) == std::string::npos) {
        if (!more()) {
            return false;
        }
    }
    line = buffer_.substr(0, end);
    buffer_.erase(0, end + 2);
    return true;
}

std::optional<Message> Conn::read(bool to_head) {
    Message message;
    if (!read_head(message)) {
        if (message.start_line.empty()) {
            return std::nullopt;
        }
        return message;
    }
    const bool request = message.start_line.find("HTTP/") != 0;
    message.whole = read_body(message, request, to_head);
    return message;
}

bool Conn::read_head(Message& message) {
    if (!take_line(message.start_line)) {
        return false;
    }
    std::string line;
    while (take_line(line)) {
        if (line.empty()) {
            return true;
        }
        message.fields.push_back(split_field(line));
    }
    return false;
}

bool Conn::read_body(Message& message, bool request, bool to_head) {
    if (!request) {
        const int status = message.status();
        if (to_head || status < 200 || status == 204 || status == 304) {
            return true;
        }
    }
    if (same_name(message.field("Transfer-Encoding"), "chunked")) {
        message.chunked = true;
        return read_chunks(message);
    }
    if (message.has("Content-Length")) {
        return take(std::strtoull(message.field("Content-Length").c_str(), nullptr, 10),
                    message.body);
    }
    if (!request) {
        message.body = read_to_end();
    }
    return true;
}

bool Conn::read_chunks(Message& message) {
    std::string line;
    while (take_line(line)) {
        const std::size_t size = std::strtoull(line.c_str(), nullptr, 16);
        if (size > 0) {
            std::string end;
            if (!take(size, message.body) || !take(2, end)) {
                return false;
            }
            continue;
        }
        while (take_line(line)) {
            if (line.empty()) {
                return true;
            }
            message.trailers.push_back(split_field(line));
        }
    }
    return false;
}

std::string Conn::read_to_end() {
    while (more()) {
    }
    return std::exchange(buffer_, {});
}

bool Conn::ended() {
    return buffer_.empty() && !more();
}

bool Conn::readable(int milliseconds) const {
    pollfd waiting{fd_, POLLIN, 0};
    return !buffer_.empty() || ::poll(&waiting, 1, milliseconds) > 0;
}

void Conn::shutdown_write() const {
    ::shutdown(fd_, SHUT_WR);
}
void Conn::shutdown_both() const {
    ::shutdown(fd_, SHUT_RDWR);
}

void Conn::reset() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
}

void Conn::close() {
    transport_.reset();
    if (fd_ >= 0) {
        ::close(std::exchange(fd_, -1));
    }
}

}  // namespace ration::testing
