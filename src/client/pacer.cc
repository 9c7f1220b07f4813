#include "client/pacer.h"

namespace ration::client {
namespace {

constexpr Nanos first_interval = std::chrono::seconds(1);
constexpr Nanos least_interval = std::chrono::microseconds(100);
constexpr std::int64_t faster_percent = 92;  // of the interval, after each success

// The limit that leaves least room for each of its units.
const ToldLimit* tightest(const std::vector<ToldLimit>& limits) {
    const ToldLimit* found = nullptr;
    for (const ToldLimit& limit : limits) {
        if (limit.remaining > 0 && limit.reset_in && *limit.reset_in > Nanos(0) &&
            (!found || *limit.reset_in / static_cast<std::int64_t>(limit.remaining) >
                           *found->reset_in / static_cast<std::int64_t>(found->remaining))) {
            found = &limit;
        }
    }
    return found;
}

}  // namespace

void AnswerPace::learn(const Told& told, bool refused, Mono now) {
    if (refused) {
        const Nanos asked = told.floor.value_or(first_interval);
        if (slowed_at_ == Mono::min() || now >= slowed_at_) {
            interval_ = interval_ == Nanos(0) ? std::min(asked, first_interval)
                                              : std::min(asked, interval_ * 2);
            slowed_at_ = now + asked;
        }
        return;
    }
    if (const ToldLimit* limit = tightest(told.limits)) {
        interval_ = *limit->reset_in / static_cast<std::int64_t>(limit->remaining);
        next_ = std::min(next_, now + interval_);
        return;
    }
    if (told.limits.empty()) {
        interval_ = interval_ * faster_percent / 100;
        interval_ = interval_ < least_interval ? Nanos(0) : interval_;
    }
}

}  // namespace ration::client
