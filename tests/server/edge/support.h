// What the tests of the process around the gateway share: a folder, a log that remembers, raw HTTP,
// and an upstream that does as it is told.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/process/log.h"

namespace ration::testing {

// A temporary folder, removed with what is in it.
class Folder {
public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    [[nodiscard]] std::string path(std::string_view name) const;
    void write(std::string_view name, std::string_view text) const;
    // As editors do: a new file is written aside and renamed into place.
    void replace(std::string_view name, std::string_view text) const;
    [[nodiscard]] std::string read(std::string_view name) const;

private:
    std::string path_;
};

// Remembers every line as "level: text".
class RecordingLog final : public Log {
public:
    void write(LogLevel level, std::string_view line) override;
    [[nodiscard]] std::string text() const;
    [[nodiscard]] int count(std::string_view part) const;  // lines that have it

private:
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
};

// True as soon as `condition` is; false after `seconds`.
[[nodiscard]] bool eventually(const std::function<bool()>& condition, int seconds = 20);

struct HttpReply {
    int status = 0;  // 0: the connection ended without an answer
    std::string head;
    std::string body;

    [[nodiscard]] std::string field(std::string_view name) const;  // "" when absent
};

// One TCP connection to 127.0.0.1.
class Connection {
public:
    explicit Connection(std::uint16_t port);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    [[nodiscard]] bool open() const { return fd_ >= 0; }
    void send(std::string_view bytes) const;
    // Reads one answer with a Content-Length; `to_head`: without its body.
    [[nodiscard]] HttpReply read(bool to_head = false);
    // True when the other side closes within `seconds`, whatever it sends before.
    [[nodiscard]] bool closes(int seconds = 20) const;

private:
    int fd_ = -1;
    std::string in_;
};

using FieldMap = std::map<std::string, std::string>;

// One request on a connection of its own.
[[nodiscard]] HttpReply ask(std::uint16_t port, std::string_view method, std::string_view target,
                            const FieldMap& fields = {}, std::string_view body = {});

// Answers every request with "hello" and 200, or another status, after `delay`; counts them.
class Upstream {
public:
    explicit Upstream(std::chrono::milliseconds delay = {});
    ~Upstream();

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] int requests() const { return requests_; }
    void answer(int status) { status_ = status; }

private:
    void serve(int fd);

    const std::chrono::milliseconds delay_;
    int listener_ = -1;
    std::uint16_t port_ = 0;
    std::atomic<int> requests_{0};
    std::atomic<int> status_{200};
    std::atomic<bool> stop_{false};
    std::mutex mutex_;
    std::vector<std::thread> threads_;
    std::thread acceptor_;
};

}  // namespace ration::testing
