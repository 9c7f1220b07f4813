// The upstream connections of one I/O thread: kept alive, bounded, lent out one request each.
//
// Bounds: `max_connections` open, `max_idle` kept, `max_waiting` requests in line for one. A
// connection that the upstream closes while idle leaves the pool at once, so a stale one is only
// met when the close and the request cross. Thread rule: the worker's thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "net/tls.h"
#include "server/gateway.h"
#include "server/proxy/upstream_connection.h"

namespace ration {

class UpstreamPool {
public:
    UpstreamPool(net::Loop& loop, net::BlockPool& blocks, const UpstreamOptions& options,
                 const net::Addresses& addresses, const net::TlsContext* tls);
    ~UpstreamPool();

    enum class Want : std::uint8_t {
        any,
        checked,  // an idle one is looked at once more: for what cannot be sent twice
        fresh,    // not one that was used before
    };
    enum class Request : std::uint8_t { given, queued, full };
    // When given, `upstream_given` was called already.
    Request acquire(UpstreamUser& user, Want want);
    // The user does not want one any more (it was queued).
    void leave_line(UpstreamUser& user);
    // `reusable`: the answer was complete and nothing is left over.
    void release(UpstreamConnection& connection, bool reusable);

    // From any thread.
    [[nodiscard]] std::uint64_t open() const { return open_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t idle() const { return idle_count_.load(std::memory_order_relaxed); }
    void close_idle();

    net::Loop& loop() { return loop_; }
    net::BlockPool& blocks() { return blocks_; }
    // False when no TLS session can be made for the upstream's name.
    [[nodiscard]] bool make_stream(net::Fd fd, net::Stream& stream) const;
    void idle_broke(UpstreamConnection& connection);

private:
    UpstreamConnection* take_idle(bool check);
    void open_for(UpstreamUser& user);
    void lend(UpstreamConnection& connection, UpstreamUser& user);
    void remove(UpstreamConnection& connection);
    void serve_line();
    void count();

    net::Loop& loop_;
    net::BlockPool& blocks_;
    const UpstreamOptions& options_;
    const net::Addresses& addresses_;
    const net::TlsContext* tls_;
    std::vector<std::unique_ptr<UpstreamConnection>> connections_;
    std::vector<UpstreamConnection*> idle_;  // latest last
    std::deque<UpstreamUser*> line_;
    std::size_t next_endpoint_ = 0;
    std::atomic<std::uint64_t> open_{0};
    std::atomic<std::uint64_t> idle_count_{0};
};

}  // namespace ration
