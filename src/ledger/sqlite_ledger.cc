// One batch is one transaction. Each request is performed in turn and sees what those before it in
// the batch did; if anything fails the transaction is rolled back, memory is put back, and every
// request of the batch fails with the same status. An attempt that such a batch would have ended is
// in doubt from then on: nobody knows what the upstream did with it, and its places stay held.
#include "ledger/sqlite_ledger.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "ledger/stored_response.h"

namespace ration {

namespace {

constexpr std::size_t max_cached_counts = 100'000;
// A quota has no window whose end would settle a doubt about it.
constexpr Nanos quota_doubt_kept = std::chrono::hours(24);
constexpr AttemptId granted_at_once = 10'000;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

std::int64_t nanos(Wall wall) {
    return wall.time_since_epoch().count();
}

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? never : sum;
}

// Where a request's write would count for this ceiling: in the window that it was judged in, also
// when midnight has passed since the request came (it waited in the queue, or was held). Nobody has
// judged whether the next day has room for it.
Place place_of(const CeilingUse& use, Wall now) {
    Place place;
    place.key = use.key;
    place.ends = nanos(use.window.end);
    if (use.kind == CeilingKind::local_day) {
        place.kind = PlaceKind::day;
        const std::int64_t start = use.window.start ? nanos(*use.window.start) : nanos(now);
        place.at = std::clamp(nanos(now), start, std::max(start, place.ends - 1));
    } else {
        place.kind = PlaceKind::period;
        place.at = use.window.start ? nanos(*use.window.start) : 0;
    }
    return place;
}

}  // namespace

Place SqliteLedger::window_of(const CeilingUse& use) {
    Place window;
    window.kind = use.kind == CeilingKind::local_day ? PlaceKind::day : PlaceKind::period;
    window.at = use.window.start ? nanos(*use.window.start) : 0;
    window.ends = window.kind == PlaceKind::day ? nanos(use.window.end) : window.at + 1;
    return window;
}

std::int64_t SqliteLedger::Open::doubt_expires() const {
    if (!identity.empty()) {
        return saturating_add(started, keep);
    }
    std::int64_t latest = started;
    for (const Place& place : places) {
        latest = std::max(latest, place.ends);
    }
    return latest;
}

void SqliteLedger::apply(std::span<const LedgerRequest> requests, Wall now,
                         std::span<LedgerReply> replies) {
    const std::lock_guard lock(mutex_);
    journal_.clear();
    const absl::Status status = apply_all(requests, now, replies);
    stats_.healthy = status.ok();
    if (status.ok()) {
        ++stats_.commits;
        return;
    }
    ++stats_.failures;
    stats_.last_error = std::string(status.message());
    undo();
    doubt_unsettled(requests);
    for (LedgerReply& reply : replies) {
        reply = LedgerReply{};
        reply.status = absl::UnavailableError(status.message());
    }
}

absl::Status SqliteLedger::apply_all(std::span<const LedgerRequest> requests, Wall now,
                                     std::span<LedgerReply> replies) {
    if (absl::Status status = statements_.begin.run(); !status.ok()) {
        return status;
    }
    if (absl::Status status = save_doubts(); !status.ok()) {
        return status;
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
        replies[i] = LedgerReply{};
        const absl::Status status = std::visit(
            [&](const auto& request) { return perform(request, now, replies[i]); }, requests[i]);
        if (!status.ok()) {
            return status;
        }
    }
    return commit();
}

absl::Status SqliteLedger::commit() {
    meet_sync_point("ledger.before_reserve_commit", "ledger.before_settle_commit");
    if (absl::Status status = statements_.commit.run(); !status.ok()) {
        return status;
    }
    unsaved_doubts_.clear();
    meet_sync_point("ledger.after_reserve_commit", "ledger.after_settle_commit");
    return absl::OkStatus();
}

// A batch that starts attempts meets the one, a batch that ends some the other.
void SqliteLedger::meet_sync_point(std::string_view reserves, std::string_view settles) const {
    if (!options_.sync_point) {
        return;
    }
    const auto ended = [](const JournalEntry& entry) {
        return entry.kind == JournalEntry::Kind::ended;
    };
    if (std::any_of(journal_.begin(), journal_.end(), std::not_fn(ended))) {
        options_.sync_point(reserves);
    }
    if (std::any_of(journal_.begin(), journal_.end(), ended)) {
        options_.sync_point(settles);
    }
}

