// One connection to Redis on an event loop: connects, shakes hands, moves bytes both ways.
//
// What the bytes mean is its user's matter. Thread rule: the loop's thread. Ownership: the user's;
// a connection that broke is handed to `Loop::retire`, so it may be told from its own callbacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "counters/redis/store.h"
#include "net/loop.h"
#include "net/stream.h"

namespace ration {

class RedisConnection final : public net::Watch {
public:
    class User {
    public:
        virtual ~User() = default;
        virtual void connected() = 0;
        // Returns how many of the bytes it has dealt with; the rest comes again with more.
        virtual std::size_t received(std::string_view bytes) = 0;
        // Told once, whatever ended it.
        virtual void broke(std::string detail) = 0;
    };

    RedisConnection(net::Loop& loop, RedisStore& store, User& user)
        : loop_(loop), store_(store), user_(user) {}
    ~RedisConnection() override;

    // The reason when it cannot even begin.
    [[nodiscard]] absl::Status start(const net::Endpoint& to);
    void on_ready(std::uint32_t events) override;

    // Bytes go out when the round's events are done, those of many calls together.
    void send(std::string_view bytes);
    // Hears and says nothing more.
    void close();

private:
    void connect_done();
    void shake_hands();
    void flush();
    void read();
    void take(std::size_t bytes);
    void fail(std::string detail);

    enum class State : std::uint8_t { connecting, handshake, open, closed };
    net::Loop& loop_;
    RedisStore& store_;
    User& user_;
    net::Stream stream_;
    State state_ = State::connecting;
    bool readable_ = false;
    bool writable_ = false;
    bool hangup_ = false;
    bool flush_due_ = false;
    std::string out_;
    std::size_t out_at_ = 0;  // sent so far
    std::string in_;
    std::size_t in_end_ = 0;  // bytes of `in_` that are filled
};

}  // namespace ration
