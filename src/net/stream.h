// A connected socket, plain or TLS, read and written without waiting.
//
// `would_block` means: nothing more until the loop's next edge. Thread rule: one thread. SIGPIPE
// must be blocked in threads that use TLS streams (the loop threads block it). Errors: `failed`
// ends the stream; `error()` says why.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "net/fd.h"

struct ssl_st;

namespace ration::net {

enum class Io : unsigned char { done, would_block, closed, failed };

struct IoResult {
    Io status = Io::done;
    std::size_t bytes = 0;
};

struct FreeSsl {
    void operator()(ssl_st* ssl) const;
};
using SslPtr = std::unique_ptr<ssl_st, FreeSsl>;

class Stream {
public:
    Stream() = default;
    explicit Stream(Fd fd) : fd_(std::move(fd)) {}
    // Takes a TLS session made by TlsContext; `handshake` until done before the first byte.
    Stream(Fd fd, SslPtr ssl);

    // TLS: goes on with the handshake. Plain: done.
    [[nodiscard]] IoResult handshake();
    [[nodiscard]] IoResult read(std::span<char> into);
    [[nodiscard]] IoResult write(std::string_view bytes);
    // True when a read of `got` bytes into `room` shows that the socket holds no more.
    [[nodiscard]] bool ran_dry(std::size_t got, std::size_t room) const {
        return ssl_ == nullptr && got < room;
    }
    // Says that no more bytes will be written.
    void finish_writing();
    // Closes with a reset, so that the other side cannot mistake what it has for the whole.
    void reset_connection();
    void close();

    [[nodiscard]] bool open() const { return fd_.valid(); }
    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] bool tls() const { return ssl_ != nullptr; }
    [[nodiscard]] const std::string& error() const { return error_; }

private:
    IoResult ssl_result(int result);

    Fd fd_;
    SslPtr ssl_;
    std::string error_;
};

}  // namespace ration::net
