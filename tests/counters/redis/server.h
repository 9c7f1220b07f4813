// A Redis (or Valkey) of the test's own, in a temporary folder: started, killed, paused, started
// again.
//
//   RedisServer server({.program = "redis-server"});
//   RedisOptions options = server.options();
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ration/redis_counters.h"

namespace ration {

struct RedisServerOptions {
    std::string program = "redis-server";
    std::vector<std::string> arguments = {};  // more of the command line
    bool tcp = false;                         // listens on a free port too
};

class RedisServer {
public:
    explicit RedisServer(const RedisServerOptions& options = {});
    ~RedisServer();
    RedisServer(const RedisServer&) = delete;
    RedisServer& operator=(const RedisServer&) = delete;

    void start();  // returns when it answers; fails the test when it does not in 20 s
    void kill();   // -9
    void pause();
    void go_on();

    [[nodiscard]] std::string socket() const { return folder_ + "/s"; }
    [[nodiscard]] const std::string& folder() const { return folder_; }
    [[nodiscard]] std::uint16_t port() const { return port_; }
    // By the Unix socket; a deadline that only a server that does not answer misses.
    [[nodiscard]] RedisOptions options() const;

    // A command by a connection of its own; the answer as text: arrays in lines, "(nil)", an error
    // with its sign.
    std::string command(const std::vector<std::string>& words);

private:
    void open_launcher();

    RedisServerOptions options_;
    std::string folder_;
    std::uint16_t port_ = 0;
    pid_t process_ = -1;
    pid_t launcher_ = -1;
    int to_launcher_ = -1;
    int from_launcher_ = -1;
};

// A connection to that Unix socket, the caller's to close; -1: nobody listens there.
[[nodiscard]] int connect_to(const std::string& path);

// A TCP port for a server that is still to be started: outside the range from which the system
// gives ports out, and claimed by this process, among all tests, until it ends.
[[nodiscard]] std::uint16_t free_port();

// The servers to test with: redis-server, and valkey-server where there is one.
[[nodiscard]] std::vector<std::string> redis_programs();
[[nodiscard]] std::string program_name(const std::string& program);  // "redis", "valkey"

}  // namespace ration
