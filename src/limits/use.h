// The use of one limit by one key: one small value, and the steps it can take.
//
// Every function is pure: (numbers, use, cost, time) in, level and changed use out. A `Use` of all
// zeros is a key never seen. What the fields mean depends on the kind of limit:
//
//   kind             as_of                      used                      before
//   token_bucket     monotonic ns of `used`     whole tokens owed then    -
//   fixed_window     wall ns of window start    units in that window      -
//   sliding_counter  wall ns of window start    units in that window      units in the one before
//   concurrency      -                          units in flight           -
//
// A bucket that refills nothing has no use for a time: between -max_period and 0 its `as_of` is the
// part of a token that had been earned before, in -1 / max_period.count() tokens (`carry`).
//
// A sliding_window keeps one record per unit and has its own arithmetic (limits/log.h).
// Readings older than one already seen count as no time passed: they take and earn nothing. Waits
// are always told from the caller's own reading to the true instant.
//
//   Use use;
//   Level level = take(limit.entry(), use, 1, now);
#pragma once

#include <cstdint>
#include <optional>

#include "ration/limit.h"
#include "ration/time.h"

namespace ration {

struct Use {
    std::int64_t as_of = 0;
    std::uint32_t used = 0;
    std::uint32_t before = 0;

    friend bool operator==(const Use&, const Use&) = default;
};

// Takes `cost` if it fits. A refusal changes nothing, except that a limit counting attempts counts
// every one that could ever fit; a cost that can never fit takes nothing anywhere.
[[nodiscard]] Level take(const LimitRef::Entry& numbers, Use& use, std::uint32_t cost, Now now);

// Charges `cost` that is already a fact, past the capacity if need be; the verdict is `admitted`.
[[nodiscard]] Level force(const LimitRef::Entry& numbers, Use& use, std::uint32_t cost, Now now);

// The level as `take` would find it; `use` is the caller's copy and may be brought up to date.
[[nodiscard]] Level observe(const LimitRef::Entry& numbers, Use use, std::uint32_t cost, Now now);

struct GivenBack {
    std::uint32_t cost;
    std::optional<Now> taken;  // when; left out: not known
};
// Returns up to `cost` units; never lifts a level above capacity. A fixed window returns only what
// was taken in the window now running, when `taken` says when that was; a sliding counter lowers
// the window it was taken in.
[[nodiscard]] Level give_back(const LimitRef::Entry& numbers, Use& use, const GivenBack& units,
                              Now now);

// How long until this use equals never-seen; 0: it does now. int64 max: not by waiting.
[[nodiscard]] Nanos until_unused(const LimitRef::Entry& numbers, const Use& use, Now now);

// Whole units in use at `at`, rounded up.
[[nodiscard]] std::uint32_t units_in_use(const LimitRef::Entry& numbers, const Use& use, Now at);

// A use of `units`, all taken at `at`.
[[nodiscard]] Use use_of(const LimitRef::Entry& numbers, std::uint32_t units, Now at);

// The moment at which numbers that came into force at `since` take over a use last written at
// `written` (monotonic), as seen from `now`: not after `now`, and not before `written`.
[[nodiscard]] Now change_moment(Now now, Mono since, Mono written);

struct ChangedNumbers {
    const LimitRef::Entry& from;
    const LimitRef::Entry& to;
    Mono since;  // when `to` came into force
};
// Carries a use from old numbers into new ones: the use is first brought to the moment of the
// change under the old numbers. Within one kind nothing is lost and nothing won: a bucket owes to
// the fraction what it owed, a sliding counter has the same counts and as much of its window behind
// it, both rounded against the caller by less than one nanosecond; a fixed window's count moves to
// the window that holds the change. Into another kind go whole units, rounded up.
// Such a use may begin before the change, so `since` must not be before the last change known.
// In-flight counts (concurrency) neither become rates nor come from them: nothing is carried.
[[nodiscard]] Use carry(const ChangedNumbers& numbers, const Use& use, Now now);

}  // namespace ration
