#include "sim/model_ledger.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace ration::sim {
namespace {

Wall start_of(const CeilingUse& use) {
    return use.window.start.value_or(Wall{});
}

bool counts_in(const ModelPlace& place, const CeilingUse& use) {
    if (place.key != use.key || place.kind == ModelPlace::Kind::quota) {
        return false;
    }
    return use.kind == CeilingKind::local_day
               ? place.at >= start_of(use) && place.at < use.window.end
               : place.at == start_of(use);
}

std::uint64_t quota_held(const std::vector<ModelAttempt>& attempts, std::string_view key,
                         bool doubtful) {
    std::uint64_t held = 0;
    for (const ModelAttempt& attempt : attempts) {
        if (attempt.state == ModelAttempt::State::done || attempt.doubtful() != doubtful) {
            continue;
        }
        held += static_cast<std::uint64_t>(std::count_if(
            attempt.places.begin(), attempt.places.end(), [&](const ModelPlace& place) {
                return place.kind == ModelPlace::Kind::quota && place.key == key;
            }));
    }
    return held;
}

}  // namespace

Wall ModelAttempt::expires() const {
    if (identity) {
        return started + keep;
    }
    Wall latest = started;
    for (const ModelPlace& place : places) {
        latest = std::max(latest, place.ends);
    }
    return latest;
}

std::string to_string(const LedgerView& view) {
    std::string text = cat("running ", std::to_string(view.running), " records ",
                           std::to_string(view.records), " levels");
    for (const std::uint64_t level : view.levels) {
        text += ' ' + std::to_string(level);
    }
    for (const auto& objects : view.members) {
        text += " members " + std::to_string(objects.size());
    }
    text += " doubts";
    for (const auto& [identity, started, expires, keys] : view.doubts) {
        text += cat(" [", identity.empty() ? "no key" : identity, " ", std::to_string(keys.size()),
                    " places]");
    }
    return text;
}

void WatchedKeys::watch(const Reserve& reserve) {
    for (const CeilingUse& use : reserve.ceilings) {
        const bool known = std::any_of(windows.begin(), windows.end(), [&](const Window& window) {
            return window.key == use.key && window.window == use.window;
        });
        if (!known) {
            windows.push_back({std::string(use.key), use.kind, use.at_most, use.window});
        }
    }
    for (const QuotaUse& use : reserve.quotas) {
        quotas.emplace(use.key);
    }
}

// ---- requests ----

std::vector<LedgerReply> ModelLedger::apply(std::span<const LedgerRequest> requests, Wall now) {
    std::vector<LedgerReply> replies;
    for (const LedgerRequest& request : requests) {
        replies.push_back(
            std::visit([&](const auto& what) { return perform(what, now); }, request));
    }
    return replies;
}

void ModelLedger::adopt(std::span<const LedgerReply> expected, std::span<const LedgerReply> real) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (ModelAttempt* attempt = find(expected[i].reserved.attempt)) {
            attempt->id = real[i].reserved.attempt;
        }
    }
}

void ModelLedger::adopt(const std::vector<DoubtfulAttempt>& listed) {
    for (const DoubtfulAttempt& real : listed) {
        for (ModelAttempt& attempt : attempts_) {
            if (attempt.id < 0 && attempt.identity.value_or("") == real.identity &&
                attempt.started == real.started) {
                attempt.id = real.attempt;
                break;
            }
        }
    }
}

void ModelLedger::fail(std::span<const LedgerRequest> requests) {
    for (const LedgerRequest& request : requests) {
        const Settle* settle = std::get_if<Settle>(&request);
        ModelAttempt* attempt = settle == nullptr ? nullptr : find(settle->attempt);
        if (attempt != nullptr && attempt->state == ModelAttempt::State::running) {
            attempt->state = ModelAttempt::State::doubt;
        }
    }
}

void ModelLedger::restart() {
    for (ModelAttempt& attempt : attempts_) {
        if (attempt.state == ModelAttempt::State::running) {
            attempt.state = ModelAttempt::State::doubt;
        }
    }
}

bool ModelLedger::answered_by_record(const IdempotencyKey& key, Wall now, Reserved& reserved) {
    const auto found = std::find_if(
        attempts_.begin(), attempts_.end(),
        [&](const ModelAttempt& attempt) { return attempt.identity == std::string(key.identity); });
    if (found == attempts_.end()) {
        return false;
    }
    const bool over = (found->state == ModelAttempt::State::doubt && found->expires() <= now) ||
                      (found->state == ModelAttempt::State::done && found->done_until <= now);
    if (over) {
        if (found->state == ModelAttempt::State::doubt) {
            write(*found);
        }
        attempts_.erase(found);
        return false;
    }
    if (found->fingerprint != key.fingerprint) {
        reserved.verdict = ReserveVerdict::mismatch;
    } else if (found->state == ModelAttempt::State::running) {
        reserved.verdict = ReserveVerdict::in_progress;
    } else if (found->state == ModelAttempt::State::doubt) {
        if (key.doubt == DoubtRule::refuse) {
            reserved.verdict = ReserveVerdict::in_doubt;
        } else {
            found->state = ModelAttempt::State::running;
            found->second_try = true;
            reserved.attempt = found->id;
            reserved.second_try = true;
            if (key.doubt == DoubtRule::probe) {
                reserved.verdict = ReserveVerdict::probe;
            }
        }
    } else if (!found->response) {
        reserved.verdict = ReserveVerdict::not_kept;
    } else {
        reserved.verdict = ReserveVerdict::replay;
        reserved.response = *found->response;
    }
    return true;
}

