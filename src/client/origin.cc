#include "client/origin.h"

#include <algorithm>

namespace ration::client {

__extension__ using u128 = unsigned __int128;

std::uint32_t Budget::tokens(Mono now) const {
    const bool quiet = !last_retry_ || now - *last_retry_ >= policy_->budget_floor;
    return std::max(left_, quiet ? policy_->budget_retry_cost : 0);
}

void Budget::retry(Mono now) {
    left_ -= std::min(left_, policy_->budget_retry_cost);
    last_retry_ = now;
}

void Budget::success() {
    const std::uint64_t more = std::uint64_t{left_} + policy_->budget_success_deposit;
    left_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(policy_->budget_capacity, more));
}

void SlotCounts::add(Mono now, std::uint64_t all, std::uint64_t good) {
    const std::int64_t number = number_of(now);
    Slot& slot = ring_[static_cast<std::size_t>(number % slots)];
    if (slot.number != number) {
        slot = {number, {}};
    }
    slot.totals.all += all;
    slot.totals.good += good;
}

SlotCounts::Totals SlotCounts::totals(Mono now) const {
    const std::int64_t number = number_of(now);
    Totals totals;
    for (const Slot& slot : ring_) {
        if (slot.number >= 0 && slot.number > number - slots) {
            totals.all += slot.totals.all;
            totals.good += slot.totals.good;
        }
    }
    return totals;
}

std::uint32_t reject_ppm(std::uint64_t requests, std::uint64_t accepts, std::uint32_t k) {
    const u128 accepted = static_cast<u128>(accepts) * k;
    if (accepted >= requests) {
        return 0;
    }
    return static_cast<std::uint32_t>((requests - accepted) * 1'000'000 / (u128{requests} + 1));
}

bool Throttle::rejects(Mono now, RandomSource& random) const {
    const auto [requests, accepts] = counts_.totals(now);
    const u128 accepted = static_cast<u128>(accepts) * k_;
    if (accepted >= requests) {
        return false;
    }
    // bits / 2^64 < (requests - accepted) / (requests + 1), in whole numbers
    return u128{random.bits()} * (requests + 1) < ((requests - accepted) << 64U);
}

bool Breaker::allows(Mono now) {
    if (!open_until_) {
        return true;
    }
    if (now < *open_until_ || probing_) {
        return false;
    }
    probing_ = true;
    return true;
}

void Breaker::outcome(Mono now, bool failed) {
    if (open_until_) {
        if (probing_) {
            probing_ = false;
            open_until_ = failed ? std::optional(now + options_.open) : std::nullopt;
            counts_ = SlotCounts(options_.window);
        }
        return;
    }
    counts_.add(now, 1, failed ? 0 : 1);
    const auto [all, good] = counts_.totals(now);
    if (all >= options_.min_outcomes && (all - good) * 100 >= all * options_.failure_percent) {
        open_until_ = now + options_.open;
    }
}

void InFlightLimit::window_ok(bool limit_was_reached) {
    if (limit_was_reached) {
        limit_ += std::min(options_.max - limit_, options_.increase);
    }
}

void InFlightLimit::throttled(Mono now) {
    if (!last_cut_ || now - *last_cut_ >= options_.decrease_every) {
        last_cut_ = now;
        const std::uint64_t cut = std::uint64_t{limit_} * options_.decrease_percent / 100;
        limit_ = std::max(options_.min, static_cast<std::uint32_t>(cut));
    }
}

bool InFlightLimit::ask(void* who) {
    if (!full() && (waiting_.empty() || waiting_.front() == who)) {
        leave(who);
        ++in_flight_;
        reached_ = reached_ || in_flight_ >= limit_;
        return true;
    }
    if (std::find(waiting_.begin(), waiting_.end(), who) == waiting_.end()) {
        waiting_.push_back(who);
    }
    return false;
}

void InFlightLimit::leave(void* who) {
    const auto found = std::find(waiting_.begin(), waiting_.end(), who);
    if (found != waiting_.end()) {
        waiting_.erase(found);
    }
}

void InFlightLimit::done(Mono now, Signal signal) {
    --in_flight_;
    if (signal == Signal::throttled) {
        throttled(now);
    } else if (signal == Signal::ok && ++successes_ >= limit_) {
        window_ok(reached_);
        successes_ = 0;
        reached_ = false;
    }
}

Origin::Origin(const RetryPolicy& policy, const ClientOptions& options)
    : budget(policy), in_flight(options.concurrency) {
    in_flight.cap(most_in_flight(options, false));
    if (options.throttle) {
        throttle.emplace(*options.throttle);
    }
    if (options.breaker) {
        breaker.emplace(*options.breaker);
    }
}

std::uint32_t most_in_flight(const ClientOptions& options, bool multiplexed) {
    const std::uint32_t connections = options.max_host_connections;
    return connections == 0 || multiplexed ? std::numeric_limits<std::uint32_t>::max()
                                           : connections;
}

}  // namespace ration::client
