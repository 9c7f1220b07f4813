// One I/O thread of the gateway: its loop, listeners, client connections and upstream pool.
//
// Nothing is shared between workers but what `GatewayCore` holds. Thread rule: `start_drain`,
// `stop` and `stats` from any thread; the rest on the worker's own. Ownership: the core outlives
// it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "net/address.h"
#include "net/tls.h"
#include "server/gateway.h"
#include "server/http/date.h"
#include "server/proxy/ledger_call.h"
#include "server/proxy/request_id.h"
#include "server/proxy/step_runner.h"
#include "server/proxy/told_counters.h"
#include "server/proxy/upstream_pool.h"

namespace ration {

class ClientConnection;
class ListenSocket;
class Transfer;

// A listener's certificate, which a reload may renew. Sessions keep the one they began with.
class ListenerTls {
public:
    explicit ListenerTls(net::TlsContext context) : context_(std::move(context)) {}

    [[nodiscard]] net::SslPtr accept_session() const {
        const std::lock_guard lock(mutex_);
        return context_.accept_session();
    }
    void renew(net::TlsContext context) {
        const std::lock_guard lock(mutex_);
        std::swap(context_, context);
    }

private:
    mutable std::mutex mutex_;
    net::TlsContext context_;
};

// What every worker needs.
struct GatewayCore {
    GatewayOptions options;
    Engine& engine;
    const Clock& clock;
    RequestObserver& observer;
    std::vector<std::unique_ptr<ListenerTls>> listener_tls;  // by listener; null: plain
    std::optional<net::TlsContext> upstream_tls;
    std::unique_ptr<net::Addresses> addresses;
    std::unique_ptr<StepRunner> steps;  // with counters elsewhere
};

class Worker {
public:
    Worker(const GatewayCore& core, unsigned index, std::function<void()> on_drained);
    ~Worker();
    [[nodiscard]] absl::Status open();
    // `listener` is the index into the options.
    [[nodiscard]] absl::Status add_listener(net::Fd fd, std::size_t listener);

    void run() { loop_.run(); }
    void stop() { loop_.stop(); }
    void start_drain();
    [[nodiscard]] bool drained() const { return drained_.load(std::memory_order_acquire); }
    void add_to(GatewayStats& stats) const;
    // Ends every connection; only when the loop does not run.
    void cut();

    // For connections of this worker.
    [[nodiscard]] const GatewayCore& core() const { return core_; }
    [[nodiscard]] const GatewayOptions& options() const { return core_.options; }
    [[nodiscard]] Engine& engine() const { return core_.engine; }
    net::Loop& loop() { return loop_; }
    net::BlockPool& blocks() { return blocks_; }
    UpstreamPool& upstream() { return upstream_; }
    [[nodiscard]] bool draining() const { return draining_; }
    [[nodiscard]] std::string_view date() { return dates_.text(loop_.now().wall); }
    void write_request_id(std::array<char, 32>& id) { ids_.write(id); }
    [[nodiscard]] const std::shared_ptr<LoopMailbox>& mailbox() const { return mailbox_; }
    // Null: the counters are the engine's own, and answer at once.
    [[nodiscard]] RedisLink* counters() const { return counters_.get(); }
    // What settles requests; null: the engine's counters do.
    [[nodiscard]] Counters* told_counters() const { return cutting_ ? nullptr : told_.get(); }

    std::unique_ptr<Transfer> take_transfer();
    void give_back(std::unique_ptr<Transfer> transfer);

    void accepted(net::Fd fd, const net::Endpoint& peer, std::size_t listener);
    void closed(ClientConnection& connection);

private:
    void refuse_connection(net::Fd fd, bool tls);
    void drain_now();
    void check_drained();

    const GatewayCore& core_;
    std::function<void()> on_drained_;
    net::BlockPool blocks_;  // outlives every buffer, also those the loop still holds
    net::Loop loop_;
    std::shared_ptr<LoopMailbox> mailbox_;
    std::unique_ptr<RedisLink> counters_;
    std::unique_ptr<ToldCounters> told_;
    UpstreamPool upstream_;
    RequestIds ids_;
    http::DateCache dates_;
    std::vector<std::unique_ptr<ListenSocket>> listeners_;
    std::vector<std::unique_ptr<ClientConnection>> connections_;
    std::vector<std::unique_ptr<Transfer>> free_transfers_;
    bool draining_ = false;
    bool cutting_ = false;
    std::atomic<bool> drained_{false};

    std::atomic<std::uint64_t> open_{0};
    std::atomic<std::uint64_t> accepted_{0};
    std::atomic<std::uint64_t> refused_{0};
};

}  // namespace ration
