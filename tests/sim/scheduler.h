// Simulated time: events in the order of their instants, equal instants in the order in which they
// were made. Reading the clock costs no time. One thread.
#pragma once

#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "ration/time.h"

namespace ration::sim {

class Scheduler final : public Clock {
public:
    explicit Scheduler(Now start) : now_(start) {}

    [[nodiscard]] Now now() const override { return now_; }
    void after(Nanos delay, std::function<void()> event) {
        events_.push({now_.mono + delay, order_++, std::move(event)});
    }
    // False when nothing is left to happen until then; the clock stands at `until` afterwards.
    bool step(Mono until) {
        if (events_.empty() || events_.top().at > until) {
            now_ = later(now_, std::max(Nanos(0), until - now_.mono));
            return false;
        }
        Event event = events_.top();
        events_.pop();
        now_ = later(now_, event.at - now_.mono);
        event.happen();
        return true;
    }

private:
    struct Event {
        Mono at{};
        std::uint64_t order = 0;
        std::function<void()> happen;
        bool operator<(const Event& other) const {
            return at != other.at ? at > other.at : order > other.order;
        }
    };
    Now now_;
    std::uint64_t order_ = 0;
    std::priority_queue<Event> events_;
};

}  // namespace ration::sim
