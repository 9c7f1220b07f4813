// Both clocks, moved by hand, with wall steps as SystemClock would show them: a wall clock set back
// stands still until it has caught up with the readings given before. Pure; one thread.
#pragma once

#include <algorithm>
#include <chrono>

#include "ration/time.h"

namespace ration {

class SteppedClock {
public:
    explicit SteppedClock(Now start) : now_(start) {}

    [[nodiscard]] Now now() const { return now_; }

    // To a monotonic reading; an earlier one changes nothing.
    void move_to(Mono at) {
        const Nanos passed = std::max(at - now_.mono, Nanos(0));
        const Nanos caught_up = std::min(passed, behind_);
        behind_ -= caught_up;
        now_.mono += passed;
        now_.wall += passed - caught_up;
    }

    void step_wall(Nanos by) {
        const Nanos total = by - behind_;
        now_.wall += std::clamp(total, Nanos(0), latest - now_.wall);
        behind_ = std::max(-total, Nanos(0));
    }

private:
    // Steps stop short of what a reading cannot hold.
    static constexpr Wall latest{std::chrono::sys_days{std::chrono::year{2250} / 1 / 1}};

    Now now_;
    Nanos behind_{0};  // how far the machine's wall clock is behind the reading
};

}  // namespace ration
