// When each call of one client may be sent, and what comes of it: the whole client without sockets.
//
// The owner of the sockets begins calls, asks `advance` what is due, does it, and reports how each
// attempt ended. Pure: the time is an argument, randomness is injected. Thread rule: one lock
// outside. Ownership: a Call belongs to whoever began it and must live until its `end` step.
//
//   dispatcher.begin(call, now);
//   dispatcher.advance(now, steps);          // {send, call}
//   dispatcher.ended(call, outcome, now);    // the attempt has its answer
//   dispatcher.advance(now, steps);          // {wait, call, ...} or {end, call, reason}
//   sleep_until(*dispatcher.wake_at());
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "client/decide.h"
#include "client/gate_book.h"
#include "client/origin.h"
#include "client/pacer.h"
#include "ration/client.h"

namespace ration::client {

class Call;

// What has to be done for a call, in this order.
struct Step {
    enum class What : std::uint8_t { send, wait, end } what = What::send;
    Call* call = nullptr;
    Nanos time{0};  // send: what the attempt may take
    WaitSource source = WaitSource::backoff;
    std::optional<Nanos> wait = std::nullopt;
    std::string_view reason = {};  // of the wait: "429"; good until the call's next step
    StopReason stop = StopReason::success;
    std::optional<Wall> retry_at = std::nullopt;
};
using Steps = std::vector<Step>;

// One logical call. Set by its owner before `begin`: the fields at the top.
class Call {
public:
    std::string method;
    std::string origin, path;
    std::string credential;
    std::string bucket;
    std::string key;  // idempotency key; empty: none
    RetryPolicy const* policy = nullptr;
    BodyKind body = BodyKind::none;
    void* owner = nullptr;

    [[nodiscard]] unsigned attempts() const { return attempts_; }
    [[nodiscard]] Nanos waited() const { return waited_; }
    [[nodiscard]] const std::string& error_type() const { return error_type_; }

private:
    friend class Dispatcher;
    enum class Phase : std::uint8_t { pace, gates, in_flight, sending, backoff, over };
    struct Place {
        Gate* gate = nullptr;  // nullptr: not taken
        GateTicket ticket;
    };
    using Timers = std::multimap<Mono, Call*>;

    Phase phase_ = Phase::pace;
    std::shared_ptr<Origin> origin_;
    Place narrow_;  // at the gate of its operation
    Place main_;    // at the gate of its bucket
    bool reserved_ = false;
    bool waited_extra_ = false;
    bool ready_ = false;
    unsigned attempts_ = 0;
    Mono begun_{};
    Mono paced_at_{};
    std::optional<Timers::iterator> timer_;
    std::optional<WaitSource> waiting_;  // as announced
    std::optional<Mono> waiting_until_;
    Mono waiting_since_{};
    Nanos waited_{0};
    std::string error_type_;
    std::string wait_reason_;
};

class Dispatcher {
public:
    // `options.policy` is already validated; `random` must outlive this.
    Dispatcher(const ClientOptions& options, RandomSource& random);

    void begin(Call& call, Now now);
    // Appends what is due at `now`.
    void advance(Now now, Steps& steps);
    // When `advance` has something to do again without anything else happening.
    [[nodiscard]] std::optional<Mono> wake_at() const;
    // Of a call that was cancelled meanwhile nothing is learnt, and it stays over.
    void ended(Call& call, const Outcome& outcome, Now now);
    // In whatever phase; the transfer of a call that is being sent is the owner's to end.
    void cancel(Call& call, Now now);
    [[nodiscard]] ClientCounters counters(Now now) const;

private:
    void ready(Call& call);
    void run(Call& call, Now now, Steps& steps);
    [[nodiscard]] bool pass_pace(Call& call, Now now, Steps& steps);
    [[nodiscard]] bool pass_gates(Call& call, Now now, Steps& steps);
    [[nodiscard]] static std::string narrow_key(const Call& call);
    [[nodiscard]] Gate* narrow_gate(const Call& call);
    [[nodiscard]] Gate* main_gate(const Call& call, Now now);
    [[nodiscard]] bool pass_gate(Call& call, Call::Place& place, Now now, Steps& steps);
    void leave_line(Call& call);
    [[nodiscard]] bool pass_in_flight(Call& call, Now now, Steps& steps);
    [[nodiscard]] bool pass_local_refusals(Call& call, Now now, Steps& steps);
    void send(Call& call, Now now, Steps& steps);

    struct Hold {
        Step told;                       // who it waits for, and why
        std::optional<Mono> until = {};  // left out: until it is woken
    };
    void hold(Call& call, const Hold& wait, Now now, Steps* steps);
    void stop_waiting(Call& call, Now now);
    struct Refused {
        StopReason reason;
        std::optional<Wall> retry_at = {};
    };
    void refuse(Call& call, const Refused& why, Now now, Steps& steps);
    void finish(Call& call, StopReason reason, std::optional<Wall> retry_at, Steps& steps);
    void give_back(Call& call, Now now);
    void give_back(Call::Place& place, Now now);
    [[nodiscard]] bool late(const Call& call, Mono at) const;

    void learn(Call& call, const Outcome& outcome, const Told& told, Now now);
    void learn_health(Call& call, const Outcome& outcome, Now now);
    void learn_doubt(const Call& call, const Outcome& outcome);
    void put_in_doubt(const Call& call);
    [[nodiscard]] std::deque<std::string>::iterator doubt(const Call& call);
    void wake(Woken& woken);
    void wake_next(const Origin& origin);

    [[nodiscard]] std::shared_ptr<Origin> origin(const std::string& name);

    const ClientOptions& options_;
    RandomSource& random_;
    GateBook gates_;
    GateBook narrow_gates_;
    std::string gate_key_;  // for looking up: its memory is kept
    std::optional<Pacer> pacer_;
    struct NamedOrigin {
        std::string name;
        std::shared_ptr<Origin> origin;
    };
    std::list<NamedOrigin> origins_;  // the longest unused first
    std::unordered_map<std::string_view, std::list<NamedOrigin>::iterator> origin_index_;
    std::deque<std::string> doubts_;  // keys of attempts whose outcome is unknown
    std::deque<Call*> ready_;
    Call::Timers timers_;
    Steps early_;  // made outside `advance`, for its next turn
    ClientCounters counters_;
};

inline constexpr std::size_t max_doubts = 1024;

}  // namespace ration::client