// True when one of the places is not to be had; `reserved` says which.
bool ModelLedger::judge_places(const Reserve& reserve, Reserved& reserved) const {
    const auto judge = [&](std::size_t index, std::uint64_t level, std::uint64_t flying,
                           std::uint64_t at_most, bool quota) {
        if (level + flying < at_most) {
            return false;
        }
        reserved.index = static_cast<std::uint8_t>(index);
        reserved.level = level;
        reserved.quota = quota;
        reserved.verdict = level < at_most ? ReserveVerdict::contended
                           : quota         ? ReserveVerdict::quota_reached
                                           : ReserveVerdict::ceiling_reached;
        return true;
    };
    for (std::size_t i = 0; i < reserve.ceilings.size(); ++i) {
        const CeilingUse& use = reserve.ceilings[i];
        if (judge(i, written(use) + held(use, true), held(use, false), use.at_most, false)) {
            return true;
        }
    }
    for (std::size_t i = 0; i < reserve.quotas.size(); ++i) {
        const QuotaUse& use = reserve.quotas[i];
        const auto found = members_.find(std::string(use.key));
        const std::uint64_t there = found == members_.end() ? 0 : found->second.size();
        if (judge(i, there + quota_held(attempts_, use.key, true),
                  quota_held(attempts_, use.key, false), use.at_most, true)) {
            return true;
        }
    }
    return false;
}

LedgerReply ModelLedger::perform(const Reserve& reserve, Wall now) {
    LedgerReply reply;
    if ((reserve.key && answered_by_record(*reserve.key, now, reply.reserved)) ||
        judge_places(reserve, reply.reserved)) {
        return reply;
    }
    ModelAttempt attempt;
    attempt.id = next_--;
    attempt.started = now;
    if (reserve.key) {
        attempt.identity = std::string(reserve.key->identity);
        attempt.fingerprint = reserve.key->fingerprint;
        attempt.keep = reserve.key->keep;
    }
    for (const CeilingUse& use : reserve.ceilings) {
        const bool day = use.kind == CeilingKind::local_day;
        const Wall at =
            day ? std::max(start_of(use), std::min(now, use.window.end - Nanos(1))) : start_of(use);
        attempt.places.push_back({day ? ModelPlace::Kind::day : ModelPlace::Kind::period,
                                  std::string(use.key), at, use.window.end});
    }
    for (const QuotaUse& use : reserve.quotas) {
        attempt.places.push_back(
            {ModelPlace::Kind::quota, std::string(use.key), {}, now + std::chrono::hours(24)});
    }
    reply.reserved.attempt = attempt.id;
    attempts_.push_back(std::move(attempt));
    return reply;
}

LedgerReply ModelLedger::perform(const Settle& settle, Wall now) {
    LedgerReply reply;
    ModelAttempt* attempt = find(settle.attempt);
    reply.found =
        settle.attempt == 0 || (attempt != nullptr && attempt->state != ModelAttempt::State::done);
    if (!reply.found) {
        return reply;
    }
    if (settle.kind == SettleKind::written) {
        for (const QuotaChange& change : settle.quotas) {
            auto& set = members_[std::string(change.key)];
            change.up ? static_cast<void>(set.emplace(change.object))
                      : static_cast<void>(set.erase(std::string(change.object)));
        }
    }
    if (attempt == nullptr) {
        return reply;
    }
    if (settle.kind == SettleKind::written) {
        write(*attempt);
        if (!attempt->identity) {
            erase(attempt->id);
            return reply;
        }
        attempt->state = ModelAttempt::State::done;
        attempt->done_until = now + attempt->keep;
        if (settle.response != nullptr) {
            attempt->response = *settle.response;
        }
    } else if (settle.kind == SettleKind::doubt ||
               (settle.kind == SettleKind::not_sent && attempt->second_try)) {
        attempt->state = ModelAttempt::State::doubt;
        if (!attempt->identity && attempt->places.empty()) {
            erase(attempt->id);
        }
    } else {  // failed, absent, or not sent at all
        if (settle.kind == SettleKind::failed && attempt->second_try) {
            write(*attempt);
        }
        erase(attempt->id);
    }
    return reply;
}

