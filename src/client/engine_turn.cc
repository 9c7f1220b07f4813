// One turn of whoever drives: do what is due, move the sockets, report how attempts ended. The lock
// is held between these, never while sockets move, hooks run or promises are kept.
#include <algorithm>

#include "base/text.h"
#include "client/access.h"
#include "client/engine.h"

namespace ration::client {
namespace {

// Hooks are for watching: what one throws is its own matter.
template <typename Hook, typename... Arguments>
void tell(const Hook& hook, const Arguments&... arguments) {
    if (!hook) {
        return;
    }
    try {
        hook(arguments...);
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
}

std::string_view words_for(StopReason reason) {
    switch (reason) {
        case StopReason::deadline:
            return "the time for the whole call is over, or what the server asks for does not fit "
                   "in it";
        case StopReason::gate_closed:
            return "the server asked for no calls before a moment further off than calls may wait";
        case StopReason::throttled:
            return "refused locally: the server accepts too little of what it is sent";
        case StopReason::breaker_open:
            return "refused locally: the circuit breaker is open";
        default:
            return {};
    }
}

}  // namespace

void Engine::turn(Lock& lock) {
    const Now now = clock_->now();
    cancel_requested(now);
    steps_.clear();
    dispatcher_.advance(now, steps_);
    const auto wake_at = dispatcher_.wake_at();
    lock.unlock();
    const bool idle = perform(steps_);
    move_sockets(wake_at, idle);
    for (Pending* pending : finished_) {
        tell_answer(*pending);
        pending->call.body = pending->exchange.kind_for_repeat();
    }
    lock.lock();
    report(clock_->now());
}

void Engine::cancel_requested(Now now) {
    for (const std::uint64_t number : std::exchange(cancels_, {})) {
        const auto found = open_.find(number);
        if (found == open_.end()) {
            continue;
        }
        Pending& pending = *found->second;
        pending.closed = closing_;
        if (!pending.begun) {
            pending.cancelled_early = true;
            continue;
        }
        if (pending.in_transfer) {
            leave_multi(pending);
            pending.exchange.abandon();
        }
        dispatcher_.cancel(pending.call, now);
    }
}

// True when the driver may go to sleep afterwards.
bool Engine::perform(const Steps& steps) {
    for (const Step& step : steps) {
        Pending& pending = *static_cast<Pending*>(step.call->owner);
        switch (step.what) {
            case Step::What::send:
                begin_attempt(pending, step.time);
                break;
            case Step::What::wait:
                tell(options_.hooks.on_wait,
                     ClientHooks::Wait{pending.number, step.call->attempts(), step.source,
                                       step.reason, step.wait});
                break;
            case Step::What::end:
                end(pending, step);
                break;
        }
    }
    return ended_.empty() && finished_.empty();
}

void Engine::begin_attempt(Pending& pending, Nanos time) {
    Call& call = pending.call;
    tell(options_.hooks.on_send,
         ClientHooks::Send{pending.number, call.attempts(), call.method, pending.url->url});
    if (pending.request.cancellation && pending.request.cancellation->cancelled()) {
        return;  // maybe by the hook; the next turn ends it
    }
    Exchange::Setup setup;
    setup.options = &options_;
    setup.clock = clock_.get();
    setup.policy = call.policy;
    setup.request = &pending.request;
    setup.url = pending.url.get();
    setup.key = call.key;
    setup.attempt = call.attempts();
    setup.until = clock_->now().mono + time;
    if (pending.exchange.begin(pool_.take(), setup)) {
        add_to_multi(pending);
    } else {
        finished_.push_back(&pending);
    }
}

void Engine::add_to_multi(Pending& pending) {
    if (!pending.in_transfer) {
        pending.in_transfer = true;
        in_transfer_.push_back(&pending);
    }
    curl_easy_setopt(pending.exchange.handle(), CURLOPT_PRIVATE, &pending);
    curl_multi_add_handle(multi_, pending.exchange.handle());
}

void Engine::leave_multi(Pending& pending) {
    if (pending.in_transfer) {
        pending.in_transfer = false;
        std::erase(in_transfer_, &pending);
        curl_multi_remove_handle(multi_, pending.exchange.handle());
        pool_.put_back(pending.exchange.release());
    }
}

void Engine::move_sockets(std::optional<Mono> wake_at, bool may_wait) {
    if (in_transfer_.empty() && !may_wait) {
        return;  // only ends are to be told
    }
    int running = 0;
    curl_multi_perform(multi_, &running);
    read_finished();
    if (may_wait && finished_.empty()) {
        int events = 0;
        curl_multi_poll(multi_, nullptr, 0, poll_milliseconds(wake_at), &events);
        curl_multi_perform(multi_, &running);
        read_finished();
    }
    read_expired();
}

int Engine::poll_milliseconds(std::optional<Mono> wake_at) const {
    constexpr Nanos longest = std::chrono::minutes(1);
    const Mono now = clock_->now().mono;
    Mono at = std::min(wake_at.value_or(Mono::max()), now + longest);
    for (const Pending* pending : in_transfer_) {
        at = std::min(at, pending->exchange.until());
    }
    const Nanos wait = at <= now ? Nanos(0) : at - now;
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait).count());
}

