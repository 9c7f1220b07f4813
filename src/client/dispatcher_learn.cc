// What an ended attempt teaches: the gates that let it through, the origin's health, the keys in
// doubt; then whether the call goes on. And the counters for whoever watches.
#include <algorithm>

#include "base/text.h"
#include "client/dispatcher.h"
#include "client/policy.h"

namespace ration::client {

void Dispatcher::ended(Call& call, const Outcome& outcome, Now now) {
    if (call.phase_ != Call::Phase::sending) {
        return;
    }
    const Told told = read_answer(outcome, now.wall);
    call.error_type_ = told.error_type;
    learn(call, outcome, told, now);
    // It was no load to anybody: it costs nothing, so that many calls outlive a restart.
    const bool free = !outcome.answered() && nothing_sent(*outcome.error);
    const std::uint32_t tokens = call.origin_->budget.tokens(now.mono);
    const Verdict verdict =
        decide({.policy = *call.policy,
                .method = call.method,
                .keyed = !call.key.empty() && !outcome.other_origin,
                .body = call.body,
                .attempts_made = call.attempts_,
                .elapsed = now.mono - call.begun_,
                .outcome = outcome,
                .told = told,
                .retry_tokens = free ? std::max(tokens, call.policy->budget_retry_cost) : tokens,
                .cancelled = false,
                .now = now.wall},
               random_);
    if (!verdict.retry) {
        finish(call, verdict.reason, verdict.retry_at, early_);
        return;
    }
    call.wait_reason_ =
        outcome.answered() ? cat(outcome.status) : std::string(name(*outcome.error));
    ++counters_.retries[call.wait_reason_];
    if (!free) {
        call.origin_->budget.retry(now.mono);
    }
    call.waited_extra_ = told.source != WaitSource::backoff;
    call.phase_ = Call::Phase::backoff;
    hold(call, {{.source = told.source, .reason = call.wait_reason_}, now.mono + verdict.wait}, now,
         nullptr);
}

void Dispatcher::learn(Call& call, const Outcome& outcome, const Told& told, Now now) {
    const RetryPolicy& policy = *call.policy;
    const bool refused = outcome.answered() && lists(policy.retry_statuses, outcome.status);
    const bool narrow = refused && lists(policy.narrow_types, told.error_type);
    if (narrow && told.floor) {
        narrow_gates_.open(narrow_key(call), now.mono).close(now.mono + *told.floor, Nanos(0));
    }
    // What speaks of one operation, of another server or of no time at all says nothing to others.
    const bool mute =
        narrow || outcome.other_origin || lists(policy.never_retry_types, told.error_type);
    const Told nothing;
    Lesson lesson;
    lesson.told = !outcome.answered() ? nullptr : mute ? &nothing : &told;
    lesson.refused = refused && !narrow;
    Woken woken;
    for (Call::Place* place : {&call.narrow_, &call.main_}) {
        if (place->gate) {
            place->gate->done(place->ticket, lesson, now.mono, woken);
            *place = {};
        }
    }
    wake(woken);
    learn_health(call, outcome, now);
    learn_doubt(call, outcome);
}

void Dispatcher::learn_health(Call& call, const Outcome& outcome, Now now) {
    using Signal = InFlightLimit::Signal;
    Origin& origin = *call.origin_;
    const bool down = !outcome.answered() || outcome.status == 503;
    if (origin.breaker) {
        origin.breaker->outcome(now.mono, down);
    }
    if (origin.throttle) {
        origin.throttle->answered(now.mono, !down);
    }
    const bool throttled = outcome.status == 429 || outcome.status == 503 ||
                           outcome.error == AttemptError::attempt_timeout;
    origin.in_flight.done(now.mono, throttled            ? Signal::throttled
                                    : outcome.answered() ? Signal::ok
                                                         : Signal::nothing);
    if (outcome.answered() && !outcome.other_origin) {
        origin.in_flight.cap(most_in_flight(options_, outcome.multiplexed));
    }
    wake_next(origin);
    if (outcome.answered() && outcome.status < 400) {
        origin.budget.success();
    }
}

void Dispatcher::learn_doubt(const Call& call, const Outcome& outcome) {
    if (outcome.answered()) {
        if (const auto found = doubt(call); found != doubts_.end()) {
            doubts_.erase(found);
        }
    } else if (!nothing_sent(*outcome.error)) {
        put_in_doubt(call);
    }
}

void Dispatcher::put_in_doubt(const Call& call) {
    if (call.key.empty() || doubt(call) != doubts_.end()) {
        return;
    }
    if (doubts_.size() >= max_doubts) {
        doubts_.pop_front();
    }
    doubts_.push_back(cat(call.origin, '\n', call.key));
}

std::deque<std::string>::iterator Dispatcher::doubt(const Call& call) {
    if (call.key.empty() || doubts_.empty()) {
        return doubts_.end();
    }
    return std::find(doubts_.begin(), doubts_.end(), cat(call.origin, '\n', call.key));
}

ClientCounters Dispatcher::counters(Now now) const {
    ClientCounters counters = counters_;
    for (const auto& [name, origin] : origins_) {
        counters.budgets[name] = origin->budget.left();
    }
    for (const auto& [key, gate] : gates_.entries()) {
        GateState state = gate.state(now.mono);
        state.origin = key.substr(0, key.find('\n'));
        state.bucket = key.substr(key.rfind('\n') + 1);
        counters.gates.push_back(std::move(state));
    }
    return counters;
}

}  // namespace ration::client