LedgerReply ModelLedger::perform(const SettleDoubt& settle, Wall now) {
    LedgerReply reply;
    ModelAttempt* attempt = find(settle.attempt);
    reply.found = attempt != nullptr && attempt->state == ModelAttempt::State::doubt;
    if (!reply.found) {
        return reply;
    }
    if (!settle.was_written) {
        erase(settle.attempt);
        return reply;
    }
    return perform(Settle{settle.attempt, SettleKind::written, nullptr, {}}, now);
}

LedgerReply ModelLedger::perform(const StateMembers& members, Wall) {
    members_[std::string(members.key)] = {members.objects.begin(), members.objects.end()};
    return {};
}

void ModelLedger::sweep(Wall now) {
    std::vector<AttemptId> over;
    for (const ModelAttempt& attempt : attempts_) {
        if (attempt.state == ModelAttempt::State::doubt && attempt.expires() <= now) {
            write(attempt);
            over.push_back(attempt.id);
        } else if (attempt.state == ModelAttempt::State::done && attempt.done_until <= now) {
            over.push_back(attempt.id);
        }
    }
    for (const AttemptId id : over) {
        erase(id);
    }
    std::erase_if(writes_, [&](const auto& write) { return write.second < now - writes_kept; });
    std::erase_if(periods_,
                  [&](const auto& period) { return period.second.first < now - writes_kept; });
}

// ---- what it holds ----

ModelAttempt* ModelLedger::find(AttemptId id) {
    const auto found = std::find_if(attempts_.begin(), attempts_.end(),
                                    [&](const ModelAttempt& attempt) { return attempt.id == id; });
    return id == 0 || found == attempts_.end() ? nullptr : &*found;
}

void ModelLedger::erase(AttemptId id) {
    std::erase_if(attempts_, [&](const ModelAttempt& attempt) { return attempt.id == id; });
}

void ModelLedger::write(const ModelAttempt& attempt) {
    for (const ModelPlace& place : attempt.places) {
        if (place.kind == ModelPlace::Kind::day) {
            writes_.emplace_back(place.key, place.at);
        } else if (place.kind == ModelPlace::Kind::period) {
            auto& [ends, count] = periods_[{place.key, place.at}];
            ends = count == 0 ? place.ends : ends;
            ++count;
        }
    }
}

std::uint64_t ModelLedger::written(const CeilingUse& use) const {
    if (use.kind == CeilingKind::billing_period) {
        const auto found = periods_.find({std::string(use.key), start_of(use)});
        return found == periods_.end() ? 0 : found->second.second;
    }
    return static_cast<std::uint64_t>(
        std::count_if(writes_.begin(), writes_.end(), [&](const auto& write) {
            return write.first == use.key && write.second >= start_of(use) &&
                   write.second < use.window.end;
        }));
}

std::uint64_t ModelLedger::held(const CeilingUse& use, bool doubtful) const {
    std::uint64_t held = 0;
    for (const ModelAttempt& attempt : attempts_) {
        if (attempt.state != ModelAttempt::State::done && attempt.doubtful() == doubtful) {
            held += static_cast<std::uint64_t>(
                std::count_if(attempt.places.begin(), attempt.places.end(),
                              [&](const ModelPlace& place) { return counts_in(place, use); }));
        }
    }
    return held;
}

std::string ModelLedger::passed_ceiling(const WatchedKeys& keys) const {
    for (const WatchedKeys::Window& window : keys.windows) {
        const CeilingUse use = window.use();
        const std::uint64_t all = written(use) + held(use, true) + held(use, false);
        if (all > use.at_most) {
            return cat(window.key, ": ", std::to_string(all), " of ", std::to_string(use.at_most));
        }
    }
    return {};
}

LedgerView ModelLedger::view(const WatchedKeys& keys) const {
    LedgerView view;
    for (const ModelAttempt& attempt : attempts_) {
        if (attempt.state == ModelAttempt::State::doubt) {
            std::vector<std::string> held;
            for (const ModelPlace& place : attempt.places) {
                held.push_back(place.key);
            }
            view.doubts.emplace_back(attempt.identity.value_or(""), attempt.started,
                                     attempt.expires(), std::move(held));
        }
        view.running += attempt.state == ModelAttempt::State::running ? 1 : 0;
    }
    std::sort(view.doubts.begin(), view.doubts.end());
    view.records = attempts_.size();
    for (const WatchedKeys::Window& window : keys.windows) {
        view.levels.push_back(written(window.use()) + held(window.use(), true));
    }
    for (const std::string& key : keys.quotas) {
        const auto found = members_.find(key);
        view.members.emplace_back();
        if (found != members_.end()) {
            view.members.back().assign(found->second.begin(), found->second.end());
        }
    }
    return view;
}

}  // namespace ration::sim
