// The hold-off that all calls with one origin, credential and bucket share.
//
// An answer that says "not before then" closes the gate until then; the moment only ever moves
// later. When it opens, one call goes first as a probe, and the others follow spread out once the
// probe was let in. While the server tells how many requests remain, no more than that many (and at
// least one) are in flight. With pacing, calls are also spaced evenly over the time that answers
// name. Pure: the time is an argument; who waits is told through `Woken` when to ask again.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "client/decide.h"
#include "client/pacer.h"
#include "ration/retry_policy.h"
#include "ration/time.h"

namespace ration::client {

// One call's place at one gate.
struct GateTicket {
    void* owner = nullptr;      // whoever waits
    Nanos max_wait{0};          // the longest that it may be held
    bool waited_extra = false;  // it comes from a wait that the server asked for
    Mono not_before = Mono::min();
    bool queued = false;
    bool granted = false;
};

// Tickets whose owners should ask again.
using Woken = std::vector<GateTicket*>;

// What an answer teaches a gate.
struct Lesson {
    const Told* told = nullptr;  // nullptr: nothing was learnt
    bool refused = false;
};

class Gate {
public:
    struct Asked {
        enum class What : std::uint8_t { go, wait, reject } what = What::go;
        std::optional<Mono> until;  // wait: nullopt until woken. reject: when it opens
    };

    // `policy` and `random` must outlive the gate.
    Gate(const RetryPolicy& policy, RandomSource& random, bool paced)
        : policy_(policy), random_(random), probe_needed_(paced), paced_(paced) {}

    // A grant holds until its owner asks; only then may it be sent.
    [[nodiscard]] Asked ask(GateTicket& ticket, Mono now, Woken& woken);
    // A ticket that waits no longer; one that was granted must go through `done`.
    void leave(GateTicket& ticket, Mono now, Woken& woken);
    // A granted call has its answer, or has failed.
    void done(GateTicket& ticket, const Lesson& lesson, Mono now, Woken& woken);
    // Closes it until `told_at`, opening `guard` later; never moves earlier.
    void close(Mono told_at, Nanos guard);

    // Nobody uses it and it holds nobody back: it may be forgotten.
    [[nodiscard]] bool idle(Mono now) const {
        return in_flight_ == 0 && queue_.empty() && now >= opens_at_ &&
               (!paced_ || now >= pace_.next());
    }
    [[nodiscard]] GateState state(Mono now) const;

private:
    struct Window {
        std::optional<Mono> reset_at;
        std::optional<Wall> reset_date;
    };

    [[nodiscard]] std::optional<Mono> advance(Mono now, const GateTicket* asking, Woken& woken);
    [[nodiscard]] std::optional<Mono> grant(Mono now, const GateTicket* asking, Woken& woken);
    [[nodiscard]] bool full() const;
    [[nodiscard]] bool holds_good(const GateTicket& ticket, Mono now) const;
    void line_up(GateTicket& ticket, Mono now);
    void take_back(GateTicket& ticket);
    void wake_first(Woken& woken) const;
    void learn(const Told& told, bool refused, Mono now);
    void learn_remaining(const ToldLimit& limit, Mono now);
    [[nodiscard]] bool overtaken(const Window& window, bool& same) const;
    void spread(Mono now);

    const RetryPolicy& policy_;
    RandomSource& random_;
    Mono told_at_ = Mono::min();   // the server's own moment
    Mono opens_at_ = Mono::min();  // with guard and random extra
    Nanos guard_{0};
    bool probe_needed_;
    const GateTicket* probe_ = nullptr;
    std::uint32_t in_flight_ = 0;
    std::optional<std::uint64_t> remaining_;  // as last told
    Window window_;                           // of `remaining_`
    std::deque<GateTicket*> queue_;           // in the order in which they go
    bool paced_;
    AnswerPace pace_;
};

}  // namespace ration::client
