// What a client knows of one origin: its retry budget and the optional parts (local refusal,
// circuit breaker, in-flight limit). All pure: the time is an argument.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>

#include "ration/client.h"
#include "ration/retry_policy.h"
#include "ration/time.h"

namespace ration::client {

// Retries are paid for by successes, so that an outage is not answered by a storm. Thousandths.
class Budget {
public:
    explicit Budget(const RetryPolicy& policy) : policy_(&policy), left_(policy.budget_capacity) {}

    // What a decision may count on: at least one retry for who has not retried for a while.
    [[nodiscard]] std::uint32_t tokens(Mono now) const;
    [[nodiscard]] std::uint32_t left() const { return left_; }
    void retry(Mono now);
    void success();

private:
    const RetryPolicy* policy_;
    std::uint32_t left_;
    std::optional<Mono> last_retry_;
};

// Counts over a sliding time, in slots, so that any length takes bounded room.
class SlotCounts {
public:
    struct Totals {
        std::uint64_t all = 0, good = 0;
    };
    explicit SlotCounts(Nanos length)
        : slot_length_(std::max<std::int64_t>(1, length.count() / slots)) {}

    void add(Mono now, std::uint64_t all, std::uint64_t good);
    [[nodiscard]] Totals totals(Mono now) const;

private:
    static constexpr std::int64_t slots = 20;
    struct Slot {
        std::int64_t number = -1;
        Totals totals;
    };
    [[nodiscard]] std::int64_t number_of(Mono now) const {
        return now.time_since_epoch() / slot_length_;
    }
    Nanos slot_length_;
    std::array<Slot, slots> ring_;
};

class Throttle {
public:
    explicit Throttle(const ThrottleOptions& options) : k_(options.k), counts_(options.window) {}

    [[nodiscard]] bool rejects(Mono now, RandomSource& random) const;
    void sent(Mono now) { counts_.add(now, 1, 0); }
    // A refusal for the caller's own rate is an answer of a healthy server.
    void answered(Mono now, bool healthy) { counts_.add(now, 0, healthy ? 1 : 0); }

private:
    std::uint32_t k_;
    SlotCounts counts_;
};

// Millionths of max(0, (requests - k * accepts) / (requests + 1)), rounded down.
[[nodiscard]] std::uint32_t reject_ppm(std::uint64_t requests, std::uint64_t accepts,
                                       std::uint32_t k);

class Breaker {
public:
    explicit Breaker(const BreakerOptions& options) : options_(options), counts_(options.window) {}

    // True when the call may be sent; a true after the pause makes that call the probe.
    [[nodiscard]] bool allows(Mono now);
    void outcome(Mono now, bool failed);
    // The probe ended without an outcome: its place is free again.
    void abandoned() { probing_ = false; }
    [[nodiscard]] std::optional<Mono> open_until() const { return open_until_; }

private:
    BreakerOptions options_;
    SlotCounts counts_;
    std::optional<Mono> open_until_;
    bool probing_ = false;
};

class InFlightLimit {
public:
    enum class Signal : std::uint8_t { nothing, ok, throttled };

    // Without options only the cap bounds it.
    explicit InFlightLimit(const std::optional<ConcurrencyOptions>& options)
        : options_(options.value_or(unbounded)), limit_(options_.initial) {}

    // How many requests can be on their way at once: more would wait where nobody asks a gate.
    void cap(std::uint32_t most) { cap_ = most; }

    // True: `who` may go. Else it waits, in the order of asking, and is told by `next`.
    [[nodiscard]] bool ask(void* who);
    void leave(void* who);
    void done(Mono now, Signal signal);
    // Who waits first while there is a place; nullptr: nobody.
    [[nodiscard]] void* next() const {
        return waiting_.empty() || full() ? nullptr : waiting_.front();
    }

    void window_ok(bool limit_was_reached);
    void throttled(Mono now);
    [[nodiscard]] std::uint32_t limit() const { return limit_; }

private:
    static constexpr std::uint32_t any = std::numeric_limits<std::uint32_t>::max();
    static constexpr ConcurrencyOptions unbounded = {.initial = any, .min = any, .max = any};

    [[nodiscard]] bool full() const { return in_flight_ >= std::min(limit_, cap_); }

    ConcurrencyOptions options_;
    std::uint32_t limit_;
    std::uint32_t cap_ = any;
    std::optional<Mono> last_cut_;
    std::uint32_t in_flight_ = 0;
    bool reached_ = false;
    std::uint32_t successes_ = 0;
    std::deque<void*> waiting_;
};

// One on each connection, but where HTTP/2 lets many share one.
[[nodiscard]] std::uint32_t most_in_flight(const ClientOptions& options, bool multiplexed);

struct Origin {
    Origin(const RetryPolicy& policy, const ClientOptions& options);

    Budget budget;
    std::optional<Throttle> throttle;
    std::optional<Breaker> breaker;
    InFlightLimit in_flight;
};

}  // namespace ration::client
