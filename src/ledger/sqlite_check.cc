// `ration ledger check`: structure by SQLite's own check, then meaning, table by table.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "ledger/sqlite_file.h"
#include "ledger/sqlite_pages.h"
#include "ledger/stored_response.h"
#include "ration/ledger.h"

namespace ration {

namespace {

// What a ledger writes into a column: SQLite keeps whatever type it is given.
struct Column {
    const char* table;
    const char* name;
    const char* good;  // in SQL; anything but true is a finding
};

constexpr Column columns[] = {
    {"facts", "name", "typeof(name)='text'"},
    {"facts", "value",
     "CASE name WHEN 'attempts_granted' THEN typeof(value)='integer' AND value BETWEEN 0 AND 1<<62"
     " WHEN 'written_at' THEN typeof(value)='integer' AND value>=0 ELSE 1 END"},
    {"attempts", "id", "id BETWEEN 1 AND 1<<62"},
    {"attempts", "state", "typeof(state)='integer' AND state IN (1,2,3)"},
    {"attempts", "identity",
     "identity IS NULL OR (typeof(identity)='blob' AND length(identity)>0)"},
    {"attempts", "fingerprint",
     "fingerprint IS NULL OR (typeof(fingerprint)='blob' AND length(fingerprint)=32)"},
    {"attempts", "started_at", "typeof(started_at)='integer' AND started_at>=0"},
    {"attempts", "expires_at", "typeof(expires_at)='integer' AND expires_at>=0"},
    {"attempts", "keep_for", "typeof(keep_for)='integer' AND keep_for>=0"},
    {"attempts", "places", "typeof(places)='text'"},
    {"attempts", "second_try", "typeof(second_try)='integer' AND second_try IN (0,1)"},
    {"attempts", "status",
     "status IS NULL OR (typeof(status)='integer' AND status BETWEEN 200 AND 299)"},
    {"attempts", "headers", "headers IS NULL OR typeof(headers)='text'"},
    {"attempts", "body", "body IS NULL OR typeof(body)='blob'"},
    {"writes", "key", "typeof(key)='text' AND key<>''"},
    {"writes", "at", "typeof(at)='integer' AND at>=0"},
    {"writes", "attempt", "typeof(attempt)='integer' AND attempt BETWEEN 1 AND 1<<62"},
    {"periods", "key", "typeof(key)='text' AND key<>''"},
    {"periods", "start", "typeof(start)='integer' AND start>=0"},
    {"periods", "ends", "typeof(ends)='integer'"},
    {"periods", "written", "typeof(written)='integer'"},
    {"members", "key", "typeof(key)='text' AND key<>''"},
    {"members", "object", "typeof(object)='text'"},
    {"blocks", "key", "typeof(key)='text' AND key<>''"},
    {"blocks", "until", "typeof(until)='integer' AND until>=0"},
    {"blocks", "level", "typeof(level)='integer' AND level BETWEEN 0 AND 4294967295"},
    {"blocks", "forget_at", "typeof(forget_at)='integer'"},
    {"settled", "attempt", "attempt>0"},
    {"settled", "written", "typeof(written)='integer' AND written IN (0,1)"},
    {"settled", "at", "typeof(at)='integer' AND at>=0"},
    {"tokens", "id", "typeof(id)='text' AND id<>''"},
    {"tokens", "digest", "typeof(digest)='blob' AND length(digest)=32"},
    {"tokens", "kind", "typeof(kind)='text' AND kind<>''"},
    {"tokens", "owner_kind", "typeof(owner_kind)='text' AND owner_kind<>''"},
    {"tokens", "owner", "typeof(owner)='text' AND owner<>''"},
    {"tokens", "numbers", "typeof(numbers)='text'"},
    {"tokens", "name", "typeof(name)='text'"},
    {"tokens", "created", "typeof(created)='integer' AND created>=0"},
    {"tokens", "last_used", "typeof(last_used)='integer'"},
};

// How columns of a row go together. Each condition finds rows that no ledger writes.
struct Rule {
    const char* table;
    const char* bad;
    const char* finding;
};

constexpr Rule rules[] = {
    {"attempts", "(identity IS NULL) <> (fingerprint IS NULL)",
     "attempts with half an idempotency key"},
    {"attempts", "state=3 AND identity IS NULL", "finished attempts without a key"},
    {"attempts", "identity IS NULL AND keep_for<>0", "attempts that keep an answer without a key"},
    {"attempts", "state<>3 AND (status IS NOT NULL OR headers IS NOT NULL OR body IS NOT NULL)",
     "unfinished attempts with an answer"},
    {"attempts", "state=2 AND expires_at<started_at", "doubts that end before they begin"},
    {"attempts", "(status IS NULL) <> (headers IS NULL) OR (status IS NULL) <> (body IS NULL)",
     "kept responses that are not whole"},
    {"periods", "written<1 OR ends<=start", "billing periods out of range"},
    {"blocks", "until>forget_at", "blocks out of range"},
    {"tokens", "last_used<created", "issued tokens used before they were made"},
};

class Findings {
public:
    explicit Findings(SqliteDatabase& database) : database_(database) {}

