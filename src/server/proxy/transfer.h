// One request on its way through: from a complete head to the last byte of its answer.
//
// It holds everything that belongs to the request (a copy of both heads, both body decoders, the
// engine's Exchange), borrows an upstream connection, and moves bytes between it and the client's
// buffers, never more than `stream_buffer_bytes` ahead of the slower side. Exactly one settlement
// (`Engine::finish`) and one report (`RequestObserver::on_request`) per request, whatever happens.
// Thread rule: the worker's thread. Reused: a worker keeps them for the next request.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "counters/redis/link.h"
#include "engine/charge.h"
#include "engine/engine.h"
#include "net/timer_wheel.h"
#include "server/http/body_decoder.h"
#include "server/http/head_parser.h"
#include "server/proxy/heads.h"
#include "server/proxy/ledger_call.h"
#include "server/proxy/upstream_pool.h"
#include "server/request_record.h"

namespace ration {

class ClientConnection;
class Worker;

inline constexpr int max_interim_answers = 32;  // 1xx of one request

class Transfer final : public UpstreamUser, private LedgerWaiter, private CounterWaiter {
public:
    explicit Transfer(Worker& worker);
    ~Transfer() override;

    // ---- the request ----
    // Belongs to `client` from now on; gets its id.
    void open(ClientConnection& client);
    // As `open`; copies and parses a complete head.
    [[nodiscard]] http::ParseProblem start(ClientConnection& client, std::string_view head_text);
    [[nodiscard]] const http::RequestHead& head() const { return head_; }
    http::BodyDecoder& request_body() { return request_body_; }
    [[nodiscard]] const http::BodyDecoder& request_body() const { return request_body_; }

    // Asks the engine; true when the request goes on to the upstream, else the answer is in `out`.
    [[nodiscard]] bool begin();
    // Answers a request that the engine must not see; the connection closes after it.
    void answer_malformed(BuiltIn which, std::string_view reason);

    // ---- the relay ----
    void forward();
    // Moves whatever can be moved.
    void advance();
    // The request's body cannot be read any more: broken framing, too large, too slow.
    void body_failed(BuiltIn which, std::string_view reason);
    void client_gone();

    // The client may leave, the request goes on: the ledger waits for its outcome, or the counters
    // are at work on it. A request whose body will never be whole has no outcome to wait for,
    // unless the upstream answered before.
    [[nodiscard]] bool must_finish() const;
    // Nothing has been done about it: the counters, the ledger or the upstream's line are in the
    // way, and the body waits with the client.
    [[nodiscard]] bool waits_its_turn() const {
        return stage_ == Stage::counting || stage_ == Stage::asking || in_line_;
    }

    [[nodiscard]] bool complete() const { return complete_; }  // the whole answer is in `out`
    [[nodiscard]] bool aborted() const { return aborted_; }    // it never will be: reset the client
    [[nodiscard]] bool keep_alive() const { return keep_alive_; }
    [[nodiscard]] bool wants_request_body() const;

    // Tells the observer, once.
    void report();
    // Ready for the next request; gives back what it holds.
    void reset();

    void upstream_given(UpstreamConnection& connection) override;
    void upstream_changed() override;

private:
    // What a request waits for, besides client and upstream.
    enum class Stage : std::uint8_t {
        plain,       // neither counters elsewhere nor the ledger have a part in what comes
        counting,    // counters elsewhere judge the limits
        striking,    // they count an attempt by its answer
        collecting,  // the request's body is read whole
        asking,      // a place is being reserved
        probing,     // the upstream is asked what became of the key
        found,       // what it knew of the key is being written down
        forwarding,  // the upstream has it, or gets it
        keeping,     // the answer is read, before its first byte goes to the client
        settling,    // the outcome is being written down
    };

    static void on_wait_timeout(void* self);

    // transfer_counters.cc
    [[nodiscard]] bool decide(Now now);
    [[nodiscard]] bool decided();
    [[nodiscard]] bool take_levels();
    void counters_answered() override;
    // What an attempt counts by, and what comes when it is counted.
    enum class Judged : std::uint8_t { own_answer, upstream_head };
    [[nodiscard]] bool count_attempt(int status, Judged judged);
    void attempt_counted(Stage before, Judged judged);

