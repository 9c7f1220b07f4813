// A slot is a circular list with a sentinel. A timer may sit in a slot earlier than its deadline
// (its deadline was moved forward while it was linked, or lies beyond the wheel's span): when the
// slot runs it is linked again further on. So arming is almost always a single store.
#include "net/timer_wheel.h"

#include <algorithm>

namespace ration::net {

TimerWheel::TimerWheel(Mono start) : current_(tick_of(start)) {}

void TimerWheel::arm(Timer& timer, Mono deadline) {
    timer.deadline_ = deadline;
    const std::int64_t wanted = tick_of(deadline) + 1;
    if (!timer.alone()) {
        if (timer.tick_ <= wanted) {
            return;
        }
        timer.unlink();
    }
    link(timer, wanted);
}

void TimerWheel::link(Timer& timer, std::int64_t tick) {
    const auto span = static_cast<std::int64_t>(timer_slots) - 1;
    timer.tick_ = std::clamp(tick, current_ + 1, current_ + span);
    TimerLink& head = slots_[static_cast<std::size_t>(timer.tick_) % timer_slots];
    timer.previous = head.previous;
    timer.next = &head;
    head.previous->next = &timer;
    head.previous = &timer;
}

void TimerWheel::advance(Mono now) {
    const std::int64_t target = tick_of(now);
    // A jump past the whole wheel needs each slot once.
    std::int64_t tick = std::max(current_, target - static_cast<std::int64_t>(timer_slots));
    while (tick < target) {
        ++tick;
        current_ = tick;
        run_slot(slots_[static_cast<std::size_t>(tick) % timer_slots], now);
    }
}

void TimerWheel::run_slot(TimerLink& head, Mono now) {
    if (head.alone()) {
        return;
    }
    // The slot's timers move to a list of their own, so that callbacks may link and unlink freely.
    TimerLink due;
    due.next = head.next;
    due.previous = head.previous;
    due.next->previous = &due;
    due.previous->next = &due;
    head.next = head.previous = &head;
    while (!due.alone()) {
        Timer& timer = static_cast<Timer&>(*due.next);
        timer.unlink();
        if (!timer.armed()) {
            continue;
        }
        if (timer.deadline_ > now) {
            link(timer, tick_of(timer.deadline_) + 1);
            continue;
        }
        timer.disarm();
        timer.fire_(timer.self_);
    }
}

}  // namespace ration::net
