// Judges the whole from outside, knowing nothing of the ledger's inside: what clients asked and
// heard, what was sent to the upstream, and what the upstream did.
//
//  - at most one attempt of a key runs; after a 2xx that was written down none is sent while it is
//    kept; after a doubt one is sent again only with the key and only where the route forwards
//  - an upstream that knows its keys does one thing for a key; another one does at most one more
//    for each doubt before it
//  - a 2xx that a client has heard is replayed byte for byte while it is kept
//  - what was done stays within every ceiling of its day and period
//  - each refusal carries the fields that its kind promises and no number of the ceiling
//
// A *place* is one reservation, by the order of the reservations; a second try stands on the place
// of the first. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "limits/calendar.h"
#include "ration/ledger.h"
#include "sim/journal.h"
#include "sim/upstream.h"

namespace ration::sim {

inline constexpr Nanos keep_keys = std::chrono::hours(24);

// One request as its client means it.
struct Asked {
    std::string method = "POST";
    std::string path = "/v1/bookings";
    std::string body;
    std::string key;  // empty: none
    std::string credential;
    std::string workspace;
    std::string address;

    [[nodiscard]] std::string identity() const;  // empty: no key
    [[nodiscard]] bool strict() const { return path == "/v1/strict"; }
    [[nodiscard]] bool probed() const { return path == "/v1/probed"; }
};

// What the client got.
struct Heard {
    int status = 0;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;

    [[nodiscard]] const std::string* field(std::string_view name) const;
};

struct Place {
    struct Window {
        std::string key;
        std::uint64_t at_most = 0;
        CalendarWindow window;
    };
    std::string identity;
    AttemptId attempt = 0;
    Wall started{};
    std::vector<Window> windows;
    unsigned sends = 0;
    unsigned pending = 0;  // effects that are still to come
    bool strict = false;
    bool calendar = false;
    bool running = false;
    bool second_try = false;
    bool doubted = false;  // some try of it ended unknown: it may stay charged
    bool agreed = false;   // the upstream said 2xx: for an effect, or for one that it knew already
    bool effect = false;
};

class Judge {
public:
    struct Rules {
        std::uint64_t per_day = 0;
        std::uint64_t per_period = 0;
        absl::TimeZone zone;
        BillingAnchor anchor;
    };
    Judge(Journal& journal, const Upstream& upstream, Rules rules)
        : journal_(journal), upstream_(upstream), rules_(std::move(rules)) {}

    // ---- at the instant of the ledger's commit ----
    // What it said to a reservation; the place that an attempt stands on, else nullopt.
    std::optional<std::size_t> verdict(const Asked& asked, const Reserve& reserve,
                                       const Reserved& reserved, Wall now);
    // How the attempt on that place ended, and whether the ledger has that in writing.
    void ended(std::size_t place, SettleKind kind, bool in_writing);
    // The record of a 2xx that is in writing; no body: it was too large.
    void kept(std::size_t place, std::optional<std::string> body, Wall now);
    void operator_settled(AttemptId attempt, bool was_written, Wall now);
    // Nobody knows whether that commit happened: the waiter left, or the power went.
    void unsure(const Asked& asked, const Reserve& reserve, Wall now);
    void left(const Asked& asked, const Reserve& reserve, Wall now);  // the waiter
    void unsure(std::size_t place);
    void unsure(AttemptId attempt);
    // The process died: what ran is in doubt.
    void died();
    // Listed as in doubt by the next process.
    void found(const DoubtfulAttempt& doubt);

    // ---- around the upstream ----
    void sending(std::size_t place, bool will_act);
    void acted(std::size_t place);
    [[nodiscard]] bool is_pending(std::size_t place) const { return places_[place].pending > 0; }
    [[nodiscard]] const Place* place_of(AttemptId attempt) const;

    // What a client heard; `verdict` is the ledger's where it was asked and answered, `wait` the
    // time until the window of the ceiling that refused is over.
    struct Background {
        std::optional<ReserveVerdict> verdict;
        std::optional<Nanos> wait;
        std::optional<std::size_t> place;
    };
    void heard(const Heard& heard, const Background& background);
    [[nodiscard]] std::uint64_t second_tries() const { return second_tries_; }
    void quota_drifted() { quota_drift_ = true; }

    // Bounds of what the ledger may count for a window when nothing is in flight.
    struct Bounds {
        std::uint64_t least = 0;
        std::uint64_t most = 0;
    };
    [[nodiscard]] Bounds bounds(std::string_view key, const CalendarWindow& window) const;
    [[nodiscard]] bool quota_drift() const { return quota_drift_; }

private:
    // What is known of one key while its record lives.
    struct KeyLife {
        enum class State { running, doubt, done } state = State::running;
        std::string body;
        std::string path;
        Wall until{};
        std::optional<std::string> answer;  // done: nullopt when it was too large
        bool unsure = false;                // its record may be in another state, or not be
        Wall queued_until{};                // so long a question whose waiter left may still be put
    };
    [[nodiscard]] KeyLife* life(const std::string& identity, Wall now);
    void forget(const std::string& identity);
    void judge_key(const Asked& asked, const KeyLife& life, const Reserved& reserved);
    void adopt(const Asked& asked, KeyLife& life, const Reserved& reserved);
    std::size_t add_place(const Asked& asked, const Reserve& reserve, Wall now);
    void count_effect(const Place& place);
    void require(bool good, std::string_view what) {
        if (!good) {
            journal_.violated(std::string(what));
        }
    }

    Journal& journal_;
    const Upstream& upstream_;
    Rules rules_;
    std::vector<Place> places_;
    std::map<AttemptId, std::size_t> place_of_;
    std::map<std::string, KeyLife> lives_;
    std::map<std::pair<std::string, Wall>, std::uint64_t> done_;  // places, by ceiling and window
    std::uint64_t second_tries_ = 0;
    bool quota_drift_ = false;
};

}  // namespace ration::sim
