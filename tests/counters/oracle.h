// What a limit must say, worked out the slow way: every admitted unit is remembered and the level
// is recomputed from all of them in exact fractions. Shares no code with the library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "ration/limit.h"

namespace ration {

__extension__ using Wide = __int128;

class Oracle {
public:
    explicit Oracle(const Limit& limit) : limit_(limit) {}

    // In units of 1 / scale(): what is in use at `t` (ns since the test's start, which is a window
    // edge of every period), had nothing happened after the events so far.
    [[nodiscard]] Wide scale() const {
        return limit_.kind == LimitKind::token_bucket || limit_.kind == LimitKind::sliding_counter
                   ? Wide{limit_.period.count()}
                   : Wide{1};
    }
    [[nodiscard]] Wide used(std::int64_t t) const {
        switch (limit_.kind) {
            case LimitKind::token_bucket:
                return bucket(t);
            case LimitKind::sliding_counter:
                return weighted(t);
            case LimitKind::fixed_window:
            case LimitKind::sliding_window:
            case LimitKind::concurrency:
                break;
        }
        Wide sum = 0;
        for (const Event& event : events_) {
            sum += counts(event, t) ? event.units : 0;
        }
        return sum;
    }
    [[nodiscard]] bool fits(std::int64_t t, std::uint64_t cost) const {
        return cost == 0 || used(t) + Wide{cost} * scale() <= Wide{limit_.capacity} * scale();
    }
    [[nodiscard]] std::uint64_t whole_used(std::int64_t t) const {
        return static_cast<std::uint64_t>((used(t) + scale() - 1) / scale());
    }
    void take(std::int64_t t, std::uint64_t units) {
        if (units != 0) {
            events_.push_back({t, units});
        }
    }
    [[nodiscard]] const Limit& limit() const { return limit_; }

private:
    struct Event {
        std::int64_t at;
        std::uint64_t units;
    };

    [[nodiscard]] bool counts(const Event& event, std::int64_t t) const {
        const std::int64_t period = limit_.period.count();
        switch (limit_.kind) {
            case LimitKind::fixed_window:
                return event.at / period == t / period;
            case LimitKind::sliding_window:
                return t - event.at < period;
            case LimitKind::token_bucket:
            case LimitKind::sliding_counter:
            case LimitKind::concurrency:
                break;
        }
        return true;
    }
    // Owed, in 1/period tokens: `amount` of those are earned every nanosecond.
    [[nodiscard]] Wide bucket(std::int64_t t) const {
        Wide owed = 0;
        std::int64_t when = 0;
        for (const Event& event : events_) {
            owed = std::max<Wide>(0, owed - Wide{event.at - when} * Wide{limit_.amount});
            owed += Wide{event.units} * scale();
            when = event.at;
        }
        return std::max<Wide>(0, owed - Wide{t - when} * Wide{limit_.amount});
    }
    [[nodiscard]] Wide weighted(std::int64_t t) const {
        const std::int64_t period = limit_.period.count();
        Wide sum = 0;
        for (const Event& event : events_) {
            const std::int64_t windows_ago = t / period - event.at / period;
            if (windows_ago == 0) {
                sum += Wide{event.units} * period;
            } else if (windows_ago == 1) {
                sum += Wide{event.units} * (period - t % period);
            }
        }
        return sum;
    }

    Limit limit_;
    std::vector<Event> events_;
};

}  // namespace ration
