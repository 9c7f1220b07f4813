// What operators ask of the SQLite ledger: doubts, quotas, blocks, numbers.
//
// A doubt that an operator has settled leaves a row in `settled`, so that saying it again, after a
// lost answer, is told apart from saying it of something that was never in doubt.
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "ledger/sqlite_ledger.h"

namespace ration {

namespace {

std::int64_t nanos(Wall wall) {
    return wall.time_since_epoch().count();
}

Wall wall(std::int64_t nanos) {
    return Wall(Nanos(nanos));
}

std::uint64_t size_of_file(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

}  // namespace

// ---- words ----

// Of an attempt that is not open.
absl::StatusOr<DoubtOutcome> SqliteLedger::settled_before(const SettleDoubt& settle) {
    const auto compared = [&](bool written) {
        return written == settle.was_written ? DoubtOutcome::already : DoubtOutcome::otherwise;
    };
    SqliteStatement& find = statements_.find_settled;
    find.bind(1, settle.attempt);
    absl::StatusOr<bool> row = find.row();
    if (!row.ok()) {
        return row.status();
    }
    if (*row) {
        const bool written = find.integer(0) != 0;
        find.reset();
        return compared(written);
    }
    statements_.find_attempt.bind(1, settle.attempt);
    row = statements_.find_attempt.row();  // done: by a request of its own
    if (!row.ok()) {
        return row.status();
    }
    statements_.find_attempt.reset();
    return *row ? compared(true) : DoubtOutcome::unknown;
}

absl::Status SqliteLedger::perform(const SettleDoubt& settle, Wall now, LedgerReply& reply) {
    const auto found = open_.find(settle.attempt);
    if (found == open_.end() || found->second.state != State::doubt) {
        reply.found = false;
        reply.doubt = DoubtOutcome::running;
        if (found != open_.end()) {
            return absl::OkStatus();
        }
        const absl::StatusOr<DoubtOutcome> before = settled_before(settle);
        reply.doubt = before.value_or(DoubtOutcome::unknown);
        return before.status();
    }
    const Open& open = end(settle.attempt);
    statements_.insert_settled.bind(1, settle.attempt)
        .bind(2, settle.was_written ? 1 : 0)
        .bind(3, nanos(now));
    if (absl::Status status = statements_.insert_settled.run(); !status.ok()) {
        return status;
    }
    if (!settle.was_written) {
        return delete_attempt(settle.attempt);
    }
    const Settle written{settle.attempt, SettleKind::written, nullptr, {}};
    return settle_written(written, open, now);
}

absl::Status SqliteLedger::perform(const StateMembers& members, Wall, LedgerReply&) {
    members_.erase(absl::string_view(members.key.data(), members.key.size()));
    statements_.clear_members.bind_text(1, members.key);
    if (absl::Status status = statements_.clear_members.run(); !status.ok()) {
        return status;
    }
    for (const std::string& object : members.objects) {
        statements_.insert_member.bind_text(1, members.key).bind_text(2, object);
        if (absl::Status status = statements_.insert_member.run(); !status.ok()) {
            return status;
        }
    }
    return absl::OkStatus();
}

absl::Status SqliteLedger::perform(const PutBlock& block, Wall, LedgerReply&) {
    statements_.put_block.bind_text(1, block.key)
        .bind(2, nanos(block.until))
        .bind(3, block.level)
        .bind(4, nanos(block.forget_at));
    return statements_.put_block.run();
}

absl::Status SqliteLedger::perform(const LiftBlock& block, Wall, LedgerReply& reply) {
    statements_.lift_block.bind_text(1, block.key);
    const absl::Status status = statements_.lift_block.run();
    reply.found = file_.database.changes() > 0;
    return status;
}

// ---- numbers ----

LedgerStats SqliteLedger::stats() const {
    const std::lock_guard lock(mutex_);
    LedgerStats stats = stats_;
    for (const auto& [id, open] : open_) {
        (open.state == State::running ? stats.running : stats.doubtful) += 1;
    }
    stats.file_bytes = size_of_file(options_.path);
    stats.log_bytes = size_of_file(options_.path + "-wal");
    return stats;
}

absl::StatusOr<LedgerRows> SqliteLedger::rows() {
    LedgerRows rows;
    const std::pair<SqliteStatement*, std::uint64_t*> counts[] = {
        {&statements_.row_count_of_attempts, &rows.attempts},
        {&statements_.row_count_of_writes, &rows.writes},
        {&statements_.row_count_of_periods, &rows.periods},
        {&statements_.row_count_of_members, &rows.members},
        {&statements_.row_count_of_blocks, &rows.blocks}};
    for (const auto& [statement, count] : counts) {
        const std::lock_guard lock(mutex_);  // for each alone: requests are judged in between
        statement->bind(1, static_cast<std::int64_t>(max_counted_rows));
        const absl::StatusOr<std::uint64_t> counted = count_in(*statement);
        if (!counted.ok()) {
            return counted.status();
        }
        *count = *counted;
    }
    return rows;
}

absl::StatusOr<std::uint64_t> SqliteLedger::level(const CeilingUse& use) {
    const std::lock_guard lock(mutex_);
    const Place window = window_of(use);
    const absl::StatusOr<std::uint64_t> count = written(use.key, window);
    if (!count.ok()) {
        return count;
    }
    return *count + holds_.held(use.key, window.at, window.ends).doubtful;
}

absl::StatusOr<std::uint64_t> SqliteLedger::level(const QuotaUse& use) {
    const std::lock_guard lock(mutex_);
    const absl::StatusOr<std::uint64_t> count = objects(use.key);
    if (!count.ok()) {
        return count;
    }
    return *count + holds_.held(use.key, 0, 1).doubtful;
}

// ---- lists ----

absl::StatusOr<std::vector<std::string>> SqliteLedger::members(std::string_view key,
                                                               std::string_view after,
                                                               std::size_t limit) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> objects;
    SqliteStatement& rows = statements_.list_members;
    rows.bind_text(1, key).bind(2, static_cast<std::int64_t>(limit)).bind_text(3, after);
    for (absl::StatusOr<bool> row = rows.row(); !row.ok() || *row; row = rows.row()) {
        if (!row.ok()) {
            return row.status();
        }
        objects.emplace_back(rows.bytes(0));
    }
    return objects;
}

std::vector<DoubtfulAttempt> SqliteLedger::doubtful(AttemptId after, std::size_t limit) const {
    const std::lock_guard lock(mutex_);
    std::vector<AttemptId> ids;
    for (const auto& [id, open] : open_) {
        if (open.state == State::doubt && id > after) {
            ids.push_back(id);
        }
    }
    const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(limit, ids.size()));
    std::partial_sort(ids.begin(), end, ids.end());
    ids.erase(end, ids.end());
    std::vector<DoubtfulAttempt> attempts;
    for (const AttemptId id : ids) {
        const Open& open = open_.at(id);
        DoubtfulAttempt attempt{
            id, open.identity, wall(open.started), wall(open.doubt_expires()), {}};
        for (const Place& place : open.places) {
            attempt.keys.push_back(place.key);
        }
        attempts.push_back(std::move(attempt));
    }
    return attempts;
}

absl::StatusOr<std::vector<Block>> SqliteLedger::blocks() {
    const std::lock_guard lock(mutex_);
    std::vector<Block> blocks;
    SqliteStatement& rows = statements_.list_blocks;
    for (absl::StatusOr<bool> row = rows.row(); !row.ok() || *row; row = rows.row()) {
        if (!row.ok()) {
            return row.status();
        }
        blocks.push_back({std::string(rows.bytes(0)), wall(rows.integer(1)),
                          static_cast<std::uint32_t>(rows.integer(2)), wall(rows.integer(3))});
    }
    return blocks;
}

}  // namespace ration