void SqliteLedger::undo() {
    // Fails when the error itself has ended the transaction; either way none is open afterwards.
    (void)statements_.rollback.run();
    counts_.clear();
    members_.clear();
    for (auto entry = journal_.rbegin(); entry != journal_.rend(); ++entry) {
        switch (entry->kind) {
            case JournalEntry::Kind::started: {
                const auto found = open_.find(entry->attempt);
                if (found != open_.end()) {
                    holds_.remove(entry->attempt, found->second.places);
                    open_.erase(found);
                    unsaved_doubts_.erase(entry->attempt);
                }
                break;
            }
            case JournalEntry::Kind::retried:
                open_[entry->attempt] = entry->before;
                break;
            case JournalEntry::Kind::ended:
                entry->before.state = State::doubt;
                holds_.remove(entry->attempt, entry->before.places);
                holds_.add(entry->attempt, entry->before.places, true);
                open_[entry->attempt] = std::move(entry->before);
                unsaved_doubts_.insert(entry->attempt);
                break;
        }
    }
    granted_ = next_id_ - 1;  // whatever was written of it is gone
    journal_.clear();
}

// A batch may fail before it came to some of its settlements; their attempts are over all the same.
void SqliteLedger::doubt_unsettled(std::span<const LedgerRequest> requests) {
    for (const LedgerRequest& request : requests) {
        const Settle* settle = std::get_if<Settle>(&request);
        const auto found = settle == nullptr ? open_.end() : open_.find(settle->attempt);
        if (found != open_.end() && found->second.state == State::running) {
            found->second.state = State::doubt;
            holds_.set_doubtful(settle->attempt, found->second.places);
            unsaved_doubts_.insert(settle->attempt);
        }
    }
}

absl::Status SqliteLedger::save_doubts() {
    for (const AttemptId id : unsaved_doubts_) {
        const auto found = open_.find(id);
        if (found == open_.end()) {
            continue;
        }
        const Open& open = found->second;
        statements_.change_attempt.bind(1, id)
            .bind(2, static_cast<int>(State::doubt))
            .bind(3, open.second_try ? 1 : 0)
            .bind(4, open.doubt_expires());
        if (absl::Status status = statements_.change_attempt.run(); !status.ok()) {
            return status;
        }
    }
    return absl::OkStatus();
}

// ---- reserve ----

// What a key's record says comes before every ceiling. But most keys are new, and then the
// attempt's own insertion finds that out: only a key that is known, or for which there is no room,
// is looked up, and judged once more when its record had expired.
absl::Status SqliteLedger::perform(const Reserve& reserve, Wall now, LedgerReply& reply) {
    Reserved& reserved = reply.reserved;
    for (bool looked_up = !reserve.key.has_value();; looked_up = true) {
        const absl::StatusOr<bool> full = judge_room(reserve, reserved);
        if (!full.ok() || (*full && looked_up)) {
            return full.status();
        }
        if (!*full) {
            const absl::StatusOr<bool> started = start(reserve, now, reserved);
            if (!started.ok() || *started) {
                return started.status();
            }
        }
        reserved = Reserved{};
        const absl::StatusOr<bool> answered = look_up(*reserve.key, now, reserved);
        if (!answered.ok() || *answered) {
            return answered.status();
        }
    }
}

absl::StatusOr<bool> SqliteLedger::judge_room(const Reserve& reserve, Reserved& reserved) {
    absl::StatusOr<bool> full = judge_ceilings(reserve.ceilings, reserved);
    if (full.ok() && !*full) {
        full = judge_quotas(reserve.quotas, reserved);
    }
    return full;
}

absl::StatusOr<bool> SqliteLedger::look_up(const IdempotencyKey& key, Wall now,
                                           Reserved& reserved) {
    SqliteStatement& find = statements_.find_identity;
    find.bind_blob(1, key.identity);
    const absl::StatusOr<bool> row = find.row();
    if (!row.ok() || !*row) {
        return row;
    }
    const AttemptId id = find.integer(AttemptColumn::id);
    const absl::StatusOr<bool> answered = judge_record(key, now, id, reserved);
    find.reset();
    return answered;
}

