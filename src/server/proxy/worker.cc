#include "server/proxy/worker.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

#include "server/proxy/client_connection.h"
#include "server/proxy/heads.h"
#include "server/proxy/listen_socket.h"
#include "server/proxy/transfer.h"

namespace ration {

namespace {

constexpr std::size_t max_free_transfers = 256;

void set_relaxed(std::atomic<std::uint64_t>& number, std::uint64_t value) {
    number.store(value, std::memory_order_relaxed);
}

}  // namespace

Worker::Worker(const GatewayCore& core, unsigned index, std::function<void()> on_drained)
    : core_(core),
      on_drained_(std::move(on_drained)),
      loop_(core.clock),
      mailbox_(std::make_shared<LoopMailbox>(loop_)),
      upstream_(loop_, blocks_, core.options.upstream, *core.addresses,
                core.upstream_tls ? &*core.upstream_tls : nullptr),
      ids_(core.options.request_id_seed, index) {}

Worker::~Worker() {
    mailbox_->close();
    cut();
}

void Worker::cut() {
    cutting_ = true;  // the loop sends nothing any more
    while (!connections_.empty()) {
        connections_.back()->abandon();
    }
}

absl::Status Worker::open() {
    if (absl::Status status = loop_.open(); !status.ok()) {
        return status;
    }
    if (options().redis == nullptr) {
        return absl::OkStatus();
    }
    counters_ = std::make_unique<RedisLink>(loop_, options().redis);
    told_ = std::make_unique<ToldCounters>(*counters_);
    return counters_->open();
}

absl::Status Worker::add_listener(net::Fd fd, std::size_t listener) {
    listeners_.push_back(std::make_unique<ListenSocket>(*this, std::move(fd), listener));
    return loop_.add_listener(listeners_.back()->fd(), *listeners_.back());
}

void Worker::accepted(net::Fd fd, const net::Endpoint& peer, std::size_t listener) {
    set_relaxed(accepted_, accepted_.load(std::memory_order_relaxed) + 1);
    const ListenerTls* tls = core_.listener_tls[listener].get();
    if (connections_.size() >= options().max_connections) {
        refuse_connection(std::move(fd), tls != nullptr);
        return;
    }
    if (peer.family() != AF_UNIX) {
        net::set_no_delay(fd.get());
    }
    net::SslPtr session = tls != nullptr ? tls->accept_session() : nullptr;
    if (tls != nullptr && session == nullptr) {
        return;  // out of memory: better no connection than a plain one
    }
    net::Stream stream(std::move(fd), std::move(session));
    auto connection = std::make_unique<ClientConnection>(*this, std::move(stream), peer);
    if (!loop_.add(connection->fd(), *connection).ok()) {
        return;
    }
    connection->set_index(connections_.size());
    connections_.push_back(std::move(connection));
    set_relaxed(open_, connections_.size());
    connections_.back()->start();
}

void Worker::refuse_connection(net::Fd fd, bool tls) {
    set_relaxed(refused_, refused_.load(std::memory_order_relaxed) + 1);
    if (tls) {
        return;
    }
    std::array<char, 32> id;
    write_request_id(id);
    const Answer answer = Engine::failure(*engine().rules()->policy, BuiltIn::unavailable,
                                          {id.data(), id.size()}, "too many connections");
    net::Buffer out(blocks_);
    write_own_answer(out, {.answer = answer,
                           .server_name = options().server_name,
                           .date = date(),
                           .keep_alive = false});
    net::Stream stream(std::move(fd));
    // A fresh socket's buffer has room for this; if it had not, closing says as much.
    [[maybe_unused]] const net::IoResult sent = stream.write(out.data());
    stream.finish_writing();
}

void Worker::closed(ClientConnection& connection) {
    const std::size_t index = connection.index();
    std::unique_ptr<ClientConnection> owned = std::move(connections_[index]);
    if (index + 1 != connections_.size()) {
        connections_[index] = std::move(connections_.back());
        connections_[index]->set_index(index);
    }
    connections_.pop_back();
    loop_.retire(std::move(owned));
    set_relaxed(open_, connections_.size());
    check_drained();
}

std::unique_ptr<Transfer> Worker::take_transfer() {
    if (free_transfers_.empty()) {
        return std::make_unique<Transfer>(*this);
    }
    std::unique_ptr<Transfer> transfer = std::move(free_transfers_.back());
    free_transfers_.pop_back();
    return transfer;
}

void Worker::give_back(std::unique_ptr<Transfer> transfer) {
    if (free_transfers_.size() < max_free_transfers) {
        free_transfers_.push_back(std::move(transfer));
    }
}

void Worker::start_drain() {
    loop_.post([this] { drain_now(); });
}

void Worker::drain_now() {
    if (draining_) {
        return;
    }
    draining_ = true;
    for (const auto& listener : listeners_) {
        listener->on_ready(0);  // who is in the queue already is served
        loop_.forget(*listener);
    }
    listeners_.clear();
    std::vector<ClientConnection*> all;
    all.reserve(connections_.size());
    for (const auto& connection : connections_) {
        all.push_back(connection.get());
    }
    for (ClientConnection* connection : all) {
        connection->drain();
    }
    upstream_.close_idle();
    check_drained();
}

void Worker::check_drained() {
    if (!draining_ || !connections_.empty() || drained_.load(std::memory_order_relaxed)) {
        return;
    }
    if (counters_ != nullptr && counters_->busy()) {
        loop_.post([this] { check_drained(); });  // slots that are given back; a deadline at most
    } else {
        drained_.store(true, std::memory_order_release);
        on_drained_();
    }
}

void Worker::add_to(GatewayStats& stats) const {
    stats.client_connections += open_.load(std::memory_order_relaxed);
    stats.upstream_connections += upstream_.open();
    stats.upstream_idle += upstream_.idle();
    stats.accepted += accepted_.load(std::memory_order_relaxed);
    stats.refused_connections += refused_.load(std::memory_order_relaxed);
}

}  // namespace ration
