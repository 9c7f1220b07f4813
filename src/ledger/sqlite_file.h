// Opening a ledger file: whose it is, whether it is one, and which schema it has.
//
// A file is owned by one process, by a lock on "<path>.lock" that the system drops when the process
// dies; the lock file says who holds it, and that a ledger was made here. A file that is not a
// ledger, is torn or damaged, or is newer than this program is refused with the reason and left as
// it is, with what stands beside it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ledger/sqlite_database.h"

namespace ration {

inline constexpr int ledger_schema_version = 3;

// The exclusive claim on a ledger file; released on destruction. Movable.
class FileClaim {
public:
    // FailedPrecondition naming the holder's process id.
    [[nodiscard]] static absl::StatusOr<FileClaim> take(const std::string& path);
    FileClaim() = default;
    FileClaim(FileClaim&& other) noexcept;
    FileClaim& operator=(FileClaim&& other) noexcept;
    ~FileClaim();

    // True when a ledger was opened here before, as far as that is known.
    [[nodiscard]] bool was_ledger() const { return was_ledger_; }
    // Remembers that from now on, durably.
    [[nodiscard]] absl::Status note_ledger(bool is_one);

private:
    [[nodiscard]] absl::Status note_holder() const;
    explicit FileClaim(int descriptor) : descriptor_(descriptor) {}
    int descriptor_ = -1;
    bool was_ledger_ = false;
};

struct LedgerFile {
    FileClaim claim;  // nothing for ":memory:"
    SqliteDatabase database;
};

// Claims, checks, creates (mode 0600) or migrates, and sets WAL with synchronous=FULL.
[[nodiscard]] absl::StatusOr<LedgerFile> open_ledger_file(const std::string& path);

// The same error, told of that file.
[[nodiscard]] absl::Status named_error(const std::string& path, const absl::Status& status);

// Refuses what can be seen to be no ledger without SQLite: that takes text for a new database, and
// puts right what another program's crash has left, as soon as it reads. OK: it may be one.
[[nodiscard]] absl::Status look_at_file(const std::string& path);

// Refuses a ledger that has lost pages, or all of its file but the log. Before SQLite reads it, and
// with its claim: another process's checkpoint would look the same.
[[nodiscard]] absl::Status look_at_pages(const std::string& path, const FileClaim& claim);

// OK when the database is a ledger of a schema that this program knows, sound and with all of its
// tables.
[[nodiscard]] absl::Status recognise_ledger(SqliteDatabase& database, const std::string& path);

}  // namespace ration
