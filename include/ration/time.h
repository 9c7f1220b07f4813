// Time as ration uses it: two readings in strong types, always passed in.
//
// Units: nanoseconds, everywhere. Nothing in the library reads a clock except `SystemClock`;
// every decision takes the reading as an argument, so the same code runs in service, on a
// virtual clock and in a simulation.
//
//   ration::SystemClock clock;
//   ration::Now now = clock.now();          // one reading of both clocks
//   limiter->take("user-17", 1, now);
#pragma once

#include <chrono>
#include <cstdint>

namespace ration {

using Nanos = std::chrono::nanoseconds;

// Tag of the monotonic clock: never steps, has no date. Buckets and waits run on it.
struct MonoClock {
    using rep = std::int64_t;
    using period = std::nano;
    using duration = Nanos;
    using time_point = std::chrono::time_point<MonoClock, Nanos>;
    static constexpr bool is_steady = true;
};

using Mono = MonoClock::time_point;
// Nanoseconds since 1970-01-01T00:00:00Z. Windows, days and periods run on it.
using Wall = std::chrono::sys_time<Nanos>;

// One reading of both clocks, taken at the same moment.
struct Now {
    Mono mono{};
    Wall wall{};

    friend bool operator==(const Now&, const Now&) = default;
};

// The same moment, `by` later on both clocks.
[[nodiscard]] inline Now later(Now now, Nanos by) {
    return {now.mono + by, now.wall + by};
}

// Where readings come from. Thread rule: `now()` may be called from any thread.
class Clock {
public:
    virtual ~Clock() = default;
    [[nodiscard]] virtual Now now() const = 0;
};

// The machine's clocks. Inside one process the wall reading never steps back: after a backward
// step of the system time it stands still until the old reading is reached again, so no window
// or day is entered twice.
class SystemClock final : public Clock {
public:
    [[nodiscard]] Now now() const override;
};

}  // namespace ration
