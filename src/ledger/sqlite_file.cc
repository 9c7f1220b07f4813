#include "ledger/sqlite_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errno_status.h"
#include "ledger/sqlite_pages.h"

namespace ration {

namespace {

// "rati" in ASCII: marks the file as a ledger (SQLite's application_id).
constexpr std::int64_t application_id = 0x72617469;

// One step per schema version: the statements that lead from version i to i + 1.
constexpr std::array<const char*, ledger_schema_version> migrations = {
    R"sql(
CREATE TABLE facts(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE attempts(
    id INTEGER PRIMARY KEY,
    state INTEGER NOT NULL,
    identity BLOB,
    fingerprint BLOB,
    started_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    keep_for INTEGER NOT NULL,
    places TEXT NOT NULL,
    second_try INTEGER NOT NULL,
    status INTEGER,
    headers TEXT,
    body BLOB);
CREATE UNIQUE INDEX attempts_by_identity ON attempts(identity) WHERE identity IS NOT NULL;
CREATE INDEX attempts_by_expiry ON attempts(expires_at) WHERE state<>1;
CREATE TABLE writes(
    key TEXT NOT NULL, at INTEGER NOT NULL, attempt INTEGER NOT NULL,
    PRIMARY KEY(key, at, attempt)) WITHOUT ROWID;
CREATE INDEX writes_by_time ON writes(at);
CREATE TABLE periods(
    key TEXT NOT NULL, start INTEGER NOT NULL, ends INTEGER NOT NULL, written INTEGER NOT NULL,
    PRIMARY KEY(key, start)) WITHOUT ROWID;
CREATE TABLE members(
    key TEXT NOT NULL, object TEXT NOT NULL, PRIMARY KEY(key, object)) WITHOUT ROWID;
CREATE TABLE blocks(
    key TEXT PRIMARY KEY, until INTEGER NOT NULL, level INTEGER NOT NULL,
    forget_at INTEGER NOT NULL) WITHOUT ROWID;
)sql",
    R"sql(
CREATE TABLE settled(
    attempt INTEGER PRIMARY KEY, written INTEGER NOT NULL, at INTEGER NOT NULL);
)sql",
    R"sql(
CREATE TABLE tokens(
    id TEXT PRIMARY KEY, digest BLOB NOT NULL UNIQUE, kind TEXT NOT NULL,
    owner_kind TEXT NOT NULL, owner TEXT NOT NULL, numbers TEXT NOT NULL, name TEXT NOT NULL,
    created INTEGER NOT NULL, last_used INTEGER NOT NULL) WITHOUT ROWID;
)sql"};

absl::Status refused(const std::string& path, std::string_view reason) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": ", absl::string_view(reason.data(), reason.size())));
}

// Another program may have the file open without the claim.
absl::Status unreadable(const std::string& path, const absl::Status& status) {
    return refused(path, status.code() == absl::StatusCode::kAborted
                             ? "in use by another process"
                             : absl::StrCat("damaged, or not a ledger: ", status.message()));
}

// What stands beside a file stands beside the file itself, by whatever link it is opened; also by
// one whose file is not there (yet).
std::string real_path(const std::string& path) {
    constexpr int max_links = 40;  // as in Linux
    std::error_code unknown;
    std::filesystem::path target = path;
    for (int i = 0; i < max_links && std::filesystem::is_symlink(target, unknown); ++i) {
        target = target.parent_path() / std::filesystem::read_symlink(target, unknown);
    }
    const std::filesystem::path real = std::filesystem::weakly_canonical(target, unknown);
    return unknown ? path : real.string();
}

constexpr std::string_view not_begun = "not a ledger: the file does not begin as a SQLite database";
// In the lock file behind the process id, once the file has become a ledger: a crash while it was
// made leaves an empty file, and so does whoever cuts it off.
constexpr std::string_view ledger_word = " ledger";
constexpr std::string_view others = "a database of another program, not a ledger";

std::string newer(std::int64_t version) {
    return absl::StrCat("schema version ", version, " is newer than ", ledger_schema_version,
                        ", which this program knows");
}

absl::Status migrate(SqliteDatabase& database) {
    absl::StatusOr<std::int64_t> version = database.integer("PRAGMA user_version");
    if (!version.ok()) {
        return version.status();
    }
    if (*version == ledger_schema_version) {
        return absl::OkStatus();
    }
    if (absl::Status status = database.execute("BEGIN IMMEDIATE"); !status.ok()) {
        return status;
    }
    for (std::int64_t step = *version; step < ledger_schema_version; ++step) {
        const std::span<const char* const> steps(migrations);
        if (absl::Status status = database.execute(steps[static_cast<std::size_t>(step)]);
            !status.ok()) {
            return absl::Status(status.code(),
                                absl::StrCat("schema step ", step + 1, ": ", status.message()));
        }
    }
    const std::string marks =
        absl::StrCat("PRAGMA application_id=", application_id,
                     "; PRAGMA user_version=", ledger_schema_version, "; COMMIT");
    return database.execute(marks.c_str());
}

