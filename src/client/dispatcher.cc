// A call passes the same stations before each attempt: the load shaper, the gates, the in-flight
// limit, the local refusals. It runs until a station holds it; then it waits for a moment (a
// timer), for another call's answer (it is woken), or both, and asks the station again. Nothing
// polls.
#include "client/dispatcher.h"

#include <algorithm>

#include "base/text.h"
#include "client/policy.h"
#include "wire/decimal.h"

namespace ration::client {
namespace {

Wall wall_at(Now now, Mono at) {
    return moment_after(now.wall, at - now.mono);
}

}  // namespace

Dispatcher::Dispatcher(const ClientOptions& options, RandomSource& random)
    : options_(options),
      random_(random),
      gates_(options.policy, random, max_gates, options.pace && options.pace->by_answers),
      narrow_gates_(options.policy, random, max_gates, false) {
    if (options.pace && options.pace->amount > 0) {
        pacer_.emplace(options.pace->amount, options.pace->every, options.pace->burst);
    }
}

void Dispatcher::begin(Call& call, Now now) {
    ++counters_.calls;
    call.begun_ = now.mono;
    call.origin_ = origin(call.origin);
    ready(call);
}

void Dispatcher::ready(Call& call) {
    if (!call.ready_) {
        call.ready_ = true;
        ready_.push_back(&call);
    }
}

void Dispatcher::advance(Now now, Steps& steps) {
    steps.insert(steps.end(), early_.begin(), early_.end());
    early_.clear();
    while (!timers_.empty() && timers_.begin()->first <= now.mono) {
        Call& call = *timers_.begin()->second;
        timers_.erase(timers_.begin());
        call.timer_.reset();
        ready(call);
    }
    while (!ready_.empty()) {
        Call& call = *ready_.front();
        ready_.pop_front();
        call.ready_ = false;
        run(call, now, steps);
    }
}

std::optional<Mono> Dispatcher::wake_at() const {
    if (!ready_.empty() || !early_.empty()) {
        return Mono::min();
    }
    return timers_.empty() ? std::nullopt : std::optional(timers_.begin()->first);
}

// Stations

void Dispatcher::run(Call& call, Now now, Steps& steps) {
    using Phase = Call::Phase;
    if (call.phase_ == Phase::sending || call.phase_ == Phase::over) {
        return;
    }
    if (call.phase_ == Phase::backoff) {
        if (call.waiting_until_ && now.mono < *call.waiting_until_) {
            return;  // woken for nothing: this wait ends at its moment and not before
        }
        stop_waiting(call, now);
        call.phase_ = Phase::pace;
    }
    if (call.phase_ == Phase::pace && !pass_pace(call, now, steps)) {
        return;
    }
    if (!pass_gates(call, now, steps) || !pass_in_flight(call, now, steps)) {
        return;
    }
    if (pass_local_refusals(call, now, steps)) {
        send(call, now, steps);
    }
}

bool Dispatcher::late(const Call& call, Mono at) const {
    return at - call.begun_ > call.policy->total_deadline - call.policy->min_attempt;
}

bool Dispatcher::pass_pace(Call& call, Now now, Steps& steps) {
    if (pacer_) {
        if (!call.reserved_) {
            call.paced_at_ = pacer_->reserve(now.mono);
            call.reserved_ = true;
        }
        if (late(call, call.paced_at_)) {
            refuse(call, {StopReason::deadline}, now, steps);
            return false;
        }
        if (now.mono < call.paced_at_) {
            hold(call, {{.source = WaitSource::pace}, call.paced_at_}, now, &steps);
            return false;
        }
    }
    call.reserved_ = false;
    call.phase_ = Call::Phase::gates;
    return true;
}

// The gate of its operation, where it has one, then that of its bucket. All are asked again after a
// wait: what was learnt meanwhile counts, a gate that was not there before too.
bool Dispatcher::pass_gates(Call& call, Now now, Steps& steps) {
    if (!call.narrow_.gate) {
        call.narrow_.gate = narrow_gate(call);
    }
    if (call.narrow_.gate && !pass_gate(call, call.narrow_, now, steps)) {
        return false;
    }
    if (!call.main_.gate) {  // not before: a gate that nobody has asked may be forgotten
        call.main_.gate = main_gate(call, now);
    }
    if (!pass_gate(call, call.main_, now, steps)) {
        return false;
    }
    call.phase_ = Call::Phase::in_flight;
    return true;
}

std::string Dispatcher::narrow_key(const Call& call) {
    return cat(call.origin, '\n', call.credential, '\n', call.method, ' ', call.path);
}

Gate* Dispatcher::narrow_gate(const Call& call) {
    if (narrow_gates_.entries().empty()) {
        return nullptr;
    }
    // A repeat under a key may be of a call that was done: its answer is there to be had.
    const bool repeats = !call.key.empty() && (call.attempts_ > 0 || doubt(call) != doubts_.end());
    return repeats ? nullptr : narrow_gates_.find(narrow_key(call));
}

Gate* Dispatcher::main_gate(const Call& call, Now now) {
    gate_key_.assign(call.origin).append(1, '\n').append(call.credential).append(1, '\n');
    gate_key_.append(call.bucket);
    return &gates_.open(gate_key_, now.mono);
}

bool Dispatcher::pass_gate(Call& call, Call::Place& place, Now now, Steps& steps) {
    using What = Gate::Asked::What;
    if (!place.ticket.owner) {
        place.ticket = {&call, call.policy->max_server_wait, call.waited_extra_};
    }
    Woken woken;
    const Gate::Asked asked = place.gate->ask(place.ticket, now.mono, woken);
    wake(woken);
    if (asked.what == What::go) {
        return true;
    }
    if (asked.what == What::reject) {
        refuse(call, {StopReason::gate_closed, wall_at(now, *asked.until)}, now, steps);
        return false;
    }
    leave_line(call);
    if (&place == &call.narrow_) {
        give_back(call.main_, now);
    }
    if (late(call, asked.until.value_or(now.mono)) || late(call, now.mono + Nanos(1))) {
        const auto opens = asked.until ? std::optional(wall_at(now, *asked.until)) : std::nullopt;
        refuse(call, {StopReason::deadline, opens}, now, steps);
    } else {
        hold(call, {{.source = WaitSource::gate}, asked.until}, now, &steps);
    }
    return false;
}

// It holds up nobody who may go.
void Dispatcher::leave_line(Call& call) {
    if (call.phase_ == Call::Phase::in_flight) {
        call.origin_->in_flight.leave(&call);
        wake_next(*call.origin_);
    }
    call.phase_ = Call::Phase::gates;
}

bool Dispatcher::pass_in_flight(Call& call, Now now, Steps& steps) {
    if (call.origin_->in_flight.ask(&call)) {
        wake_next(*call.origin_);  // the limit may have grown by a place
        return true;
    }
    if (late(call, now.mono + Nanos(1))) {
        refuse(call, {StopReason::deadline}, now, steps);
    } else {
        hold(call, {{.source = WaitSource::concurrency}}, now, &steps);
    }
    return false;
}

bool Dispatcher::pass_local_refusals(Call& call, Now now, Steps& steps) {
    Origin& origin = *call.origin_;
    std::optional<StopReason> reason;
    std::optional<Wall> retry_at;
    if (origin.throttle && origin.throttle->rejects(now.mono, random_)) {
        reason = StopReason::throttled;
    } else if (origin.breaker && !origin.breaker->allows(now.mono)) {
        reason = StopReason::breaker_open;
        retry_at = wall_at(now, *origin.breaker->open_until());
    }
    if (!reason) {
        if (origin.throttle) {
            origin.throttle->sent(now.mono);
        }
        return true;
    }
    origin.in_flight.done(now.mono, InFlightLimit::Signal::nothing);
    wake_next(origin);
    call.phase_ = Call::Phase::gates;  // its place in flight is given back
    refuse(call, {*reason, retry_at}, now, steps);
    return false;
}

void Dispatcher::send(Call& call, Now now, Steps& steps) {
    stop_waiting(call, now);
    call.phase_ = Call::Phase::sending;
    ++call.attempts_;
    ++counters_.sends;
    const Nanos left = call.policy->total_deadline - (now.mono - call.begun_);
    const Nanos time =
        std::max<Nanos>(std::chrono::milliseconds(1), std::min(call.policy->attempt_timeout, left));
    steps.push_back({.what = Step::What::send, .call = &call, .time = time});
}

// Waiting and ending

// Waits until the moment, or to be woken; at the latest until nothing could be sent any more. With
// `steps` left out the announcement goes to the next turn.
void Dispatcher::hold(Call& call, const Hold& wait, Now now, Steps* steps) {
    const auto& [told, until] = wait;
    const Mono latest =
        call.begun_ + call.policy->total_deadline - call.policy->min_attempt + Nanos(1);
    const bool news = call.waiting_ != told.source || call.waiting_until_ != until;
    if (call.waiting_ && call.waiting_ != told.source) {
        stop_waiting(call, now);
    }
    if (!call.waiting_) {
        call.waiting_since_ = now.mono;
    }
    call.waiting_ = told.source;
    call.waiting_until_ = until;
    if (call.timer_) {
        timers_.erase(*call.timer_);
    }
    call.timer_ =
        timers_.emplace(std::max(now.mono, std::min(until.value_or(latest), latest)), &call);
    if (news) {
        Step step = told;
        step.what = Step::What::wait;
        step.call = &call;
        step.wait = until ? std::optional(*until - now.mono) : std::nullopt;
        (steps ? *steps : early_).push_back(step);
    }
}

void Dispatcher::stop_waiting(Call& call, Now now) {
    if (call.waiting_) {
        const Nanos time = now.mono - call.waiting_since_;
        call.waited_ += time;
        counters_.waited[static_cast<std::size_t>(*call.waiting_)] += time;
    }
    call.waiting_.reset();
    call.waiting_until_.reset();
    if (call.timer_) {
        timers_.erase(*call.timer_);
        call.timer_.reset();
    }
}

void Dispatcher::refuse(Call& call, const Refused& why, Now now, Steps& steps) {
    stop_waiting(call, now);
    give_back(call, now);
    ++counters_.local_refusals[std::string(name(why.reason))];
    finish(call, why.reason, why.retry_at, steps);
}

void Dispatcher::finish(Call& call, StopReason reason, std::optional<Wall> retry_at, Steps& steps) {
    call.phase_ = Call::Phase::over;
    steps.push_back({.what = Step::What::end, .call = &call, .stop = reason, .retry_at = retry_at});
}

// Whatever the call holds or stands in line for, without anything learnt.
void Dispatcher::give_back(Call& call, Now now) {
    give_back(call.narrow_, now);
    give_back(call.main_, now);
    auto& limit = call.origin_->in_flight;
    if (call.phase_ == Call::Phase::sending) {
        limit.done(now.mono, InFlightLimit::Signal::nothing);
    } else {
        limit.leave(&call);
    }
    wake_next(*call.origin_);
}

void Dispatcher::give_back(Call::Place& place, Now now) {
    if (!place.gate) {
        return;
    }
    Woken woken;
    if (place.ticket.granted) {
        place.gate->done(place.ticket, {}, now.mono, woken);
    } else {
        place.gate->leave(place.ticket, now.mono, woken);
    }
    place = {};
    wake(woken);
}

void Dispatcher::cancel(Call& call, Now now) {
    if (call.phase_ == Call::Phase::over) {
        return;
    }
    stop_waiting(call, now);
    if (call.phase_ == Call::Phase::sending) {
        put_in_doubt(call);  // the server may act on it all the same
        if (call.origin_->breaker) {
            call.origin_->breaker->abandoned();
        }
    }
    give_back(call, now);
    finish(call, StopReason::cancelled, {}, early_);
}

void Dispatcher::wake(Woken& woken) {
    for (const GateTicket* ticket : woken) {
        ready(*static_cast<Call*>(ticket->owner));
    }
}

void Dispatcher::wake_next(const Origin& origin) {
    if (void* next = origin.in_flight.next()) {
        ready(*static_cast<Call*>(next));
    }
}

// Ended attempts are in dispatcher_learn.cc.

std::shared_ptr<Origin> Dispatcher::origin(const std::string& name) {
    const auto found = origin_index_.find(name);
    if (found != origin_index_.end()) {
        origins_.splice(origins_.end(), origins_, found->second);
        return found->second->origin;
    }
    if (origins_.size() >= max_origins) {
        origin_index_.erase(origins_.front().name);
        origins_.pop_front();
    }
    const auto entry = origins_.insert(origins_.end(),
                                       {name, std::make_shared<Origin>(options_.policy, options_)});
    origin_index_.emplace(entry->name, entry);
    return entry->origin;
}

}  // namespace ration::client
