#include "counters/redis/proxy.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "counters/redis/server.h"
#include "wire/resp.h"

namespace ration {
namespace {

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

}  // namespace

struct RedisProxy::Connection {
    int client = -1;
    int server = -1;
    std::string commands;  // from the client, not yet passed on
    std::thread thread;
    bool script_runs = false;  // its answer has not come yet
    std::atomic<bool> over{false};
};

RedisProxy::RedisProxy(std::string server_socket) : server_socket_(std::move(server_socket)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 64), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { accept_all(); });
}

RedisProxy::~RedisProxy() {
    stop_ = true;
    thread_.join();
    for (Connection& connection : connections_) {
        connection.thread.join();
    }
    ::close(listener_);
}

void RedisProxy::pass() {
    delay_ms_ = 0;
    cut_after_ = -1;
    swallow_ = refuse_ = false;
    answer_scripts("");
}

void RedisProxy::answer_scripts(std::string line) {
    const std::lock_guard lock(mutex_);
    script_answer_ = std::move(line);
}

void RedisProxy::refuse() {
    refuse_ = true;
}

void RedisProxy::accept_all() {
    while (!stop_) {
        pollfd ready{listener_, POLLIN, 0};
        if (::poll(&ready, 1, 20) <= 0) {
            continue;
        }
        const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        const int server = refuse_ || client < 0 ? -1 : connect_to(server_socket_);
        if (server < 0) {
            ::close(client);
            continue;
        }
        const int on = 1;
        ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        connections_.remove_if([](Connection& connection) {
            if (connection.over) {
                connection.thread.join();
            }
            return connection.over.load();
        });
        Connection& connection = connections_.emplace_back();
        connection.client = client;
        connection.server = server;
        connection.thread = std::thread([this, &connection] { serve(connection); });
    }
}

void RedisProxy::serve(Connection& connection) {
    bool going = true;
    while (going && !stop_ && !refuse_) {
        std::array<pollfd, 2> ready{pollfd{connection.client, POLLIN, 0},
                                    pollfd{connection.server, POLLIN, 0}};
        if (::poll(ready.data(), ready.size(), 20) <= 0) {
            continue;
        }
        if (ready[0].revents != 0) {
            going = to_server(connection);
        }
        if (going && ready[1].revents != 0) {
            going = to_client(connection);
        }
    }
    ::close(connection.client);
    ::close(connection.server);
    connection.over = true;
}

bool RedisProxy::to_server(Connection& connection) {
    std::array<char, 65536> bytes;
    const ssize_t got = ::recv(connection.client, bytes.data(), bytes.size(), 0);
    if (got <= 0) {
        return false;
    }
    connection.commands.append(bytes.data(), static_cast<std::size_t>(got));
    RespReply command;
    std::size_t used = 0;
    while (parse_resp(connection.commands, command, used) == RespRead::complete) {
        const bool script = command.array && command.values.front().text == "EVALSHA";
        if (!take_command(connection, used, script)) {
            return false;
        }
        connection.commands.erase(0, used);
    }
    return true;
}

bool RedisProxy::take_command(Connection& connection, std::size_t size, bool script) {
    std::string answer;
    if (script) {
        ++script_runs_;
        const std::lock_guard lock(mutex_);
        answer = script_answer_;
    }
    if (swallow_) {
        return true;
    }
    if (!answer.empty()) {
        return write_all(connection.client, answer + "\r\n");
    }
    connection.script_runs = connection.script_runs || script;
    return write_all(connection.server, std::string_view(connection.commands).substr(0, size));
}

bool RedisProxy::to_client(Connection& connection) {
    std::array<char, 65536> bytes;
    const ssize_t got = ::recv(connection.server, bytes.data(), bytes.size(), 0);
    if (got <= 0) {
        return false;
    }
    if (const int delay = delay_ms_; delay > 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(delay));
    }
    std::string_view answer(bytes.data(), static_cast<std::size_t>(got));
    const int most = std::exchange(connection.script_runs, false) ? cut_after_.exchange(-1) : -1;
    if (most >= 0) {
        static_cast<void>(
            write_all(connection.client, answer.substr(0, static_cast<std::size_t>(most))));
        return false;
    }
    return write_all(connection.client, answer);
}

}  // namespace ration
