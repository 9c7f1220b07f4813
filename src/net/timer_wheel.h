// Coarse timeouts for many connections: one wheel per event loop instead of one timer each.
//
// Arming a timer that is already in the wheel only writes its new deadline: connections push their
// deadlines forward with every read, and nothing but a store happens then. A deadline is met late
// by up to one tick, never early. Thread rule: the loop's thread only. Ownership: the wheel links
// timers that live inside their connections; a timer leaves the wheel when it is destroyed.
//
//   net::Timer idle{&on_idle, this};
//   wheel.arm(idle, now + std::chrono::seconds(75));
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ration/time.h"

namespace ration::net {

inline constexpr Nanos timer_tick = std::chrono::milliseconds(50);
inline constexpr std::size_t timer_slots = 512;  // deadlines further away are looked at again

class TimerWheel;

// A place in a circular list.
struct TimerLink {
    TimerLink* previous = this;
    TimerLink* next = this;

    TimerLink() = default;
    TimerLink(const TimerLink&) = delete;
    TimerLink& operator=(const TimerLink&) = delete;
    [[nodiscard]] bool alone() const { return next == this; }
    void unlink() {
        previous->next = next;
        next->previous = previous;
        previous = next = this;
    }
};

class Timer : private TimerLink {
public:
    using Fire = void (*)(void* self);
    Timer(Fire fire, void* self) : fire_(fire), self_(self) {}
    ~Timer() { unlink(); }

    [[nodiscard]] bool armed() const { return deadline_ != Mono::max(); }
    void disarm() { deadline_ = Mono::max(); }

private:
    friend class TimerWheel;

    Fire fire_;
    void* self_;
    Mono deadline_ = Mono::max();
    std::int64_t tick_ = 0;  // of the slot it is linked in
};

class TimerWheel {
public:
    explicit TimerWheel(Mono start);
    TimerWheel(const TimerWheel&) = delete;
    TimerWheel& operator=(const TimerWheel&) = delete;

    void arm(Timer& timer, Mono deadline);
    // Fires what is due. A timer may arm, disarm or destroy any timer from its callback.
    void advance(Mono now);

private:
    static std::int64_t tick_of(Mono at) { return at.time_since_epoch() / timer_tick; }
    void link(Timer& timer, std::int64_t tick);
    void run_slot(TimerLink& head, Mono now);

    std::int64_t current_;  // every slot up to this tick has run
    std::array<TimerLink, timer_slots> slots_;
};

}  // namespace ration::net
