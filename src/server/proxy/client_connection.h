// A client's connection: requests one after the other, each answered before the next is begun.
//
// It reads heads, hands a good one to a Transfer, and sends what gathers in `out`. Everything runs
// in `drive`, which makes all the progress that is possible and returns. Pipelined requests wait in
// `in` (one buffer) or in the kernel. Thread rule: the worker's thread. Ownership: the worker's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "net/address.h"
#include "net/buffer.h"
#include "net/loop.h"
#include "net/stream.h"
#include "server/http/head_parser.h"
#include "server/proxy/heads.h"

namespace ration {

class Transfer;
class Worker;

// The rest of a refused request that is read away so that the connection can be used again.
inline constexpr std::uint64_t max_discarded_body = 64 * 1024;
// How long, and how much, a client is listened to after the last answer of its connection.
inline constexpr Nanos linger_time = std::chrono::seconds(5);
inline constexpr std::uint64_t max_lingered_bytes = 1 << 20;
inline constexpr int max_rounds_per_event = 64;  // then others have a turn

class ClientConnection final : public net::Watch {
public:
    ClientConnection(Worker& worker, net::Stream stream, const net::Endpoint& peer);
    ~ClientConnection() override;

    void start();
    void on_ready(std::uint32_t events) override;
    // Something changed for the running request: go on now, or soon when already at it.
    void wake();
    // The gateway stops: idle connections close, busy ones after their answer.
    void drain();
    // Closes at once, whatever runs.
    void abandon();

    net::Buffer& in() { return in_; }
    net::Buffer& out() { return out_; }
    [[nodiscard]] const ClientFacts& facts() const { return facts_; }
    // The client has left; what is written goes nowhere.
    [[nodiscard]] bool orphaned() const { return phase_ == Phase::orphan; }
    [[nodiscard]] int fd() const { return stream_.fd(); }
    [[nodiscard]] std::size_t index() const { return index_; }
    void set_index(std::size_t index) { index_ = index; }

private:
    enum class Phase : std::uint8_t {
        handshake,    // TLS
        head,         // between requests, or in the middle of a head
        first_chunk,  // a chunked body's first line is read before anything is asked of anybody
        relay,        // a transfer runs
        discard,      // the rest of a refused request's body
        orphan,       // the client left, its attempt goes on
        linger,       // the last answer is out; the client may still be sending
        closed,
    };
    enum class Wait : std::uint8_t { none, handshake, idle, head, body, linger };

    static void on_read_timeout(void* self);
    static void on_write_timeout(void* self);

    void drive();
    void step();
    void step_handshake();
    void read_heads();
    bool skip_empty_lines();
    void take_request(std::size_t head_bytes);
    void admit_request();
    void read_first_chunk();
    void relay();
    void finish_request();
    void discard();
    void linger();

    void refuse_large_head();
    void refuse_malformed(BuiltIn which, std::string_view reason);
    void release_transfer();
    void close_after_answer(bool client_may_be_sending);

    [[nodiscard]] bool wants_input() const;
    bool read_input();
    void flush();
    void update_timers();
    void set_wait(Wait wait, bool refresh);
    void close();
    void gone();
    void carry_on();

    Worker& worker_;
    net::Stream stream_;
    net::Buffer in_;
    net::Buffer out_;
    net::Timer read_timer_;
    net::Timer write_timer_;
    ClientFacts facts_;
    std::string address_text_;
    http::HeadScanner scanner_;
    std::unique_ptr<Transfer> transfer_;
    Phase phase_ = Phase::head;
    Wait wait_ = Wait::none;
    bool driving_ = false;
    bool again_ = false;
    bool readable_ = false;
    bool writable_ = true;
    bool hangup_ = false;  // the other side said that it sends no more, or broke
    bool eof_ = false;     // and all it sent is read
    bool read_moved_ = false;
    bool write_moved_ = false;
    bool finished_writing_ = false;
    bool quiet_ = false;  // lingering: nothing is known to be unread
    std::size_t empty_lines_ = 0;
    std::uint64_t discarded_ = 0;
    std::size_t index_ = 0;
};

}  // namespace ration