    void note(std::string_view finding) { text_ += cat(finding, "\n"); }
    void note(const absl::Status& status) {
        if (!status.ok()) {
            note(std::string(status.message()));
        }
    }
    // Rows of that table for which the condition is true. A file of an older program may have no
    // such table yet.
    void count(const char* table, const std::string& bad, std::string_view finding) {
        const auto there = database_.integer(
            cat("SELECT count(*) FROM sqlite_schema WHERE type='table' AND name='", table, "'"));
        if (there.ok() && *there == 0) {
            return;
        }
        const auto rows = database_.integer(cat("SELECT count(*) FROM ", table, " WHERE ", bad));
        if (!rows.ok()) {
            note(rows.status());
        } else if (*rows != 0) {
            note(cat(*rows, " ", finding));
        }
    }
    [[nodiscard]] absl::Status of(const std::string& path) {
        if (text_.empty()) {
            return absl::OkStatus();
        }
        text_.pop_back();
        return absl::DataLossError(cat(path, ": ", text_));
    }

private:
    SqliteDatabase& database_;
    std::string text_;
};

bool are_sound(const std::vector<Place>& places) {
    return std::ranges::all_of(places, [](const Place& place) {
        return !place.key.empty() && place.at >= 0 && place.ends > place.at;
    });
}

// Fields that hold a list.
absl::Status check_packed(SqliteDatabase& database, Findings& findings) {
    absl::StatusOr<SqliteStatement> rows =
        database.prepare("SELECT id,places,coalesce(headers,'') FROM attempts");
    if (!rows.ok()) {
        return rows.status();
    }
    for (absl::StatusOr<bool> row = rows->row(); !row.ok() || *row; row = rows->row()) {
        if (!row.ok()) {
            return row.status();
        }
        const std::optional<std::vector<Place>> places = unpack_places(rows->bytes(1));
        if (!places || !are_sound(*places) || !unpack_headers(rows->bytes(2))) {
            findings.note(cat("attempt ", rows->integer(0), ": unreadable field"));
        }
    }
    const auto tokens = database.integer("SELECT count(*) FROM sqlite_schema WHERE name='tokens'");
    if (!tokens.ok() || *tokens == 0) {
        return tokens.status();
    }
    rows = database.prepare("SELECT id,numbers FROM tokens");
    if (!rows.ok()) {
        return rows.status();
    }
    for (absl::StatusOr<bool> row = rows->row(); !row.ok() || *row; row = rows->row()) {
        if (!row.ok()) {
            return row.status();
        }
        if (!unpack_numbers(rows->bytes(1))) {
            findings.note(cat("token ", rows->bytes(0), ": unreadable field"));
        }
    }
    return absl::OkStatus();
}

absl::Status check_meaning(SqliteDatabase& database, const std::string& path) {
    Findings findings(database);
    absl::StatusOr<std::string> sound = database.text("PRAGMA integrity_check(20)");
    if (!sound.ok() || *sound != "ok") {
        findings.note(sound.ok() ? *sound : std::string(sound.status().message()));
    }
    for (const Column& column : columns) {
        findings.count(column.table, cat("(", column.good, ") IS NOT TRUE"),
                       cat("rows of ", column.table, " with a wrong '", column.name, "'"));
    }
    for (const Rule& rule : rules) {
        findings.count(rule.table, rule.bad, rule.finding);
    }
    findings.note(check_packed(database, findings));
    return findings.of(path);
}

}  // namespace

absl::Status check_sqlite_ledger(const std::string& path) {
    // Nothing is read yet, and no lock file is left beside a file that is not there.
    absl::StatusOr<SqliteDatabase> database =
        SqliteDatabase::open(path, SqliteDatabase::Mode::read_write);
    if (!database.ok()) {
        if (absl::Status whole = look_at_pages(path, {}); !whole.ok()) {
            return whole;
        }
        return absl::NotFoundError(absl::StrCat(path, ": ", database.status().message()));
    }
    if (absl::Status looked = look_at_file(path); !looked.ok()) {
        return looked;
    }
    absl::StatusOr<FileClaim> claim = FileClaim::take(path);
    if (!claim.ok()) {
        return absl::UnavailableError(claim.status().message());
    }
    if (absl::Status whole = look_at_pages(path, *claim); !whole.ok()) {
        return whole;
    }
    if (is_empty_file(path)) {
        return absl::FailedPreconditionError(cat(path, ": not a ledger: the file is empty"));
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
    return check_meaning(*database, path);
}

}  // namespace ration
