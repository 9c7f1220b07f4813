// The order of things at a gate: it opens, a probe goes, its answer lets the queue go at random
// moments within the policy's extra, in the order in which the calls came. Told numbers of one
// window may arrive in any order, so within a window the least counts; an older window's say
// nothing.
#include "client/gate.h"

#include <algorithm>

#include "client/policy.h"

namespace ration::client {
namespace {

constexpr Nanos same_window = std::chrono::seconds(1);  // resets are told in whole seconds

}  // namespace

Gate::Asked Gate::ask(GateTicket& ticket, Mono now, Woken& woken) {
    if (ticket.granted) {
        if (holds_good(ticket, now)) {
            return {};
        }
        take_back(ticket);
    }
    if (told_at_ > now && told_at_ - now > ticket.max_wait) {
        leave(ticket, now, woken);
        return {Asked::What::reject, told_at_ + guard_};
    }
    if (ticket.waited_extra && told_at_ != Mono::min() && now >= told_at_ + guard_) {
        opens_at_ = std::min(opens_at_, now);  // it has waited a random extra of its own
    }
    if (!ticket.queued) {
        ticket.queued = true;
        line_up(ticket, now);
    }
    const auto moment = advance(now, &ticket, woken);
    return ticket.granted ? Asked{} : Asked{Asked::What::wait, moment};
}

// Behind all who may go, before those whose random moments are still to come: behind them it would
// go at the last one's.
void Gate::line_up(GateTicket& ticket, Mono now) {
    const auto place = std::find_if(queue_.begin(), queue_.end(), [&](const GateTicket* queued) {
        return queued->not_before > now;
    });
    queue_.insert(place, &ticket);
}

// What was learnt between a grant and its owner's next word counts.
bool Gate::holds_good(const GateTicket& ticket, Mono now) const {
    const bool its_turn = probe_ == &ticket || (!probe_ && !probe_needed_);
    const bool fits = !remaining_ || in_flight_ <= std::max<std::uint64_t>(1, *remaining_);
    return now >= opens_at_ && its_turn && fits;
}

void Gate::take_back(GateTicket& ticket) {
    ticket.granted = false;
    --in_flight_;
    probe_ = probe_ == &ticket ? nullptr : probe_;
    queue_.push_front(&ticket);
}

void Gate::leave(GateTicket& ticket, Mono now, Woken& woken) {
    if (!ticket.queued || ticket.granted) {
        return;
    }
    queue_.erase(std::find(queue_.begin(), queue_.end(), &ticket));
    ticket.queued = false;
    static_cast<void>(advance(now, nullptr, woken));
    wake_first(woken);
}

void Gate::wake_first(Woken& woken) const {
    if (!queue_.empty()) {
        woken.push_back(queue_.front());
    }
}

// Grants what may go now; gives the moment at which more may, nullopt when only an answer can help.
// A new first one is woken, since it is the one that waits for that moment.
std::optional<Mono> Gate::advance(Mono now, const GateTicket* asking, Woken& woken) {
    const GateTicket* first = queue_.empty() ? nullptr : queue_.front();
    const auto moment = grant(now, asking, woken);
    if (!queue_.empty() && queue_.front() != first && queue_.front() != asking) {
        wake_first(woken);
    }
    return moment;
}

std::optional<Mono> Gate::grant(Mono now, const GateTicket* asking, Woken& woken) {
    while (!queue_.empty()) {
        GateTicket* first = queue_.front();
        if (now < opens_at_) {
            return opens_at_;
        }
        if (probe_ || full()) {
            return std::nullopt;
        }
        if (probe_needed_) {
            probe_ = first;
        } else if (now < first->not_before) {
            return first->not_before;
        }
        if (paced_) {
            if (const Mono next = pace_.next(); now < next) {
                probe_ = probe_ == first ? nullptr : probe_;
                return next;
            }
            pace_.sent(now);
        }
        queue_.pop_front();
        ++in_flight_;
        first->granted = true;
        if (first != asking) {
            woken.push_back(first);
        }
    }
    return std::nullopt;
}

bool Gate::full() const {
    return remaining_ && in_flight_ >= std::max<std::uint64_t>(1, *remaining_);
}

void Gate::done(GateTicket& ticket, const Lesson& lesson, Mono now, Woken& woken) {
    --in_flight_;
    if (lesson.told) {
        learn(*lesson.told, lesson.refused, now);
    }
    if (probe_ == &ticket) {
        probe_ = nullptr;
        if (lesson.told && !lesson.refused && now >= opens_at_) {
            probe_needed_ = false;
            spread(now);
        }
    }
    static_cast<void>(advance(now, nullptr, woken));
    wake_first(woken);  // its moment may have moved
}

void Gate::learn(const Told& told, bool refused, Mono now) {
    if (paced_) {
        pace_.learn(told, refused, now);
    }
    if (refused) {
        if (told.floor) {
            const bool by_reset = told.source == WaitSource::reset;
            close(now + *told.floor, by_reset ? policy_.gate_guard : Nanos(0));
        }
        return;
    }
    if (told.limits.empty()) {
        return;
    }
    const auto least = std::min_element(
        told.limits.begin(), told.limits.end(),
        [](const ToldLimit& a, const ToldLimit& b) { return a.remaining < b.remaining; });
    learn_remaining(*least, now);
    for (const ToldLimit& limit : told.limits) {
        if (limit.remaining == 0 && limit.reset_in) {
            close(now + *limit.reset_in, policy_.gate_guard);
        }
    }
}

void Gate::learn_remaining(const ToldLimit& limit, Mono now) {
    const Window window{limit.reset_in ? std::optional(now + *limit.reset_in) : std::nullopt,
                        limit.reset_date};
    bool same = false;
    if (remaining_ && overtaken(window, same)) {
        return;
    }
    if (same) {
        remaining_ = std::min(*remaining_, limit.remaining);
        return;
    }
    remaining_ = limit.remaining;
    window_ = window;
}

// `window` is older than the one known; `same` is set when they are one.
bool Gate::overtaken(const Window& window, bool& same) const {
    if (window.reset_date && window_.reset_date) {
        same = *window.reset_date == *window_.reset_date;
        return *window.reset_date < *window_.reset_date;
    }
    if (window.reset_at && window_.reset_at) {
        const Nanos apart = *window.reset_at - *window_.reset_at;
        same = apart <= same_window && apart >= -same_window;
    }
    return false;
}

void Gate::close(Mono told_at, Nanos guard) {
    if (told_at_ != Mono::min() && told_at + guard <= told_at_ + guard_) {
        return;
    }
    told_at_ = told_at;
    guard_ = guard;
    const Mono opens = told_at + guard + draw(random_, policy_.retry_after_extra);
    opens_at_ = std::max(opens_at_, opens);
    probe_needed_ = true;
    remaining_.reset();  // it was of a window that will be over
}

void Gate::spread(Mono now) {
    std::vector<Mono> moments;
    moments.reserve(queue_.size());
    for (std::size_t i = 0; i < queue_.size(); ++i) {
        moments.push_back(now + draw(random_, policy_.retry_after_extra));
    }
    std::sort(moments.begin(), moments.end());
    for (std::size_t i = 0; i < queue_.size(); ++i) {
        queue_[i]->not_before = moments[i];
    }
}

GateState Gate::state(Mono now) const {
    GateState state;
    state.closed = now < opens_at_;
    state.probing = !state.closed && probe_needed_;
    state.opens_in = state.closed ? opens_at_ - now : Nanos(0);
    state.in_flight = in_flight_;
    state.waiting = static_cast<std::uint32_t>(queue_.size());
    state.remaining = remaining_;
    return state;
}

}  // namespace ration::client
