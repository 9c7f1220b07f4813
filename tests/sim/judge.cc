#include "sim/judge.h"

#include <algorithm>

#include "base/text.h"
#include "ration/counters.h"
#include "request/header.h"

namespace ration::sim {
namespace {

bool ends_with_window(const Place::Window& a, std::string_view key, const CalendarWindow& window) {
    return a.key == key && a.window == window;
}

bool says(const Heard& heard, std::string_view type) {
    return heard.body.find(cat("\"", type, "\"")) != std::string::npos;
}

std::string seconds_up(Nanos wait) {
    const std::int64_t second = 1'000'000'000;
    return std::to_string(std::max<std::int64_t>(1, (wait.count() + second - 1) / second));
}

}  // namespace

std::string Asked::identity() const {
    return key.empty() ? std::string() : cat(workspace, "|", credential, "|", key);
}

const std::string* Heard::field(std::string_view name) const {
    for (const auto& [field, value] : headers) {
        if (equal_ignoring_case(field, name)) {
            return &value;
        }
    }
    return nullptr;
}

// ---- keys ----

Judge::KeyLife* Judge::life(const std::string& identity, Wall now) {
    const auto found = lives_.find(identity);
    if (found == lives_.end()) {
        return nullptr;
    }
    if (found->second.state != KeyLife::State::running && found->second.until <= now &&
        found->second.queued_until <= now) {
        lives_.erase(found);
        return nullptr;
    }
    return &found->second;
}

void Judge::judge_key(const Asked& asked, const KeyLife& life, const Reserved& reserved) {
    const ReserveVerdict verdict = reserved.verdict;
    if (life.body != asked.body || life.path != asked.path) {
        return require(verdict == ReserveVerdict::mismatch, "another request under a key passed");
    }
    switch (life.state) {
        case KeyLife::State::running:
            return require(verdict == ReserveVerdict::in_progress,
                           "a key that runs was not said to be in progress");
        case KeyLife::State::doubt:
            return require(verdict == (asked.strict()   ? ReserveVerdict::in_doubt
                                       : asked.probed() ? ReserveVerdict::probe
                                                        : ReserveVerdict::started) &&
                               reserved.second_try != asked.strict(),
                           "a key in doubt was not treated as its route says");
        case KeyLife::State::done:
            if (!life.answer) {
                return require(verdict == ReserveVerdict::not_kept,
                               "a key whose answer was not kept did not say so");
            }
            return require(
                verdict == ReserveVerdict::replay && reserved.response.body == *life.answer,
                "a 2xx was not replayed as it was");
    }
}

// The record says in which state it is.
void Judge::adopt(const Asked& asked, KeyLife& life, const Reserved& reserved) {
    if (reserved.verdict == ReserveVerdict::replay) {
        const auto known = std::any_of(
            upstream_.effects().begin(), upstream_.effects().end(), [&](const Effect& effect) {
                return effect.key == asked.identity() &&
                       reserved.response.body.find(effect.id) != std::string::npos;
            });
        require(known, "a replay of something that never was");
    }
    if (reserved.verdict != ReserveVerdict::started && reserved.verdict != ReserveVerdict::probe) {
        return;
    }
    life.unsure = false;
    life.state = KeyLife::State::running;
    life.body = asked.body;
    life.path = asked.path;
}

std::optional<std::size_t> Judge::verdict(const Asked& asked, const Reserve& reserve,
                                          const Reserved& reserved, Wall now) {
    const std::string identity = asked.identity();
    KeyLife* known = identity.empty() ? nullptr : life(identity, now);
    if (known != nullptr && (known->unsure || now < known->queued_until)) {
        adopt(asked, *known, reserved);
    } else if (known != nullptr) {
        judge_key(asked, *known, reserved);
    } else {
        require(reserved.verdict == ReserveVerdict::started ||
                    reserved.verdict == ReserveVerdict::ceiling_reached ||
                    reserved.verdict == ReserveVerdict::quota_reached ||
                    reserved.verdict == ReserveVerdict::contended,
                "a key that was never seen was known");
        require(!reserved.second_try, "a second try without a first");
    }
    if (reserved.verdict != ReserveVerdict::started && reserved.verdict != ReserveVerdict::probe) {
        return std::nullopt;
    }
    if (!identity.empty()) {
        KeyLife& begun = lives_[identity];
        begun.state = KeyLife::State::running;
        begun.body = asked.body;
        begun.path = asked.path;
        begun.unsure = false;
        if (!reserved.second_try) {
            begun.until = now + keep_keys;
        }
    }
    if (reserved.second_try) {
        ++second_tries_;
        const auto place = place_of_.find(reserved.attempt);
        require(place != place_of_.end(), "a second try of an attempt that nobody listed");
        if (place == place_of_.end()) {
            return add_place(asked, reserve, now);
        }
        Place& again = places_[place->second];
        again.running = true;
        again.second_try = true;
        again.identity = identity;  // listed by the ledger, it is known by its attempt alone
        again.strict = asked.strict() || asked.probed();
        return place->second;
    }
    const std::size_t place = add_place(asked, reserve, now);
    places_[place].running = true;
    places_[place].attempt = reserved.attempt;
    place_of_[reserved.attempt] = place;
    return place;
}

std::size_t Judge::add_place(const Asked& asked, const Reserve& reserve, Wall now) {
    Place place;
    place.identity = asked.identity();
    place.started = now;
    place.strict = asked.strict() || asked.probed();
    place.calendar = asked.path == "/v1/calendars";
    for (const CeilingUse& use : reserve.ceilings) {
        place.windows.push_back({std::string(use.key), use.at_most, use.window});
    }
    places_.push_back(std::move(place));
    return places_.size() - 1;
}

void Judge::ended(std::size_t index, SettleKind kind, bool in_writing) {
    Place& place = places_[index];
    place.running = false;
    const bool frees = kind == SettleKind::failed || kind == SettleKind::absent ||
                       (kind == SettleKind::not_sent && !place.second_try);
    const bool known = in_writing && (kind == SettleKind::written || frees);
    journal_.note(cat("place ", std::to_string(index), " ended as ",
                      std::to_string(static_cast<int>(kind)), known ? "" : ", in doubt"));
    if (known && kind == SettleKind::absent) {
        place.doubted = false;
    } else if (!known) {
        place.doubted = true;
        quota_drift_ = quota_drift_ || place.calendar;
    }
    const auto found = lives_.find(place.identity);
    if (place.identity.empty() || found == lives_.end()) {
        return;
    }
    if (known && frees) {
        forget(place.identity);
    } else if (!known) {
        found->second.state = KeyLife::State::doubt;
        found->second.until = place.started + keep_keys;
    }
}

void Judge::kept(std::size_t place, std::optional<std::string> body, Wall now) {
    const auto found = lives_.find(places_[place].identity);
    if (places_[place].identity.empty() || found == lives_.end()) {
        return;
    }
    found->second.state = KeyLife::State::done;
    found->second.answer = std::move(body);
    found->second.queued_until = {};  // whatever is still asked is answered by this
    found->second.unsure = false;
    found->second.until = now + keep_keys;
}

void Judge::operator_settled(AttemptId attempt, bool was_written, Wall now) {
    const auto place = place_of_.find(attempt);
    if (place == place_of_.end()) {
        return;
    }
    journal_.note(cat("place ", std::to_string(place->second), " settled by hand",
                      was_written ? " as written" : " as not written"));
    if (was_written) {
        kept(place->second, std::nullopt, now);
    } else {
        places_[place->second].doubted = false;
        forget(places_[place->second].identity);
    }
}

// The key is free, unless a question about it is still on its way.
void Judge::forget(const std::string& identity) {
    const auto found = lives_.find(identity);
    if (found == lives_.end()) {
        return;
    }
    if (found->second.queued_until == Wall{}) {
        lives_.erase(found);
    } else {
        found->second.unsure = true;
    }
}

// ---- what nobody knows ----

void Judge::unsure(const Asked& asked, const Reserve& reserve, Wall now) {
    const std::size_t place = add_place(asked, reserve, now);
    places_[place].doubted = true;
    quota_drift_ = quota_drift_ || places_[place].calendar;
    if (!asked.key.empty()) {
        KeyLife& life = lives_[asked.identity()];
        life.unsure = true;
        life.until = std::max(life.until, now + keep_keys);
    }
}

void Judge::left(const Asked& asked, const Reserve& reserve, Wall now) {
    unsure(asked, reserve, now);
    if (!asked.key.empty()) {
        lives_[asked.identity()].queued_until = now + std::chrono::seconds(30);
    }
}

void Judge::unsure(std::size_t place) {
    places_[place].doubted = true;
    quota_drift_ = quota_drift_ || places_[place].calendar;
    const auto found = lives_.find(places_[place].identity);
    if (found != lives_.end()) {
        found->second.unsure = true;
    }
}

void Judge::unsure(AttemptId attempt) {
    const auto place = place_of_.find(attempt);
    if (place != place_of_.end()) {
        unsure(place->second);
    }
}

void Judge::died() {
    for (auto& [identity, life] : lives_) {
        if (life.state == KeyLife::State::running) {
            life.state = KeyLife::State::doubt;
        }
    }
}

void Judge::found(const DoubtfulAttempt& doubt) {
    const auto known = place_of_.find(doubt.attempt);
    journal_.note(cat("attempt ", std::to_string(doubt.attempt), " is in doubt"));
    if (known != place_of_.end() && places_[known->second].started == doubt.started) {
        places_[known->second].doubted = true;
        quota_drift_ = quota_drift_ || places_[known->second].calendar;
        return;
    }
    Place place;
    place.attempt = doubt.attempt;
    place.started = doubt.started;
    place.doubted = true;
    for (const std::string& key : doubt.keys) {
        if (key.find("daily") != std::string::npos) {
            place.windows.push_back({key, rules_.per_day, local_day(rules_.zone, doubt.started)});
        } else if (key.find("volume") != std::string::npos) {
            place.windows.push_back(
                {key, rules_.per_period, billing_period(rules_.anchor, doubt.started)});
        }
    }
    places_.push_back(std::move(place));
    place_of_[doubt.attempt] = places_.size() - 1;
}

// ---- the upstream ----

void Judge::sending(std::size_t index, bool will_act) {
    Place& place = places_[index];
    require(place.sends == 0 || (place.doubted && place.second_try && !place.identity.empty()),
            "sent again without a doubt and its key");
    require(place.sends == 0 || !place.strict, "sent again where the route refuses to");
    ++place.sends;
    place.pending += will_act ? 1 : 0;
}

void Judge::acted(std::size_t index) {
    Place& place = places_[index];
    --place.pending;
    place.agreed = true;
    const auto effects = static_cast<std::size_t>(
        std::count_if(upstream_.effects().begin(), upstream_.effects().end(),
                      [&](const Effect& effect) { return effect.place == index; }));
    require(effects <= (upstream_.dedupes() && !place.identity.empty() ? 1 : place.sends),
            "more was done for a key than its doubts allow");
    if (effects > 0 && !place.effect) {
        place.effect = true;
        count_effect(place);
    }
}

void Judge::count_effect(const Place& place) {
    for (const Place::Window& window : place.windows) {
        std::uint64_t& done = done_[{window.key, window.window.end}];
        ++done;
        require(done <= window.at_most, cat("more was done than ", window.key, " allows"));
    }
}

const Place* Judge::place_of(AttemptId attempt) const {
    const auto found = place_of_.find(attempt);
    return found == place_of_.end() ? nullptr : &places_[found->second];
}

Judge::Bounds Judge::bounds(std::string_view key, const CalendarWindow& window) const {
    Bounds bounds;
    for (const Place& place : places_) {
        const bool inside =
            std::any_of(place.windows.begin(), place.windows.end(),
                        [&](const Place::Window& at) { return ends_with_window(at, key, window); });
        bounds.least += inside && place.effect ? 1 : 0;
        bounds.most += inside && (place.agreed || place.doubted) ? 1 : 0;
    }
    return bounds;
}

// ---- what clients hear ----

void Judge::heard(const Heard& heard, const Background& background) {
    const auto& [verdict, wait, place] = background;
    require(!place || heard.status >= 300 || !places_[*place].running,
            "a client heard of a 2xx before the ledger did");
    const std::string* retry = heard.field("Retry-After");
    const std::string* remaining = heard.field("RateLimit-Remaining");
    const std::string* replayed = heard.field("Idempotent-Replayed");
    const auto expect = [&](int status, std::string_view type, bool one_second) {
        require(heard.status == status && says(heard, type) && remaining == nullptr &&
                    (retry != nullptr) == one_second && (!one_second || *retry == "1"),
                cat("a refusal should be ", std::to_string(status), " ", type, ", was ",
                    std::to_string(heard.status), " ", heard.body));
    };
    require((replayed != nullptr) == (verdict == ReserveVerdict::replay ||
                                      (verdict == ReserveVerdict::probe && heard.status == 201)),
            "a wrong replay mark");
    if (!verdict) {
        if (heard.status == 429) {
            require(says(heard, "rate_limited") && retry != nullptr && remaining != nullptr &&
                        *remaining == "0",
                    "a limit's refusal lacks its fields");
        } else if (heard.status == 503) {
            require(says(heard, "ledger_unavailable") || heard.body.empty(),  // the upstream's own
                    "an unexplained 503");
        }
        return;
    }
    switch (*verdict) {
        case ReserveVerdict::started:
            return require(heard.status != 429 && heard.status != 402 && heard.status != 422,
                           "refused after it was started");
        case ReserveVerdict::replay:
            return require(heard.status == 201, "a replay with another status");
        case ReserveVerdict::mismatch:
            return expect(422, "idempotency_mismatch", false);
        case ReserveVerdict::in_progress:
            return expect(409, "idempotency_in_progress", true);
        case ReserveVerdict::in_doubt:
            return expect(409, "idempotency_in_doubt", false);
        case ReserveVerdict::probe:  // found, unless the upstream or the ledger did not answer
            return require(heard.status == 201 || heard.status == 502 || heard.status == 503,
                           "a probe with another end");
        case ReserveVerdict::not_kept:
            return expect(409, "idempotency_response_not_kept", false);
        case ReserveVerdict::quota_reached:
            return expect(402, "plan_quota", false);
        case ReserveVerdict::contended:
            return expect(503, "contention", true);
        case ReserveVerdict::ceiling_reached:
            if (says(heard, "daily_booking_limit")) {
                return require(heard.status == 429 && remaining == nullptr && retry != nullptr &&
                                   wait && *retry == seconds_up(*wait),
                               "the day's refusal does not tell the true wait");
            }
            expect(429, "booking_volume_refused", false);
            require(heard.body.find_first_of("0123456789") == std::string::npos,
                    "the volume's refusal shows a number");
    }
}

}  // namespace ration::sim