// With `find_identity` on the key's row.
absl::StatusOr<bool> SqliteLedger::judge_record(const IdempotencyKey& key, Wall now, AttemptId id,
                                                Reserved& reserved) {
    SqliteStatement& find = statements_.find_identity;
    const auto found = open_.find(id);
    const State state = found == open_.end() ? State::done : found->second.state;
    const std::int64_t expires = state == State::doubt ? found->second.doubt_expires()
                                                       : find.integer(AttemptColumn::expires);
    if (state != State::running && expires <= nanos(now)) {
        if (state == State::doubt) {
            const Open& ended = end(id);
            if (absl::Status status = write_places(id, ended.places); !status.ok()) {
                return status;
            }
        }
        find.reset();
        const absl::Status deleted = delete_attempt(id);
        return deleted.ok() ? absl::StatusOr<bool>(false) : deleted;
    }
    const std::string_view expected(reinterpret_cast<const char*>(key.fingerprint.data()),
                                    key.fingerprint.size());
    if (find.bytes(AttemptColumn::fingerprint) != expected) {
        reserved.verdict = ReserveVerdict::mismatch;
        return true;
    }
    if (state == State::running) {
        reserved.verdict = ReserveVerdict::in_progress;
        return true;
    }
    if (state == State::doubt) {
        if (key.doubt == DoubtRule::refuse) {
            reserved.verdict = ReserveVerdict::in_doubt;
            return true;
        }
        const absl::Status status = retry(id, reserved);
        if (key.doubt == DoubtRule::probe) {
            reserved.verdict = ReserveVerdict::probe;
        }
        return status.ok() ? absl::StatusOr<bool>(true) : status;
    }
    // Too large to keep, settled by an operator's word, or unreadable: one damaged record must not
    // fail the batch that others are in.
    std::optional<HeaderList> headers;
    if (!find.is_null(AttemptColumn::status)) {
        headers = unpack_headers(find.bytes(AttemptColumn::headers));
    }
    if (!headers) {
        reserved.verdict = ReserveVerdict::not_kept;
        return true;
    }
    reserved.verdict = ReserveVerdict::replay;
    reserved.response.status = static_cast<int>(find.integer(AttemptColumn::status));
    reserved.response.headers = std::move(*headers);
    reserved.response.body = find.bytes(AttemptColumn::body);
    return true;
}

absl::StatusOr<bool> SqliteLedger::judge_ceilings(std::span<const CeilingUse> ceilings,
                                                  Reserved& reserved) {
    for (std::size_t i = 0; i < ceilings.size(); ++i) {
        const CeilingUse& use = ceilings[i];
        const Place window = window_of(use);
        const absl::StatusOr<std::uint64_t> count = written(use.key, window);
        if (!count.ok()) {
            return count.status();
        }
        const Held held = holds_.held(use.key, window.at, window.ends);
        reserved.index = static_cast<std::uint8_t>(i);
        reserved.level = *count + held.doubtful;
        if (reserved.level >= use.at_most) {
            reserved.verdict = ReserveVerdict::ceiling_reached;
            return true;
        }
        if (reserved.level + held.reserved >= use.at_most) {
            reserved.verdict = ReserveVerdict::contended;
            return true;
        }
    }
    return false;
}

absl::StatusOr<bool> SqliteLedger::judge_quotas(std::span<const QuotaUse> quotas,
                                                Reserved& reserved) {
    for (std::size_t i = 0; i < quotas.size(); ++i) {
        const QuotaUse& use = quotas[i];
        const absl::StatusOr<std::uint64_t> count = objects(use.key);
        if (!count.ok()) {
            return count.status();
        }
        const Held held = holds_.held(use.key, 0, 1);
        reserved.index = static_cast<std::uint8_t>(i);
        reserved.quota = true;
        reserved.level = *count + held.doubtful;
        if (reserved.level >= use.at_most) {
            reserved.verdict = ReserveVerdict::quota_reached;
            return true;
        }
        if (reserved.level + held.reserved >= use.at_most) {
            reserved.verdict = ReserveVerdict::contended;
            return true;
        }
    }
    return false;
}

// Numbers are taken from the file by the block, so that none is used again after a restart: an
// operator who settles a doubt by its number must never meet another attempt.
absl::Status SqliteLedger::grant_ids() {
    if (next_id_ <= granted_) {
        return absl::OkStatus();
    }
    granted_ = next_id_ + granted_at_once - 1;
    return statements_.note_granted.bind(1, granted_).run();
}