// The name of a table or index that a ledger of that version has and this database has not, or has
// otherwise; empty: all are there. Whatever else somebody has added is none of our business.
absl::StatusOr<std::string> missing_part(SqliteDatabase& database, std::int64_t version) {
    absl::StatusOr<SqliteDatabase> model =
        SqliteDatabase::open(":memory:", SqliteDatabase::Mode::create);
    if (!model.ok()) {
        return model.status();
    }
    const std::span<const char* const> steps(migrations);
    for (std::int64_t step = 0; step < version; ++step) {
        if (absl::Status made = model->execute(steps[static_cast<std::size_t>(step)]); !made.ok()) {
            return made;
        }
    }
    absl::StatusOr<SqliteStatement> parts =
        model->prepare("SELECT name,sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid");
    absl::StatusOr<SqliteStatement> same =
        database.prepare("SELECT count(*) FROM sqlite_schema WHERE name=?1 AND sql=?2");
    if (!parts.ok() || !same.ok()) {
        return parts.ok() ? same.status() : parts.status();
    }
    for (absl::StatusOr<bool> row = parts->row(); !row.ok() || *row; row = parts->row()) {
        if (!row.ok()) {
            return row.status();
        }
        same->bind_text(1, parts->bytes(0)).bind_text(2, parts->bytes(1));
        const absl::StatusOr<bool> counted = same->row();
        if (!counted.ok()) {
            return counted.status();
        }
        if (same->integer(0) == 0) {
            return std::string(parts->bytes(0));
        }
        same->reset();
    }
    return std::string();
}

// Moves what a process before has left in the log into the database. After a sync that failed the
// system's cache may show log pages that the disk has not; a commit behind such a page would be
// lost with it when the power goes.
absl::Status settle_log(SqliteDatabase& database, const std::string& path) {
    absl::StatusOr<std::int64_t> busy = database.integer("PRAGMA wal_checkpoint(TRUNCATE)");
    if (!busy.ok() || *busy != 0) {
        return absl::UnavailableError(
            absl::StrCat(path, ": ", busy.ok() ? "its log is in use" : busy.status().message()));
    }
    return absl::OkStatus();
}

// True when the database holds nothing at all: a file to be made into a ledger.
absl::StatusOr<bool> is_blank(SqliteDatabase& database) {
    absl::StatusOr<std::int64_t> tables = database.integer("SELECT count(*) FROM sqlite_schema");
    absl::StatusOr<std::int64_t> mark = database.integer("PRAGMA application_id");
    if (!tables.ok()) {
        return tables.status();
    }
    if (!mark.ok()) {
        return mark.status();
    }
    return *tables == 0 && *mark == 0;
}

}  // namespace

absl::Status named_error(const std::string& path, const absl::Status& status) {
    return {status.code(), absl::StrCat(path, ": ", status.message())};
}

absl::Status look_at_file(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
        return absl::OkStatus();  // a new one, or not to be reached: opening says why
    }
    if (!S_ISREG(info.st_mode)) {
        return refused(path, "not a file");
    }
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return absl::OkStatus();
    }
    FileHead head;
    const ssize_t size = ::read(descriptor, head.data.data(), head.data.size());
    ::close(descriptor);
    constexpr std::string_view magic("SQLite format 3\0", 16);
    if (size <= 0) {
        return absl::OkStatus();
    }
    if (static_cast<std::size_t>(size) < magic.size() ||
        std::memcmp(head.data.data(), magic.data(), magic.size()) != 0) {
        return refused(path, not_begun);
    }
    if (static_cast<std::size_t>(size) < FileHead::bytes) {
        return refused(path, "damaged: it ends within its first page");
    }
    const bool ours = head.application() == application_id;
    if (ours && head.version() > ledger_schema_version) {
        return refused(path, newer(head.version()));
    }
    // A ledger has a rollback journal at most while its first page is written.
    struct stat journal {};
    const bool rolls_back =
        ::stat((real_path(path) + "-journal").c_str(), &journal) == 0 && journal.st_size > 0;
    const bool begun = info.st_size > static_cast<off_t>(head.page());
    if (!ours && (head.application() != 0 || (rolls_back && begun))) {
        return refused(path, others);
    }
    return absl::OkStatus();
}

absl::Status look_at_pages(const std::string& path, const FileClaim& claim) {
    const absl::Status status = check_pages(real_path(path), {application_id, claim.was_ledger()});
    return status.ok() ? status : named_error(path, status);
}

absl::StatusOr<FileClaim> FileClaim::take(const std::string& path) {
    const std::string lock_path = real_path(path) + ".lock";
    const int descriptor = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        return absl::UnavailableError(
            absl::StrCat(path, ": cannot create ", lock_path, ": ", errno_text(errno)));
    }
    FileClaim claim(descriptor);
    std::array<char, 64> noted{};
    const ssize_t size = ::pread(descriptor, noted.data(), noted.size(), 0);
    const std::string_view note(noted.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        const std::string_view pid = note.substr(0, note.find(' '));
        return refused(path, cat("in use by process ", pid.empty() ? "unknown" : pid));
    }
    claim.was_ledger_ = note.ends_with(ledger_word);
    if (absl::Status status = claim.note_holder(); !status.ok()) {
        return named_error(lock_path, status);
    }
    return claim;
}