    // transfer_ledger.cc
    [[nodiscard]] bool begin_ledger();
    [[nodiscard]] bool ask_ledger();
    [[nodiscard]] bool reserve();
    void collect_body();
    void body_collected();
    void send_collected_body();
    void ledger_replied(const LedgerReply& reply) override;
    void take_verdict(const LedgerReply& reply);
    [[nodiscard]] std::shared_ptr<LedgerCall> new_call() const;
    void begin_probe();
    void probe_answered(bool whole);
    void forget_answer();
    void submit_settlement(const Settle& settle);
    [[nodiscard]] bool keeps_answer();
    void keep_piece(std::string_view content);
    void answer_kept(bool whole);
    void settle_answer(bool whole);
    void release_answer();
    void settled_too_late();
    void settle_open_attempt(Ending::Kind kind);
    void answer_decision();
    void start_answer();

    bool move();
    bool move_request_body();
    bool take_request_piece();
    void send_continue();
    bool move_response();
    bool read_response_head();
    void take_response_head();
    void take_final_head();
    void head_counted();
    bool take_response_piece();
    void upstream_ended();
    void response_done();
    [[nodiscard]] std::size_t wanted_bytes() const;

    [[nodiscard]] UpstreamPool::Want first_want() const;
    void acquire(UpstreamPool::Want want);
    [[nodiscard]] bool can_be_sent_twice() const;
    void write_forward_head();
    void upstream_failed();
    [[nodiscard]] bool try_again();
    void fail(BuiltIn which, Ending::Kind kind, std::string_view detail);
    void fail_upstream(std::string_view detail) {
        fail(BuiltIn::bad_gateway, Ending::Kind::lost, detail);
    }
    void put_answer(const Answer& answer);
    void settle(Ending::Kind kind);
    void abort(Ending::Kind kind, std::string_view detail);
    void drop_upstream(bool reusable);
    void update_timer(bool moved);
    // The answer is there, and waits for the ledger.
    [[nodiscard]] bool settling() const {
        return stage_ == Stage::settling || stage_ == Stage::found || stage_ == Stage::asking ||
               stage_ == Stage::striking;
    }
    [[nodiscard]] bool over() const { return complete_ || aborted_; }
    [[nodiscard]] bool body_can_be_discarded() const;
    [[nodiscard]] bool client_stays() const;
    [[nodiscard]] bool room_for_client() const;

    Worker& worker_;
    ClientConnection* client_ = nullptr;
    UpstreamConnection* upstream_ = nullptr;
    net::Timer wait_timer_;
    Exchange exchange_;
    std::array<char, 32> id_{};
    Now arrived_;

    std::string head_text_;
    http::RequestHead head_;
    http::BodyDecoder request_body_;
    std::string response_text_;
    http::ResponseHead response_;
    http::HeadScanner response_scanner_;
    http::BodyDecoder response_body_;
    BodyOut body_out_ = BodyOut::none;
    Stage stage_ = Stage::plain;
    std::unique_ptr<ChargeBatch> batch_;  // what counters elsewhere are asked
    std::shared_ptr<Durable> durable_;
    std::shared_ptr<LedgerCall> call_;  // not answered yet
    bool collected_ = false;            // the request's body is in `body_`
    bool undecided_ = false;            // it is read before the request is judged
    std::string body_;
    std::string kept_;             // of the answer's body
    std::string probe_;            // the target of the probe
    bool sent_any_ = false;        // the upstream may have seen something of the request
    bool answer_started_ = false;  // its head is in the client's buffer
    std::string replay_;           // what the stale connection did not take
    std::string detail_;

    bool begun_ = false;
    bool in_line_ = false;
    bool head_written_ = false;
    bool request_sent_ = false;  // wholly handed to the upstream connection
    bool continued_ = false;     // 100 was sent
    bool response_head_done_ = false;
    bool complete_ = false;
    bool aborted_ = false;
    bool keep_alive_ = false;
    bool retried_ = false;
    bool reported_ = false;
    int interim_ = 0;
    int status_ = 0;
    int upstream_status_ = 0;
    std::uint64_t own_body_bytes_ = 0;
    Nanos upstream_time_{0};
    Now asked_;
    RequestOutcome outcome_ = RequestOutcome::malformed;
};

}  // namespace ration
