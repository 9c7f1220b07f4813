#include "server/proxy/upstream_pool.h"

#include <algorithm>
#include <utility>

namespace ration {

UpstreamPool::UpstreamPool(net::Loop& loop, net::BlockPool& blocks, const UpstreamOptions& options,
                           const net::Addresses& addresses, const net::TlsContext* tls)
    : loop_(loop), blocks_(blocks), options_(options), addresses_(addresses), tls_(tls) {}

UpstreamPool::~UpstreamPool() {
    for (const auto& connection : connections_) {
        loop_.forget(*connection);
    }
}

bool UpstreamPool::make_stream(net::Fd fd, net::Stream& stream) const {
    if (tls_ == nullptr) {
        stream = net::Stream(std::move(fd));
        return true;
    }
    net::SslPtr session = tls_->connect_session(options_.host);
    if (session == nullptr) {
        return false;
    }
    stream = net::Stream(std::move(fd), std::move(session));
    return true;
}

UpstreamConnection* UpstreamPool::take_idle(bool check) {
    while (!idle_.empty()) {
        UpstreamConnection& connection = *idle_.back();
        idle_.pop_back();
        connection.readable_ |= check;
        if (!check || connection.quiet()) {
            count();
            return &connection;
        }
        remove(connection);
    }
    return nullptr;
}

UpstreamPool::Request UpstreamPool::acquire(UpstreamUser& user, Want want) {
    if (want != Want::fresh) {
        if (UpstreamConnection* connection = take_idle(want == Want::checked)) {
            lend(*connection, user);
            return Request::given;
        }
    }
    if (want == Want::fresh && connections_.size() >= options_.max_connections && !idle_.empty()) {
        idle_broke(*idle_.front());
    }
    if (connections_.size() < options_.max_connections) {
        open_for(user);
        return Request::given;
    }
    if (line_.size() >= options_.max_waiting) {
        return Request::full;
    }
    line_.push_back(&user);
    return Request::queued;
}

void UpstreamPool::open_for(UpstreamUser& user) {
    connections_.push_back(
        std::make_unique<UpstreamConnection>(*this, addresses_.get(), next_endpoint_++));
    UpstreamConnection& connection = *connections_.back();
    connection.index_ = connections_.size() - 1;
    connection.expect_progress_by(loop_.now().mono + options_.connect_timeout);
    connection.connect();
    count();
    lend(connection, user);
}

void UpstreamPool::lend(UpstreamConnection& connection, UpstreamUser& user) {
    connection.user_ = &user;
    connection.written_ = 0;
    ++connection.uses_;
    if (connection.uses_ > 1) {
        connection.expect_nothing();
    }
    user.upstream_given(connection);
}

void UpstreamPool::leave_line(UpstreamUser& user) {
    line_.erase(std::remove(line_.begin(), line_.end(), &user), line_.end());
}

void UpstreamPool::release(UpstreamConnection& connection, bool reusable) {
    connection.user_ = nullptr;
    const bool clean = reusable && connection.in_.empty() && connection.out_.empty() &&
                       !connection.write_broken_ && connection.quiet() &&
                       (idle_.size() < options_.max_idle || !line_.empty());
    if (!clean) {
        remove(connection);
        serve_line();
        return;
    }
    connection.in_.release();
    connection.out_.release();
    if (!line_.empty()) {
        UpstreamUser& user = *line_.front();
        line_.pop_front();
        lend(connection, user);
        return;
    }
    connection.expect_progress_by(loop_.now().mono + options_.idle_timeout);
    idle_.push_back(&connection);
    count();
}

void UpstreamPool::remove(UpstreamConnection& connection) {
    const std::size_t index = connection.index_;
    std::unique_ptr<UpstreamConnection> owned = std::move(connections_[index]);
    if (index + 1 != connections_.size()) {
        connections_[index] = std::move(connections_.back());
        connections_[index]->index_ = index;
    }
    connections_.pop_back();
    count();
    owned->timer_.disarm();
    owned->stream_.close();
    loop_.retire(std::move(owned));
}

void UpstreamPool::serve_line() {
    if (!line_.empty() && connections_.size() < options_.max_connections) {
        UpstreamUser& user = *line_.front();
        line_.pop_front();
        open_for(user);
    }
}

void UpstreamPool::idle_broke(UpstreamConnection& connection) {
    idle_.erase(std::remove(idle_.begin(), idle_.end(), &connection), idle_.end());
    remove(connection);
}

void UpstreamPool::count() {
    open_.store(connections_.size(), std::memory_order_relaxed);
    idle_count_.store(idle_.size(), std::memory_order_relaxed);
}

void UpstreamPool::close_idle() {
    while (!idle_.empty()) {
        idle_broke(*idle_.back());
    }
}

}  // namespace ration
