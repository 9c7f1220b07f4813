// When the load shaper lets a call go. Pure: the time is an argument.
#pragma once

#include <algorithm>
#include <cstdint>

#include "client/decide.h"
#include "ration/time.h"

namespace ration::client {

// A fixed pace: evenly spaced sends with a burst. Idling never stores more than the burst, and the
// order of asking is the order of going.
class Pacer {
public:
    // `amount` and `burst` at least 1.
    Pacer(std::uint32_t amount, Nanos every, std::uint32_t burst)
        : interval_(std::max<std::int64_t>(1, every.count() / amount)),
          allowance_(interval_ * (burst - 1)) {}

    // The moment at which what is offered now may be sent.
    [[nodiscard]] Mono reserve(Mono now) {
        const Mono send_at = started_ ? std::max(now, next_ - allowance_) : now;
        next_ = (started_ ? std::max(next_, send_at) : send_at) + interval_;
        started_ = true;
        return send_at;
    }

private:
    Nanos interval_;
    Nanos allowance_;
    bool started_ = false;
    Mono next_{};
};

// A pace that follows the answers of one bucket. Where they tell what remains until a reset, the
// calls are spread over that time. Where they tell nothing, the pace is felt out: a refusal slows
// it down, at most to the wait that was asked for, and each success speeds it up a little.
class AnswerPace {
public:
    [[nodiscard]] Mono next() const { return next_; }
    void sent(Mono now) { next_ = std::max(next_, now) + interval_; }
    void learn(const Told& told, bool refused, Mono now);

private:
    Nanos interval_{0};
    Mono next_ = Mono::min();
    Mono slowed_at_ = Mono::min();  // refusals of one burst count once
};

}  // namespace ration::client
