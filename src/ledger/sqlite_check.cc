// `ration ledger check`: structure by SQLite's own check, then meaning, table by table.
#include "absl/strings/str_cat.h"
#include "ledger/sqlite_file.h"
#include "ledger/stored_response.h"
#include "ration/ledger.h"

namespace ration {

namespace {

// Each query finds rows that no ledger writes.
struct Rule {
    const char* sql;
    const char* finding;
};

constexpr Rule rules[] = {
    {"SELECT count(*) FROM attempts WHERE state NOT IN (1,2,3)", "attempts in an unknown state"},
    {"SELECT count(*) FROM attempts WHERE (identity IS NULL) <> (fingerprint IS NULL)",
     "attempts with half an idempotency key"},
    {"SELECT count(*) FROM attempts WHERE state=3 AND identity IS NULL",
     "finished attempts without a key"},
    {"SELECT count(*) FROM attempts WHERE fingerprint IS NOT NULL AND length(fingerprint)<>32",
     "fingerprints of a wrong length"},
    {"SELECT count(*) FROM attempts WHERE state=3 AND status IS NOT NULL AND"
     " (status NOT BETWEEN 200 AND 299 OR headers IS NULL OR body IS NULL)",
     "kept responses that are not a whole 2xx answer"},
    {"SELECT count(*) FROM periods WHERE written<1 OR ends<=start", "billing periods out of range"},
    {"SELECT count(*) FROM blocks WHERE until>forget_at OR level<0", "blocks out of range"},
};

constexpr Rule token_rule = {
    "SELECT count(*) FROM tokens WHERE length(digest)<>32 OR last_used<created OR id=''",
    "issued tokens that nobody can have"};

void check_rule(SqliteDatabase& database, const Rule& rule, std::string& findings) {
    absl::StatusOr<std::int64_t> count = database.integer(rule.sql);
    if (!count.ok()) {
        absl::StrAppend(&findings, count.status().message(), "\n");
    } else if (*count != 0) {
        absl::StrAppend(&findings, *count, " ", rule.finding, "\n");
    }
}

absl::Status check_packed(SqliteDatabase& database, std::string& findings) {
    absl::StatusOr<SqliteStatement> rows =
        database.prepare("SELECT id,places,coalesce(headers,'') FROM attempts");
    if (!rows.ok()) {
        return rows.status();
    }
    for (absl::StatusOr<bool> row = rows->row(); !row.ok() || *row; row = rows->row()) {
        if (!row.ok()) {
            return row.status();
        }
        if (!unpack_places(rows->bytes(1)) || !unpack_headers(rows->bytes(2))) {
            absl::StrAppend(&findings, "attempt ", rows->integer(0), ": unreadable field\n");
        }
    }
    return absl::OkStatus();
}

}  // namespace

absl::Status check_sqlite_ledger(const std::string& path) {
    // Nothing is read yet, and no lock file is left beside a file that is not there.
    absl::StatusOr<SqliteDatabase> database =
        SqliteDatabase::open(path, SqliteDatabase::Mode::read_write);
    if (!database.ok()) {
        return absl::NotFoundError(absl::StrCat(path, ": ", database.status().message()));
    }
    if (absl::Status looked = look_at_file(path); !looked.ok()) {
        return looked;
    }
    absl::StatusOr<FileClaim> claim = FileClaim::take(path);
    if (!claim.ok()) {
        return absl::UnavailableError(claim.status().message());
    }
    absl::Status alone = database->execute("PRAGMA locking_mode=EXCLUSIVE");
    if (alone.ok()) {
        alone = database->integer("PRAGMA application_id").status();
    }
    if (alone.code() == absl::StatusCode::kAborted) {
        return absl::UnavailableError(absl::StrCat(path, ": in use by another process"));
    }
    if (absl::Status known = recognise_ledger(*database, path); !known.ok()) {
        return known;
    }
    std::string findings;
    absl::StatusOr<std::string> sound = database->text("PRAGMA integrity_check(20)");
    if (!sound.ok() || *sound != "ok") {
        findings = sound.ok() ? *sound + "\n" : std::string(sound.status().message()) + "\n";
    }
    for (const Rule& rule : rules) {
        check_rule(*database, rule, findings);
    }
    const auto tokens = database->integer("SELECT count(*) FROM sqlite_schema WHERE name='tokens'");
    if (tokens.ok() && *tokens != 0) {  // a file of an older program has none yet
        check_rule(*database, token_rule, findings);
    }
    if (absl::Status status = check_packed(*database, findings); !status.ok()) {
        absl::StrAppend(&findings, status.message(), "\n");
    }
    if (findings.empty()) {
        return absl::OkStatus();
    }
    findings.pop_back();
    return absl::DataLossError(absl::StrCat(path, ": ", findings));
}

}  // namespace ration
