#include "server/proxy/upstream_connection.h"

#include <algorithm>
#include <utility>

#include "base/errno_status.h"
#include "server/proxy/upstream_pool.h"

namespace ration {

UpstreamConnection::UpstreamConnection(UpstreamPool& pool, net::Endpoints endpoints,
                                       std::size_t first_endpoint)
    : pool_(pool),
      endpoints_(std::move(endpoints)),
      endpoint_(first_endpoint),
      in_(pool.blocks()),
      out_(pool.blocks()),
      timer_(&UpstreamConnection::on_timeout, this) {}

void UpstreamConnection::expect_progress_by(Mono deadline) {
    pool_.loop().timers().arm(timer_, deadline);
}

void UpstreamConnection::connect() {
    while (attempts_ < endpoints_->size()) {
        const net::Endpoint& endpoint =
            (*endpoints_)[(endpoint_ + attempts_++) % endpoints_->size()];
        absl::StatusOr<net::Fd> fd = net::start_connect(endpoint);
        if (!fd.ok()) {
            detail_ = std::string(fd.status().message());
            continue;
        }
        if (!pool_.make_stream(*std::move(fd), stream_)) {
            detail_ = "TLS session refused";
            continue;
        }
        readable_ = writable_ = hangup_ = false;
        if (absl::Status status = pool_.loop().add(stream_.fd(), *this); !status.ok()) {
            detail_ = std::string(status.message());
            continue;
        }
        return;
    }
    state_ = State::failed;
    trouble_ = Trouble::refused;
}

void UpstreamConnection::on_ready(std::uint32_t events) {
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        readable_ = true;
        hangup_ |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    }
    writable_ |= (events & EPOLLOUT) != 0;
    if (state_ == State::connecting && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
        connected();
    }
    if (state_ == State::handshake) {
        go_on_with_handshake();
    }
    if (user_ != nullptr) {
        user_->upstream_changed();
    } else if (!quiet()) {
        pool_.idle_broke(*this);
    }
}

// Idle: true when it is open and sent nothing that nobody asked for. (TLS may have business of its
// own, so only reading can tell.)
bool UpstreamConnection::quiet() {
    if (state_ != State::ready || hangup_ || ended_) {
        return false;
    }
    if (!readable_) {
        return true;
    }
    char unexpected = 0;
    readable_ = false;
    return stream_.read({&unexpected, 1}).status == net::Io::would_block;
}

void UpstreamConnection::connected() {
    if (const int error = net::connect_error(stream_.fd()); error != 0) {
        connect_failed(errno_text(error));
        return;
    }
    state_ = stream_.tls() ? State::handshake : State::ready;
    if (state_ == State::ready) {
        timer_.disarm();
    }
}

void UpstreamConnection::connect_failed(std::string detail) {
    detail_ = "cannot connect: " + std::move(detail);
    pool_.loop().forget(*this);
    stream_.close();
    connect();  // the next address, or failed
}

void UpstreamConnection::go_on_with_handshake() {
    const net::IoResult result = stream_.handshake();
    if (result.status == net::Io::done) {
        state_ = State::ready;
        timer_.disarm();
    } else if (result.status != net::Io::would_block) {
        fail(Trouble::refused, stream_.error().empty() ? "TLS handshake failed" : stream_.error());
    }
}

bool UpstreamConnection::flush() {
    bool moved = false;
    while (state_ == State::ready && writable_ && !out_.empty() && !write_broken_) {
        const net::IoResult result = stream_.write(out_.data());
        if (result.status == net::Io::done) {
            out_.consume(result.bytes);
            written_ += result.bytes;
            moved = true;
        } else if (result.status == net::Io::would_block) {
            writable_ = false;
        } else {
            write_broken_ = true;
            readable_ = true;
        }
    }
    return moved;
}

bool UpstreamConnection::fill(std::size_t want) {
    if (state_ != State::ready || !readable_ || ended_) {
        return false;
    }
    const std::span<char> room = in_.room(std::max<std::size_t>(want, 1));
    const net::IoResult result = stream_.read(room);
    switch (result.status) {
        case net::Io::done:
            in_.commit(result.bytes);
            if (!hangup_ && stream_.ran_dry(result.bytes, room.size())) {
                readable_ = false;
            }
            return true;
        case net::Io::would_block:
            readable_ = false;
            if (write_broken_ && hangup_) {
                fail(Trouble::broken, "connection broke");
            }
            return false;
        case net::Io::closed:
            ended_ = true;
            readable_ = false;
            return true;
        case net::Io::failed:
            fail(Trouble::broken, stream_.error());
            return true;
    }
    return false;
}

void UpstreamConnection::fail(Trouble trouble, std::string detail) {
    state_ = State::failed;
    trouble_ = trouble;
    detail_ = std::move(detail);
    ended_ = true;
    timer_.disarm();
}

void UpstreamConnection::on_timeout(void* self) {
    auto& connection = *static_cast<UpstreamConnection*>(self);
    if (connection.user_ == nullptr) {
        connection.pool_.idle_broke(connection);
        return;
    }
    const bool ready = connection.state_ == State::ready;
    connection.fail(Trouble::timed_out, ready ? "no answer in time" : "no connection in time");
    connection.user_->upstream_changed();
}

}  // namespace ration