absl::StatusOr<bool> SqliteLedger::start(const Reserve& reserve, Wall now, Reserved& reserved) {
    Open open;
    open.started = nanos(now);
    for (const CeilingUse& use : reserve.ceilings) {
        open.places.push_back(place_of(use, now));
    }
    for (const QuotaUse& use : reserve.quotas) {
        const std::int64_t ends = saturating_add(open.started, quota_doubt_kept.count());
        open.places.push_back({PlaceKind::quota, std::string(use.key), 0, ends});
    }
    if (absl::Status status = grant_ids(); !status.ok()) {
        return status;
    }
    const AttemptId id = next_id_;
    const std::string places = pack_places(open.places);
    SqliteStatement& insert = statements_.insert_attempt;
    insert.bind(1, id).bind(2, static_cast<int>(State::running)).bind(5, open.started);
    insert.bind(6, never).bind(7, 0).bind_text(8, places).bind(9, 0);
    if (reserve.key) {
        open.identity = reserve.key->identity;
        open.keep = reserve.key->keep.count();
        insert.bind_blob(3, reserve.key->identity).bind(7, open.keep);
        insert.bind_blob(4, {reinterpret_cast<const char*>(reserve.key->fingerprint.data()),
                             reserve.key->fingerprint.size()});
    }
    if (absl::Status status = insert.run(); !status.ok()) {
        return status;
    }
    if (reserve.key && file_.database.changes() == 0) {
        return false;
    }
    ++next_id_;
    holds_.add(id, open.places, false);
    open_.emplace(id, std::move(open));
    journal_.push_back({JournalEntry::Kind::started, id, {}});
    reserved = Reserved{};
    reserved.attempt = id;
    return true;
}

absl::Status SqliteLedger::retry(AttemptId id, Reserved& reserved) {
    Open& open = open_[id];
    journal_.push_back({JournalEntry::Kind::retried, id, open});
    open.state = State::running;
    open.second_try = true;
    statements_.change_attempt.bind(1, id)
        .bind(2, static_cast<int>(State::running))
        .bind(3, 1)
        .bind(4, never);
    reserved = Reserved{};
    reserved.attempt = id;
    reserved.second_try = true;
    return statements_.change_attempt.run();
}

// ---- settle ----

absl::Status SqliteLedger::perform(const Settle& settle, Wall now, LedgerReply& reply) {
    if (settle.attempt == 0) {
        return change_members(settle.quotas);
    }
    if (open_.find(settle.attempt) == open_.end()) {
        reply.found = false;
        return absl::OkStatus();
    }
    const Open& open = end(settle.attempt);
    switch (settle.kind) {
        case SettleKind::written:
            return settle_written(settle, open, now);
        case SettleKind::failed:
            if (open.second_try) {
                if (absl::Status status = write_places(settle.attempt, open.places); !status.ok()) {
                    return status;
                }
            }
            return delete_attempt(settle.attempt);
        case SettleKind::not_sent:
            return open.second_try ? settle_doubt(settle.attempt, open)
                                   : delete_attempt(settle.attempt);
        case SettleKind::doubt:
            return settle_doubt(settle.attempt, open);
        case SettleKind::absent:
            return delete_attempt(settle.attempt);
    }
    return absl::OkStatus();
}

const SqliteLedger::Open& SqliteLedger::end(AttemptId id) {
    const auto found = open_.find(id);
    journal_.push_back({JournalEntry::Kind::ended, id, std::move(found->second)});
    open_.erase(found);
    const Open& open = journal_.back().before;
    holds_.remove(id, open.places);
    return open;
}

absl::Status SqliteLedger::settle_written(const Settle& settle, const Open& open, Wall now) {
    if (absl::Status status = write_places(settle.attempt, open.places); !status.ok()) {
        return status;
    }
    if (absl::Status status = change_members(settle.quotas); !status.ok()) {
        return status;
    }
    if (open.identity.empty()) {
        return delete_attempt(settle.attempt);
    }
    SqliteStatement& finish = statements_.finish_attempt;
    finish.bind(1, settle.attempt).bind(2, saturating_add(nanos(now), open.keep));
    std::string headers;
    if (settle.response != nullptr) {
        headers = pack_headers(settle.response->headers);
        finish.bind(3, settle.response->status).bind_text(4, headers);
        finish.bind_blob(5, settle.response->body);
    }
    return finish.run();
}