void Engine::read_finished() {
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
        if (message->msg != CURLMSG_DONE) {
            continue;
        }
        CURL* handle = message->easy_handle;
        const CURLcode code = message->data.result;
        void* owner = nullptr;
        curl_easy_getinfo(handle, CURLINFO_PRIVATE, &owner);
        Pending& pending = *static_cast<Pending*>(owner);
        curl_multi_remove_handle(multi_, handle);
        if (pending.exchange.finished(code)) {
            curl_multi_add_handle(multi_, handle);
            int running = 0;
            curl_multi_perform(multi_, &running);
            continue;
        }
        pending.in_transfer = false;
        std::erase(in_transfer_, &pending);
        pool_.put_back(pending.exchange.release());
        finished_.push_back(&pending);
    }
}

void Engine::read_expired() {
    if (in_transfer_.empty()) {
        return;
    }
    const Mono now = clock_->now().mono;
    for (std::size_t i = 0; i < in_transfer_.size();) {
        Pending& pending = *in_transfer_[i];
        if (now < pending.exchange.until()) {
            ++i;
            continue;
        }
        pending.exchange.expired();
        leave_multi(pending);
        finished_.push_back(&pending);
    }
}

void Engine::tell_answer(Pending& pending) {
    if (!options_.hooks.on_answer) {
        return;
    }
    const Outcome outcome = pending.exchange.outcome();
    const Told told = read_answer(outcome, clock_->now().wall);
    tell(options_.hooks.on_answer,
         ClientHooks::Answer{pending.number, pending.call.attempts(), outcome.status, outcome.error,
                             told.error_type, outcome.headers});
}

// The lock is held.
void Engine::report(Now now) {
    for (Pending* pending : finished_) {
        dispatcher_.ended(pending->call, pending->exchange.outcome(), now);
    }
    finished_.clear();
    for (Pending* pending : ended_) {
        const std::uint64_t number = pending->number;
        open_.erase(number);
        if (pending->promise) {
            --background_open_;
            background_calls_.erase(number);
        } else {
            pending->done = true;
            pending->changed.notify_one();
        }
    }
    ended_.clear();
    if (background_open_ == 0 && closing_) {
        background_work_.notify_all();
    }
}

void Engine::end(Pending& pending, const Step& step) {
    ClientResult& result = pending.result;
    pending.exchange.move_into(result);
    result.reason = step.stop;
    result.retry_at = step.retry_at;
    result.error_type = step.call->error_type();
    result.idempotency_key = step.call->key;
    result.attempts = step.call->attempts();
    result.waited = step.call->waited();
    if (result.url.empty()) {
        result.url = pending.url->url;
    }
    if (step.stop == StopReason::cancelled) {
        const auto& cancellation = pending.request.cancellation;
        result.message = pending.closed ? "the client was closed" : cancellation->reason();
    } else if (const std::string_view words = words_for(step.stop); !words.empty()) {
        result.message =
            result.message.empty() ? std::string(words) : cat(words, ": ", result.message);
    }
    if (pending.watched) {
        CancellationAccess::unwatch(*pending.request.cancellation, *pending.watched);
    }
    std::string key = std::exchange(result.idempotency_key, {});  // hooks lead to logs
    tell(options_.hooks.on_end, pending.number, result);
    result.idempotency_key = std::move(key);
    ended_.push_back(&pending);
    if (pending.promise) {
        pending.promise->set_value(std::move(result));
    }
}

}  // namespace ration::client