absl::Status FileClaim::note_holder() const {
    const std::string note = cat(::getpid(), was_ledger_ ? ledger_word : "");
    const auto size = static_cast<ssize_t>(note.size());
    if (::pwrite(descriptor_, note.data(), note.size(), 0) != size ||
        ::ftruncate(descriptor_, size) != 0) {
        return absl::UnavailableError(errno_text(errno));
    }
    return absl::OkStatus();
}

absl::Status FileClaim::note_ledger(bool is_one) {
    if (was_ledger_ == is_one) {
        return absl::OkStatus();
    }
    was_ledger_ = is_one;
    absl::Status status = note_holder();
    if (status.ok() && ::fdatasync(descriptor_) != 0) {
        status = absl::UnavailableError(errno_text(errno));
    }
    return status;
}

FileClaim::FileClaim(FileClaim&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), was_ledger_(other.was_ledger_) {}

FileClaim& FileClaim::operator=(FileClaim&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(was_ledger_, other.was_ledger_);
    return *this;
}

FileClaim::~FileClaim() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
}

absl::Status recognise_ledger(SqliteDatabase& database, const std::string& path) {
    absl::StatusOr<std::int64_t> mark = database.integer("PRAGMA application_id");
    absl::StatusOr<std::int64_t> version = database.integer("PRAGMA user_version");
    if (!mark.ok() || !version.ok()) {
        return unreadable(path, (mark.ok() ? version : mark).status());
    }
    if (*mark != application_id) {
        return refused(path, others);
    }
    if (*version > ledger_schema_version) {
        return refused(path, newer(*version));
    }
    if (*version < 1) {
        return refused(path, absl::StrCat("damaged: its schema version is ", *version));
    }
    absl::StatusOr<std::string> sound = database.text("PRAGMA quick_check(1)");
    if (!sound.ok() || *sound != "ok") {
        return refused(path, absl::StrCat("damaged: ", sound.ok() ? absl::string_view(*sound)
                                                                  : sound.status().message()));
    }
    absl::StatusOr<std::string> missing = missing_part(database, *version);
    if (!missing.ok() || !missing->empty()) {
        return refused(path, missing.ok() ? absl::StrCat("damaged: its '", *missing,
                                                         "' is missing, or not as a ledger has it")
                                          : absl::StrCat("damaged: ", missing.status().message()));
    }
    return absl::OkStatus();
}

namespace {

// What is kept may be about people, so a new file is its owner's alone; SQLite gives the files that
// it makes beside it the same mode. An existing one keeps the mode it has.
absl::Status create_file(const std::string& path, FileClaim& claim) {
    const std::string real = real_path(path);
    struct stat info {};
    if (::stat(real.c_str(), &info) == 0) {
        return absl::OkStatus();
    }
    // First of all: a crash from here on leaves an empty file that never was a ledger.
    if (absl::Status noted = claim.note_ledger(false); !noted.ok()) {
        return named_error(path, noted);
    }
    const int descriptor = ::open(real.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        return refused(path, cat("cannot be created: ", errno_text(errno)));
    }
    ::close(descriptor);
    return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LedgerFile> open_ledger_file(const std::string& path) {
    FileClaim claim;
    if (path != ":memory:") {
        if (absl::Status looked = look_at_file(path); !looked.ok()) {
            return looked;
        }
        absl::StatusOr<FileClaim> taken = FileClaim::take(path);
        if (!taken.ok()) {
            return taken.status();
        }
        claim = std::move(*taken);
        if (absl::Status whole = look_at_pages(path, claim); !whole.ok()) {
            return whole;
        }
        if (absl::Status created = create_file(path, claim); !created.ok()) {
            return created;
        }
    }
    absl::StatusOr<SqliteDatabase> database =
        SqliteDatabase::open(path, SqliteDatabase::Mode::create);
    if (!database.ok()) {
        return refused(path, std::string(database.status().message()));
    }
    // Exclusive locking keeps the WAL index in this process's memory, so that no file of it is left
    // beside one that is refused; the claim keeps others out.
    if (absl::Status status = database->execute("PRAGMA locking_mode=EXCLUSIVE"); !status.ok()) {
        return unreadable(path, status);
    }
    absl::StatusOr<bool> blank = is_blank(*database);
    if (!blank.ok()) {
        return unreadable(path, blank.status());
    }
    if (!*blank) {
        if (absl::Status known = recognise_ledger(*database, path); !known.ok()) {
            return known;
        }
    }
    database->settle_log_on_close();
    if (absl::Status status = database->execute(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
            "PRAGMA wal_autocheckpoint=4000; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-65536");
        !status.ok()) {
        return named_error(path, status);
    }
    if (absl::Status status = migrate(*database); !status.ok()) {
        return named_error(path, status);
    }
    if (absl::Status status = settle_log(*database, path); !status.ok()) {
        return status;
    }
    if (path != ":memory:") {
        if (absl::Status noted = claim.note_ledger(true); !noted.ok()) {
            return named_error(path, noted);
        }
    }
    return LedgerFile{std::move(claim), std::move(*database)};
}

}  // namespace ration
