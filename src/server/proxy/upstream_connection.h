// One connection to the upstream, owned by the pool, lent to one request at a time.
//
// It moves bytes and knows when they stopped moving; what they mean is the borrower's matter. Every
// change is told by `UpstreamUser::upstream_changed`. Thread rule: the worker's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "net/addresses.h"
#include "net/buffer.h"
#include "net/loop.h"
#include "net/stream.h"

namespace ration {

class UpstreamConnection;
class UpstreamPool;

// Who borrows a connection.
class UpstreamUser {
public:
    virtual ~UpstreamUser() = default;
    // The connection asked for is there (perhaps still connecting).
    virtual void upstream_given(UpstreamConnection& connection) = 0;
    // It connected, failed, timed out, can be read or can be written.
    virtual void upstream_changed() = 0;
};

class UpstreamConnection final : public net::Watch {
public:
    enum class State : std::uint8_t { connecting, handshake, ready, failed };
    enum class Trouble : std::uint8_t { none, refused, timed_out, broken };

    UpstreamConnection(UpstreamPool& pool, net::Endpoints endpoints, std::size_t first_endpoint);

    void connect();
    void on_ready(std::uint32_t events) override;

    [[nodiscard]] State state() const { return state_; }
    [[nodiscard]] Trouble trouble() const { return trouble_; }
    [[nodiscard]] const std::string& detail() const { return detail_; }
    [[nodiscard]] bool reused() const { return uses_ > 1; }
    [[nodiscard]] bool ended() const { return ended_; }  // the upstream sends nothing more
    [[nodiscard]] std::uint64_t written() const { return written_; }  // for this borrower

    net::Buffer& in() { return in_; }
    net::Buffer& out() { return out_; }

    // Sends what is in `out`; true when some of it went. A broken write is remembered, not told:
    // the answer may already be on its way in.
    bool flush();
    // Reads once, at most about `want` bytes; true when something came (or the end did).
    bool fill(std::size_t want);

    // The timeout of what is waited for now; it fires as Trouble::timed_out.
    void expect_progress_by(Mono deadline);
    void expect_nothing() { timer_.disarm(); }
    [[nodiscard]] bool expects_progress() const { return timer_.armed(); }

private:
    friend class UpstreamPool;
    static void on_timeout(void* self);
    void connected();
    void connect_failed(std::string detail);
    void go_on_with_handshake();
    void fail(Trouble trouble, std::string detail);
    [[nodiscard]] bool quiet();

    UpstreamPool& pool_;
    net::Endpoints endpoints_;
    std::size_t endpoint_;
    std::size_t attempts_ = 0;
    net::Stream stream_;
    net::Buffer in_;
    net::Buffer out_;
    net::Timer timer_;
    UpstreamUser* user_ = nullptr;
    State state_ = State::connecting;
    Trouble trouble_ = Trouble::none;
    std::string detail_;
    bool readable_ = false;
    bool writable_ = false;
    bool ended_ = false;
    bool hangup_ = false;
    bool write_broken_ = false;
    std::uint64_t written_ = 0;
    std::uint64_t uses_ = 0;
    std::size_t index_ = 0;  // in the pool
};

}  // namespace ration
