// A TCP proxy in front of a test's Redis that misbehaves on demand.
//
// It understands commands, so it can answer in the server's place, and passes answers on byte by
// byte, so it can stop in the middle of one. Thread rule: any member from any thread; a mode counts
// for what comes after it.
//
//   RedisProxy proxy(server.socket());
//   options.host = "127.0.0.1"; options.port = proxy.port();
//   proxy.answer_scripts("-OOM command not allowed when used memory > 'maxmemory'.");
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace ration {

class RedisProxy {
public:
    explicit RedisProxy(std::string server_socket);
    ~RedisProxy();

    [[nodiscard]] std::uint16_t port() const { return port_; }

    void pass();  // behaves again
    // Answers wait that long.
    void delay(int milliseconds) { delay_ms_ = milliseconds; }
    // Runs of scripts are not passed on but answered with this line.
    void answer_scripts(std::string line);
    // The next answer of a script ends after so many bytes, and its connection with it.
    void cut_next_answer_after(int bytes) { cut_after_ = bytes; }
    // Commands are taken and never answered, nor passed on.
    void swallow() { swallow_ = true; }
    // Every connection ends, and new ones at once.
    void refuse();

    [[nodiscard]] std::uint64_t script_runs() const { return script_runs_; }

private:
    struct Connection;
    void accept_all();
    void serve(Connection& connection);
    bool to_server(Connection& connection);
    bool to_client(Connection& connection);
    [[nodiscard]] bool take_command(Connection& connection, std::size_t size, bool script);

    const std::string server_socket_;
    int listener_ = -1;
    std::uint16_t port_ = 0;
    std::atomic<int> delay_ms_{0};
    std::atomic<int> cut_after_{-1};
    std::atomic<bool> swallow_{false};
    std::atomic<bool> refuse_{false};
    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> script_runs_{0};
    std::mutex mutex_;
    std::string script_answer_;          // guarded
    std::list<Connection> connections_;  // the accepting thread's
    std::thread thread_;
};

}  // namespace ration
