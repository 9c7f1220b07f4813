#include "counters/redis/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "wire/resp.h"

namespace ration {

int connect_to(const std::string& path) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        ::close(fd);
        return -1;
    }
    return fd;
}

namespace {

std::string text_of(const RespReply& reply) {
    std::string text;
    for (const RespValue& value : reply.values) {
        text += text.empty() ? "" : "\n";
        switch (value.kind) {
            case RespValue::Kind::error:
                text += "-";
                [[fallthrough]];
            case RespValue::Kind::status:
            case RespValue::Kind::bulk:
                text += value.text;
                break;
            case RespValue::Kind::integer:
                text += std::to_string(value.integer);
                break;
            case RespValue::Kind::null:
                text += "(nil)";
                break;
        }
    }
    return text;
}

// By a socket of that name, as the end-to-end tests claim theirs.
bool claim_port(int fd, std::uint16_t port) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "ration test port " + std::to_string(port);
    std::memcpy(address.sun_path + 1, name.data(), name.size());  // an abstract one: NUL first
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0;
}

bool bind_port(int fd, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

bool is_program(const std::string& path) {
    return ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::uint16_t free_port() {
    constexpr std::uint16_t first = 20'000;
    constexpr std::uint16_t end = 32'000;
    std::random_device random;
    for (int tries = 0; tries < 1'000; ++tries) {
        const auto port = static_cast<std::uint16_t>(first + random() % (end - first));
        const int claim = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const bool good = claim_port(claim, port) && bind_port(probe, port);
        ::close(probe);
        if (good) {
            return port;  // and the claim stays open
        }
        ::close(claim);
    }
    ADD_FAILURE() << "no free port";
    return 0;
}

std::vector<std::string> redis_programs() {
    std::vector<std::string> programs{"redis-server"};
    for (const std::string& place :
         {std::string("/usr/bin/valkey-server"),
          std::string(RATION_SOURCE_DIR) + "/build/valkey/usr/bin/valkey-server"}) {
        if (is_program(place)) {
            programs.push_back(place);
            break;
        }
    }
    return programs;
}

std::string program_name(const std::string& program) {
    return program.find("valkey") != std::string::npos ? "valkey" : "redis";
}

RedisServer::RedisServer(const RedisServerOptions& options) : options_(options) {
    std::string folder = std::filesystem::temp_directory_path() / "ration-redis-XXXXXX";
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    port_ = options.tcp ? free_port() : std::uint16_t{0};
    open_launcher();
    start();
}

RedisServer::~RedisServer() {
    kill();
    ::close(to_launcher_);
    ::close(from_launcher_);
    ::waitpid(launcher_, nullptr, 0);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

// A shell that starts one server for each line, and ends the last when this process ends. Made
// early: a fork later would, until its exec, keep alive descriptors that event loops of this
// process have closed, and their epoll would still tell of them.
void RedisServer::open_launcher() {
    std::vector<std::string> words{
        "sh",
        "-c",
        "while read -r go; do \"$@\" >>log 2>&1 & echo $!; done; kill -9 $! 2>/dev/null",
        "sh",
        options_.program,
        "--port",
        std::to_string(port_),
        "--bind",
        "127.0.0.1",
        "--unixsocket",
        socket(),
        "--dir",
        folder_,
        "--save",
        "",
        "--appendonly",
        "no",
        "--loglevel",
        "warning"};
    words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
    std::vector<char*> arguments;
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    EXPECT_EQ(::pipe2(in.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(out.data(), O_CLOEXEC), 0);
    launcher_ = ::fork();
    if (launcher_ == 0) {
        ::dup2(in[0], 0);
        ::dup2(out[1], 1);
        if (::chdir(folder_.c_str()) == 0) {
            ::execvp(arguments[0], arguments.data());
        }
        ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to_launcher_ = in[1];
    from_launcher_ = out[0];
}

void RedisServer::start() {
    ::unlink(socket().c_str());
    EXPECT_EQ(::write(to_launcher_, "go\n", 3), 3);
    std::string line;
    for (char c = 0; ::read(from_launcher_, &c, 1) == 1 && c != '\n';) {
        line += c;
    }
    process_ = static_cast<pid_t>(std::stol(line.empty() ? "-1" : line));
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < until) {
        const int fd = connect_to(socket());
        if (fd >= 0) {
            ::close(fd);
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << options_.program << " does not answer; its log is in " << folder_;
}

void RedisServer::kill() {
    if (process_ <= 0) {
        return;
    }
    ::kill(process_, SIGKILL);
    // The shell's child: dead as soon as nobody has its socket.
    for (int fd = connect_to(socket()); fd >= 0; fd = connect_to(socket())) {
        ::close(fd);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    process_ = -1;
}

void RedisServer::pause() {
    ::kill(process_, SIGSTOP);
}

void RedisServer::go_on() {
    ::kill(process_, SIGCONT);
}

RedisOptions RedisServer::options() const {
    RedisOptions options;
    options.host = "unix:" + socket();
    options.deadline = max_redis_deadline;
    return options;
}

std::string RedisServer::command(const std::vector<std::string>& words) {
    const int fd = connect_to(socket());
    std::string out;
    append_resp_count(out, words.size());
    for (const std::string& word : words) {
        append_resp_word(out, word);
    }
    EXPECT_EQ(::write(fd, out.data(), out.size()), static_cast<ssize_t>(out.size()));
    std::string in;
    RespReply reply;
    std::size_t used = 0;
    while (parse_resp(in, reply, used) == RespRead::more) {
        char bytes[4096];
        const ssize_t got = ::read(fd, bytes, sizeof bytes);
        if (got <= 0) {
            break;
        }
        in.append(bytes, static_cast<std::size_t>(got));
    }
    ::close(fd);
    return text_of(reply);
}

}  // namespace ration
