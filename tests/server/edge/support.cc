#include "server/edge/support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "request/header.h"

namespace ration::testing {

namespace {

constexpr int answer_ms = 20'000;

bool readable(int fd, int within_ms) {
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&waiting, 1, within_ms) > 0;
}

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

// Appends what can be had; false at the end of input or when nothing comes in time.
bool receive(int fd, std::string& into) {
    char bytes[4096];
    if (!readable(fd, answer_ms)) {
        return false;
    }
    const ssize_t got = ::recv(fd, bytes, sizeof bytes, 0);
    if (got <= 0) {
        return false;
    }
    into.append(bytes, static_cast<std::size_t>(got));
    return true;
}

void send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) {
            return;
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}

}  // namespace

Folder::Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ration-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
}

Folder::~Folder() {
    std::filesystem::remove_all(path_);
}

std::string Folder::path(std::string_view name) const {
    return cat(path_, "/", name);
}

void Folder::write(std::string_view name, std::string_view text) const {
    std::ofstream(path(name), std::ios::binary | std::ios::trunc) << text;
}

void Folder::replace(std::string_view name, std::string_view text) const {
    const std::string aside = cat(name, ".new");
    write(aside, text);
    std::filesystem::rename(path(aside), path(name));
}

std::string Folder::read(std::string_view name) const {
    std::ostringstream text;
    text << std::ifstream(path(name), std::ios::binary).rdbuf();
    return text.str();
}

void RecordingLog::write(LogLevel level, std::string_view line) {
    constexpr std::string_view names[] = {"info", "warning", "error"};
    const std::lock_guard lock(mutex_);
    lines_.push_back(cat(names[static_cast<std::size_t>(level)], ": ", line));
}

std::string RecordingLog::text() const {
    const std::lock_guard lock(mutex_);
    std::string all;
    for (const std::string& line : lines_) {
        all += cat(line, "\n");
    }
    return all;
}

int RecordingLog::count(std::string_view part) const {
    const std::lock_guard lock(mutex_);
    int found = 0;
    for (const std::string& line : lines_) {
        found += line.find(part) != std::string::npos ? 1 : 0;
    }
    return found;
}

bool eventually(const std::function<bool()>& condition, int seconds) {
    for (int i = 0; i < seconds * 100; ++i) {
        if (condition()) {
            return true;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return condition();
}

std::string HttpReply::field(std::string_view name) const {
    std::istringstream lines(head);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
        const std::size_t colon = line.find(':');
        if (colon != std::string::npos && equal_ignoring_case(line.substr(0, colon), name)) {
            return line.substr(colon + 2, line.size() - colon - 3);
        }
    }
    return "";
}

Connection::Connection(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in address = loopback(port);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        ::close(fd_);
        fd_ = -1;
    }
}

Connection::~Connection() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

void Connection::send(std::string_view bytes) const {
    send_all(fd_, bytes);
}

HttpReply Connection::read(bool to_head) {
    HttpReply reply;
    std::size_t end = 0;
    while ((end = in_.find("\r\n\r\n")) == std::string::npos) {
        if (!receive(fd_, in_)) {
            return reply;
        }
    }
    reply.head = in_.substr(0, end + 2);
    in_.erase(0, end + 4);
    reply.status = std::atoi(reply.head.substr(9, 3).c_str());
    const std::string length = reply.field("Content-Length");
    const std::size_t size = to_head || length.empty() ? 0 : std::stoul(length);
    while (in_.size() < size && receive(fd_, in_)) {
    }
    reply.body = in_.substr(0, size);
    in_.erase(0, size);
    return reply;
}

bool Connection::closes(int seconds) const {
    char bytes[4096];
    while (readable(fd_, seconds * 1000)) {
        if (::recv(fd_, bytes, sizeof bytes, 0) <= 0) {
            return true;
        }
    }
    return false;
}

HttpReply ask(std::uint16_t port, std::string_view method, std::string_view target,
              const FieldMap& fields, std::string_view body) {
    Connection connection(port);
    if (!connection.open()) {
        return {};
    }
    std::string request = cat(method, " ", target, " HTTP/1.1\r\nHost: test\r\n");
    for (const auto& [name, value] : fields) {
        request += cat(name, ": ", value, "\r\n");
    }
    if (!body.empty()) {
        request += cat("Content-Length: ", body.size(), "\r\n");
    }
    connection.send(cat(request, "\r\n", body));
    return connection.read(method == "HEAD");
}

Upstream::Upstream(std::chrono::milliseconds delay)
    : delay_(delay), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), length);
    ::listen(listener_, 64);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] {
        while (!stop_) {
            if (!readable(listener_, 20)) {
                continue;
            }
            const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            const std::lock_guard lock(mutex_);
            threads_.emplace_back([this, fd] { serve(fd); });
        }
    });
}

Upstream::~Upstream() {
    stop_ = true;
    acceptor_.join();
    for (std::thread& thread : threads_) {
        thread.join();
    }
    ::close(listener_);
}

void Upstream::serve(int fd) {
    std::string in;
    while (!stop_) {
        const std::size_t end = in.find("\r\n\r\n");
        if (end != std::string::npos) {
            in.erase(0, end + 4);
            ++requests_;
            std::this_thread::sleep_for(delay_);
            send_all(fd, "HTTP/1.1 " + std::to_string(status_) +
                             " Said\r\nContent-Length: 5\r\n\r\nhello");
            continue;
        }
        if (readable(fd, 20) && !receive(fd, in)) {
            break;
        }
    }
    ::close(fd);
}

}  // namespace ration::testing