absl::Status SqliteLedger::settle_doubt(AttemptId id, const Open& open) {
    if (open.identity.empty() && open.places.empty()) {
        return delete_attempt(id);
    }
    Open doubtful = open;
    doubtful.state = State::doubt;
    statements_.change_attempt.bind(1, id)
        .bind(2, static_cast<int>(State::doubt))
        .bind(3, open.second_try ? 1 : 0)
        .bind(4, doubtful.doubt_expires());
    holds_.add(id, doubtful.places, true);
    open_[id] = std::move(doubtful);
    return statements_.change_attempt.run();
}

absl::Status SqliteLedger::change_members(std::span<const QuotaChange> changes) {
    for (const QuotaChange& change : changes) {
        SqliteStatement& statement =
            change.up ? statements_.insert_member : statements_.delete_member;
        statement.bind_text(1, change.key).bind_text(2, change.object);
        if (absl::Status status = statement.run(); !status.ok()) {
            return status;
        }
        const auto counted = members_.find(absl::string_view(change.key.data(), change.key.size()));
        if (counted != members_.end()) {  // an id that was there, or was not, changes nothing
            const auto changed = static_cast<std::uint64_t>(file_.database.changes());
            counted->second = change.up ? counted->second + changed : counted->second - changed;
        }
    }
    return absl::OkStatus();
}

absl::Status SqliteLedger::write_places(AttemptId id, const std::vector<Place>& places) {
    for (const Place& place : places) {
        if (place.kind == PlaceKind::quota) {
            continue;  // its object is stated with the settlement
        }
        const bool day = place.kind == PlaceKind::day;
        SqliteStatement& statement = day ? statements_.insert_write : statements_.add_period;
        statement.bind_text(1, place.key).bind(2, place.at).bind(3, day ? id : place.ends);
        if (absl::Status status = statement.run(); !status.ok()) {
            return status;
        }
        const auto cached = counts_.find(place.key);
        if (cached != counts_.end() && place.at >= cached->second.from &&
            place.at < cached->second.to) {
            ++cached->second.count;
        }
    }
    return absl::OkStatus();
}

absl::Status SqliteLedger::delete_attempt(AttemptId id) {
    statements_.delete_attempt.bind(1, id);
    return statements_.delete_attempt.run();
}

// ---- counts ----

absl::StatusOr<std::uint64_t> SqliteLedger::written(std::string_view key, const Place& window) {
    const auto cached = counts_.find(absl::string_view(key.data(), key.size()));
    if (cached != counts_.end() && cached->second.from == window.at &&
        cached->second.to == window.ends) {
        return cached->second.count;
    }
    SqliteStatement& statement =
        window.kind == PlaceKind::day ? statements_.count_writes : statements_.period_level;
    statement.bind_text(1, key).bind(2, window.at);
    if (window.kind == PlaceKind::day) {
        statement.bind(3, window.ends);
    }
    const absl::StatusOr<std::uint64_t> count = count_in(statement);
    if (!count.ok()) {
        return count;
    }
    if (counts_.size() >= max_cached_counts) {
        counts_.clear();
    }
    counts_[std::string(key)] = {window.at, window.ends, *count};
    return count;
}

absl::StatusOr<std::uint64_t> SqliteLedger::objects(std::string_view key) {
    const auto counted = members_.find(absl::string_view(key.data(), key.size()));
    if (counted != members_.end()) {
        return counted->second;
    }
    statements_.count_members.bind_text(1, key);
    const absl::StatusOr<std::uint64_t> count = count_in(statements_.count_members);
    if (!count.ok()) {
        return count;
    }
    if (members_.size() >= max_cached_counts) {
        members_.clear();
    }
    members_[std::string(key)] = *count;
    return count;
}

absl::StatusOr<std::uint64_t> SqliteLedger::count_in(SqliteStatement& statement) {
    const absl::StatusOr<bool> row = statement.row();
    if (!row.ok()) {
        return row.status();
    }
    const std::uint64_t count = *row ? static_cast<std::uint64_t>(statement.integer(0)) : 0;
    statement.reset();
    return count;
}

}  // namespace ration
