// Problem: enforced limits must be charged all or nothing, limits in shadow must not be able to
// make that fail, and a store that gives no answer is neither yes nor no.
// Idea: two transactions in one batch, enforced and shadow. No answer (or one that contradicts
// itself, which counts as none) leaves the charges unjudged; those of `store_down: local` limits
// then form one transaction of their own on the stand-in counters.
#include "engine/charge.h"

#include <algorithm>

namespace ration {
namespace {

constexpr std::uint32_t bits(std::size_t first, std::size_t count) {
    return static_cast<std::uint32_t>(((std::uint64_t{1} << count) - 1) << first);
}

// An answer that can be believed: one level per charge, refused exactly when some level says why.
bool believable(const Outcome& outcome, std::size_t charges) {
    if (outcome.status != absl::StatusCode::kOk || outcome.count != charges) {
        return false;
    }
    const bool refusing =
        std::any_of(outcome.levels.begin(), outcome.levels.begin() + outcome.count,
                    [](const Level& level) { return level.verdict != Verdict::admitted; });
    return outcome.admitted == !refusing;
}

// Takes over the levels of a transaction whose charges start at `first`.
bool take_over(Exchange& exchange, const Outcome& outcome, std::size_t first, std::size_t count) {
    if (!believable(outcome, count)) {
        exchange.decision.store_down = true;
        return false;
    }
    if (&outcome != &exchange.outcome) {
        std::copy_n(outcome.levels.begin(), count, exchange.outcome.levels.begin() + first);
    }
    if (outcome.at != Now{}) {
        exchange.charged_at = outcome.at;
    }
    exchange.judged |= bits(first, count);
    exchange.taken |= outcome.admitted ? bits(first, count) : 0;
    return outcome.admitted;
}

// A stand-in that gives out its share only: the amount over the replicas, rounded up.
LimitRef share_of(LimitRef limit, unsigned replicas) {
    if (replicas <= 1) {
        return limit;
    }
    Limit share = *limit;
    share.amount = (share.amount + replicas - 1) / replicas;
    share.capacity = (share.capacity + replicas - 1) / replicas;
    return LimitRef::of(share).value_or(limit);
}

// Judges the local limits among the unjudged enforced ones; true when they admit.
bool charge_locally(Exchange& exchange, const Stores& stores, Now now) {
    std::array<Charge, max_charges> charges;
    std::array<std::uint8_t, max_charges> place{};
    std::size_t count = 0;
    for (std::uint8_t i = 0; i < exchange.enforced_count; ++i) {
        const StoreDown choice = exchange.rule_at(i).store_down;
        if (choice == StoreDown::closed) {
            return false;
        }
        if (choice == StoreDown::local && stores.local != nullptr) {
            charges[count] = exchange.charges[i];
            charges[count].limit = share_of(charges[count].limit, stores.replicas);
            place[count++] = i;
        }
    }
    if (count == 0) {
        return true;
    }
    const Outcome outcome = stores.local->apply_one(
        {.charges = std::span(charges).first(count), .lease = exchange.lease}, now);
    if (!believable(outcome, count)) {
        return true;
    }
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t bit = bits(place[i], 1);
        exchange.charges[place[i]] = charges[i];
        exchange.outcome.levels[place[i]] = outcome.levels[i];
        exchange.judged |= bit;
        exchange.local |= bit;
        exchange.taken |= outcome.admitted ? bit : 0;
    }
    return outcome.admitted;
}

void start(Exchange& exchange) {
    exchange.taken = exchange.local = exchange.judged = 0;
    exchange.outcome.admitted = true;
    exchange.charged_at = exchange.arrived;
}

Transaction transaction_of(const Exchange& exchange, std::size_t first, std::size_t count) {
    return {.charges = std::span(exchange.charges).subspan(first, count), .lease = exchange.lease};
}

// After the counters' own answers: the stand-in's, and what all of them come to.
void complete(Exchange& exchange, const Stores& stores, Now now) {
    const std::uint32_t enforced = bits(0, exchange.enforced_count);
    if ((exchange.judged & enforced) != enforced) {
        exchange.outcome.admitted = charge_locally(exchange, stores, now);
    }
    exchange.outcome.count = exchange.judged == 0 ? std::uint8_t{0} : exchange.charge_count;
    exchange.outcome.status =
        exchange.decision.store_down ? absl::StatusCode::kUnavailable : absl::StatusCode::kOk;
}

}  // namespace

bool plan_batch(const Exchange& exchange, ChargeBatch& batch) {
    const std::size_t enforced = exchange.enforced_count;
    const std::size_t shadow = exchange.charge_count - enforced;
    batch.transactions = {transaction_of(exchange, 0, enforced),
                          transaction_of(exchange, enforced, shadow)};
    batch.first = enforced == 0 ? 1 : 0;
    batch.last = shadow == 0 ? 1 : 2;
    return exchange.charge_count != 0;
}

void take_answers(Exchange& exchange, const ChargeBatch& batch, const Stores& stores, Now now) {
    const std::size_t enforced = exchange.enforced_count;
    const std::size_t shadow = exchange.charge_count - enforced;
    start(exchange);
    if (shadow != 0) {
        take_over(exchange, batch.outcomes[1], enforced, shadow);
    }
    exchange.outcome.admitted =
        enforced == 0 || take_over(exchange, batch.outcomes[0], 0, enforced);
    complete(exchange, stores, now);
}

void charge(Exchange& exchange, const Stores& stores, Now now) {
    if (exchange.charge_count != exchange.enforced_count) {
        ChargeBatch batch;
        static_cast<void>(plan_batch(exchange, batch));
        stores.counters.apply(batch.asked(), now, batch.answers());
        return take_answers(exchange, batch, stores, now);
    }
    start(exchange);
    if (exchange.charge_count == 0) {
        return;
    }
    // The outcome in its place: copied, it would cost as much as deciding it.
    const Transaction only = transaction_of(exchange, 0, exchange.enforced_count);
    stores.counters.apply({&only, 1}, now, {&exchange.outcome, 1});
    exchange.outcome.admitted = take_over(exchange, exchange.outcome, 0, exchange.enforced_count);
    complete(exchange, stores, now);
}

}  // namespace ration
