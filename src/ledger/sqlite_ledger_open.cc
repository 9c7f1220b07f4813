// Opening and sweeping: what the SQLite ledger does beside judging requests.
//
// At start every attempt that was running belongs to a process that is gone (the file is owned by
// one at a time), so it is in doubt at once: no lock has to run out.
#include <algorithm>
#include <utility>

#include "ledger/sqlite_ledger.h"
#include "ledger/stored_response.h"

namespace ration {

namespace {

// No ledger gets there: at a million attempts a second it would take 146,000 years.
constexpr std::int64_t last_attempt_id = std::int64_t{1} << 62;

std::int64_t nanos(Wall wall) {
    return wall.time_since_epoch().count();
}

}  // namespace

SqliteLedger::SqliteLedger(LedgerFile file, SqliteStatements statements,
                           const SqliteLedgerOptions& options)
    : file_(std::move(file)), statements_(std::move(statements)), options_(options) {}

absl::StatusOr<std::unique_ptr<SqliteLedger>> SqliteLedger::open(
    const SqliteLedgerOptions& options) {
    absl::StatusOr<LedgerFile> file = open_ledger_file(options.path);
    if (!file.ok()) {
        return file.status();
    }
    absl::StatusOr<SqliteStatements> statements = SqliteStatements::prepare(file->database);
    if (!statements.ok()) {
        return named_error(options.path, statements.status());
    }
    std::unique_ptr<SqliteLedger> ledger(
        new SqliteLedger(std::move(*file), std::move(*statements), options));
    if (absl::Status status = ledger->load(); !status.ok()) {
        return named_error(options.path, status);
    }
    return ledger;
}

absl::StatusOr<std::unique_ptr<Ledger>> open_sqlite_ledger(const SqliteLedgerOptions& options) {
    absl::StatusOr<std::unique_ptr<SqliteLedger>> ledger = SqliteLedger::open(options);
    if (!ledger.ok()) {
        return ledger.status();
    }
    return std::unique_ptr<Ledger>(std::move(*ledger));
}

// An id that was given out once must not be given out again: a fact that is no number is damage,
// and -1 here.
absl::Status SqliteLedger::load_granted() {
    for (const char* highest :
         {"SELECT coalesce(max(id), 0) FROM attempts",
          "SELECT coalesce(max(attempt), 0) FROM writes",
          "SELECT coalesce(min(iif(typeof(value)='integer', value, -1)), 0) FROM facts"
          " WHERE name='attempts_granted'"}) {
        const absl::StatusOr<std::int64_t> id = file_.database.integer(highest);
        if (!id.ok()) {
            return id.status();
        }
        if (*id < 0 || *id > last_attempt_id) {
            return absl::FailedPreconditionError(
                "damaged: how many attempts were granted is unreadable");
        }
        granted_ = std::max(granted_, *id);
    }
    next_id_ = granted_ + 1;
    return absl::OkStatus();
}

absl::Status SqliteLedger::load() {
    if (absl::Status status = load_granted(); !status.ok()) {
        return status;
    }
    SqliteStatement& rows = statements_.open_attempts;
    for (absl::StatusOr<bool> row = rows.row(); !row.ok() || *row; row = rows.row()) {
        if (!row.ok()) {
            return row.status();
        }
        std::optional<std::vector<Place>> places = unpack_places(rows.bytes(6));
        if (!places) {
            return absl::FailedPreconditionError("damaged: an attempt's places are unreadable");
        }
        Open open;
        open.state = State::doubt;
        open.identity = rows.bytes(2);
        open.started = rows.integer(3);
        open.keep = rows.integer(5);
        open.places = std::move(*places);
        const AttemptId id = rows.integer(0);
        holds_.add(id, open.places, true);
        unsaved_doubts_.insert(id);
        open_.emplace(id, std::move(open));
    }
    // Written down with an empty batch, so that a file that cannot be written is found now.
    return apply_all({}, Wall{}, {});
}

void SqliteLedger::disown() {
    const std::lock_guard lock(mutex_);
    for (auto& [id, open] : open_) {
        if (open.state == State::running) {
            open.state = State::doubt;
            holds_.set_doubtful(id, open.places);
            unsaved_doubts_.insert(id);
        }
    }
}

absl::StatusOr<bool> SqliteLedger::sweep(Wall now, std::size_t budget) {
    const std::lock_guard lock(mutex_);
    journal_.clear();
    const std::uint64_t swept_before = stats_.swept;
    absl::StatusOr<std::size_t> most = sweep_all(now, budget);
    stats_.healthy = most.ok();
    if (!most.ok()) {
        ++stats_.failures;
        stats_.last_error = std::string(most.status().message());
        stats_.swept = swept_before;
        undo();
        return most.status();
    }
    return *most >= budget;
}

absl::StatusOr<std::size_t> SqliteLedger::sweep_all(Wall now, std::size_t budget) {
    absl::Status status = statements_.begin.run();
    if (status.ok()) {
        status = save_doubts();
    }
    if (status.ok() && !stats_.healthy) {
        status = statements_.note_written.bind(1, nanos(now)).run();
    }
    std::size_t most = 0;
    if (status.ok()) {
        const absl::StatusOr<std::size_t> attempts = sweep_attempts(now, budget);
        most = attempts.value_or(0);
        status = attempts.status();
    }
    const std::pair<SqliteStatement*, std::int64_t> others[] = {
        {&statements_.expire_writes, nanos(now - writes_kept)},
        {&statements_.expire_periods, nanos(now - writes_kept)},
        {&statements_.expire_settled, nanos(now - settled_kept)},
        {&statements_.expire_blocks, nanos(now)}};
    for (const auto& [statement, before] : others) {
        if (status.ok()) {
            status = statement->bind(1, before).bind(2, static_cast<std::int64_t>(budget)).run();
            const auto removed = static_cast<std::size_t>(file_.database.changes());
            stats_.swept += removed;
            most = std::max(most, removed);
        }
    }
    if (status.ok()) {
        status = commit();
    }
    if (!status.ok()) {
        return status;
    }
    return most;
}

absl::StatusOr<std::size_t> SqliteLedger::sweep_attempts(Wall now, std::size_t budget) {
    std::vector<AttemptId> expired;
    SqliteStatement& rows = statements_.expired_attempts;
    rows.bind(1, nanos(now)).bind(2, static_cast<std::int64_t>(budget));
    for (absl::StatusOr<bool> row = rows.row(); !row.ok() || *row; row = rows.row()) {
        if (!row.ok()) {
            return row.status();
        }
        expired.push_back(rows.integer(0));
    }
    for (const AttemptId id : expired) {
        const auto found = open_.find(id);
        if (found != open_.end()) {
            if (found->second.state == State::running) {
                continue;
            }
            const Open& open = end(id);
            if (absl::Status status = write_places(id, open.places); !status.ok()) {
                return status;
            }
        }
        if (absl::Status status = delete_attempt(id); !status.ok()) {
            return status;
        }
        ++stats_.swept;
    }
    return expired.size();
}

}  // namespace ration
