#include "counters/redis/connection.h"

#include <sys/epoll.h>

#include <cstring>
#include <utility>

#include "base/errno_status.h"
#include "base/text.h"

namespace ration {
namespace {

constexpr std::size_t read_size = 64 * 1024;
constexpr std::size_t least_room = 16 * 1024;
constexpr std::size_t largest_kept_buffer = 1 << 20;

}  // namespace

RedisConnection::~RedisConnection() {
    close();
}

absl::Status RedisConnection::start(const net::Endpoint& to) {
    absl::StatusOr<net::Fd> fd = net::start_connect(to);
    if (!fd.ok()) {
        return fd.status();
    }
    if (const net::TlsContext* tls = store_.tls()) {
        net::SslPtr session = tls->connect_session(store_.options().host);
        if (session == nullptr) {
            return absl::UnavailableError("no TLS session for this host name");
        }
        stream_ = net::Stream(*std::move(fd), std::move(session));
    } else {
        stream_ = net::Stream(*std::move(fd));
    }
    return loop_.add(stream_.fd(), *this);
}

void RedisConnection::on_ready(std::uint32_t events) {
    flush_due_ = false;
    readable_ |= (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    hangup_ |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    writable_ |= (events & EPOLLOUT) != 0;
    if (state_ == State::connecting && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
        connect_done();
    }
    if (state_ == State::handshake) {
        shake_hands();
    }
    if (state_ == State::open) {
        flush();
    }
    if (state_ == State::open) {
        read();
    }
}

void RedisConnection::connect_done() {
    if (const int error = net::connect_error(stream_.fd()); error != 0) {
        return fail(cat("cannot connect: ", errno_text(error)));
    }
    state_ = State::handshake;
}

void RedisConnection::shake_hands() {
    const net::IoResult result = stream_.handshake();
    if (result.status == net::Io::done) {
        state_ = State::open;
        readable_ = writable_ = true;
        user_.connected();
    } else if (result.status != net::Io::would_block) {
        fail(stream_.error().empty() ? "the TLS handshake failed" : stream_.error());
    }
}

void RedisConnection::send(std::string_view bytes) {
    out_ += bytes;
    if (!std::exchange(flush_due_, true)) {
        loop_.again(*this);
    }
}

void RedisConnection::flush() {
    while (writable_ && out_at_ < out_.size()) {
        const net::IoResult result = stream_.write(std::string_view(out_).substr(out_at_));
        if (result.status == net::Io::done) {
            out_at_ += result.bytes;
        } else if (result.status == net::Io::would_block) {
            writable_ = false;
        } else {
            return fail(stream_.error().empty() ? "connection broke" : stream_.error());
        }
    }
    if (out_at_ == out_.size()) {
        out_at_ = 0;
        out_.clear();
        if (out_.capacity() > largest_kept_buffer) {
            out_.shrink_to_fit();
        }
    }
}

void RedisConnection::read() {
    while (readable_ && state_ == State::open) {
        if (in_.size() - in_end_ < least_room) {
            in_.resize(in_end_ + read_size);
        }
        const std::span<char> room = std::span(in_).subspan(in_end_);
        const net::IoResult result = stream_.read(room);
        if (result.status == net::Io::would_block) {
            readable_ = false;
        } else if (result.status == net::Io::closed) {
            fail("the server closed the connection");
        } else if (result.status == net::Io::failed) {
            fail(stream_.error());
        } else {
            readable_ = hangup_ || !stream_.ran_dry(result.bytes, room.size());
            take(result.bytes);
        }
    }
}

void RedisConnection::take(std::size_t bytes) {
    in_end_ += bytes;
    const std::size_t used = user_.received(std::string_view(in_).substr(0, in_end_));
    in_end_ -= used;
    if (used != 0 && in_end_ != 0) {
        std::memmove(in_.data(), in_.data() + used, in_end_);
    }
}

void RedisConnection::fail(std::string detail) {
    if (state_ != State::closed) {
        close();
        user_.broke(std::move(detail));
    }
}

void RedisConnection::close() {
    if (state_ != State::closed) {
        state_ = State::closed;
        loop_.forget(*this);
        stream_.close();
    }
}

}  // namespace ration
