#include "virtual_client.h"

#include "base/text.h"

namespace ration::client {

std::string VirtualClient::Asked::result() const {
    if (!ended) {
        return "still open";
    }
    if (*ended == StopReason::deadline || (last_status == 0 && !last_error)) {
        return last_status != 0 ? cat(last_status) : std::string(name(*ended));
    }
    return last_error ? std::string(name(*last_error)) : cat(last_status);
}

VirtualClient::Asked& VirtualClient::ask(const RetryPolicy& policy,
                                         const std::function<void(Call&)>& set) {
    Asked& asked = asked_.emplace_back();
    asked.policy = policy;
    asked.call.policy = &asked.policy;
    asked.call.owner = &asked;
    asked.call.method = "GET";
    asked.call.origin = "https://api.example";
    set(asked.call);
    dispatcher_.begin(asked.call, now());
    return asked;
}

void VirtualClient::at(Nanos since_start, std::function<void()> what) {
    events_.emplace(start_of_cases().mono + since_start, std::move(what));
}

void VirtualClient::answer(Sent& sent, Nanos after, const Json& reply) {
    const std::uint64_t attempt = sent.asked->attempt;
    at(since_start() + after, [this, &sent, attempt, reply] {
        Asked& asked = *sent.asked;
        if (asked.ended || asked.cancelled || asked.attempt != attempt) {
            return;  // nobody waits for it any more
        }
        Answer answer(reply);
        sent.replied = now_.mono;
        asked.last_status = answer.outcome.error ? 0 : answer.outcome.status;
        asked.last_error = answer.outcome.error;
        dispatcher_.ended(asked.call, answer.read(), now());
    });
}

void VirtualClient::never_answer(Sent& sent) {
    answer(sent, sent.give_up - now_.mono, {{"error", "attempt_timeout"}});
}

void VirtualClient::do_step(const Step& step) {
    Asked& asked = *static_cast<Asked*>(step.call->owner);
    switch (step.what) {
        case Step::What::send: {
            ++asked.attempt;
            asked.sends.push_back(now_.mono);
            asked.events.push_back(cat("attempt:", step.call->attempts()));
            Sent& sent = sends_.emplace_back(Sent{&asked, now_.mono, now_.mono + step.time, {}});
            on_send(asked);
            server(sent);
            break;
        }
        case Step::What::wait:
            asked.events.push_back(cat("wait:", name(step.source)));
            asked.waits.emplace_back(std::string(name(step.source)), step.wait.value_or(Nanos(-1)));
            break;
        case Step::What::end:
            asked.events.push_back(cat("done:", name(step.stop)));
            asked.ended = step.stop;
            asked.retry_at = step.retry_at;
            asked.ended_at = now_.mono;
            break;
    }
}

void VirtualClient::do_steps() {
    Steps steps;
    dispatcher_.advance(now(), steps);
    for (const Step& step : steps) {
        do_step(step);
    }
}

void VirtualClient::run(std::optional<Nanos> since_start) {
    const Mono until = since_start ? start_of_cases().mono + *since_start : Mono::max();
    while (true) {
        do_steps();
        std::optional<Mono> next = dispatcher_.wake_at();
        if (next && *next - now_.mono >= std::chrono::milliseconds(20)) {
            *next += timer_error;
        }
        if (!events_.empty()) {
            next = std::min(next.value_or(Mono::max()), events_.begin()->first);
        }
        if (!next || *next > until) {
            break;
        }
        if (*next > now_.mono) {
            now_ = later(now_, *next - now_.mono);
        }
        while (!events_.empty() && events_.begin()->first <= now_.mono) {
            const auto what = std::move(events_.begin()->second);
            events_.erase(events_.begin());
            what();
        }
    }
    if (since_start && until > now_.mono) {
        now_ = later(now_, until - now_.mono);
    }
}

}  // namespace ration::client
