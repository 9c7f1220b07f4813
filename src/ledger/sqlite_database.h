// A thin RAII skin over SQLite: statements that reset themselves, errors as absl::Status.
//
// Thread rule: one thread at a time. Errors: kUnavailable with SQLite's own words for I/O and full
// disk; kAborted for another's lock; kDataLoss for a damaged file. Bound text and blobs must stay
// in place until the statement was stepped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace ration {

class SqliteDatabase;

// One prepared statement. Use: bind..., then `row()` for each row or `run()` for none.
class SqliteStatement {
public:
    SqliteStatement() = default;
    SqliteStatement(SqliteStatement&& other) noexcept;
    SqliteStatement& operator=(SqliteStatement&& other) noexcept;
    ~SqliteStatement();

    SqliteStatement& bind(int index, std::int64_t value);
    SqliteStatement& bind_null(int index);
    SqliteStatement& bind_text(int index, std::string_view value);
    SqliteStatement& bind_blob(int index, std::string_view value);

    // True while there is a row; false at the end. Failure ends the statement.
    [[nodiscard]] absl::StatusOr<bool> row();
    // Runs to the end, ignoring rows.
    [[nodiscard]] absl::Status run();
    void reset();

    [[nodiscard]] std::int64_t integer(int column) const;
    [[nodiscard]] std::string_view bytes(int column) const;  // good until the next step
    [[nodiscard]] bool is_null(int column) const;

private:
    friend class SqliteDatabase;
    explicit SqliteStatement(sqlite3_stmt* statement) : statement_(statement) {}
    sqlite3_stmt* statement_ = nullptr;
};

class SqliteDatabase {
public:
    enum class Mode { read_only, read_write, create };

    // What the log holds stays there when it is closed, so that looking at a file changes nothing.
    [[nodiscard]] static absl::StatusOr<SqliteDatabase> open(const std::string& path, Mode mode);
    SqliteDatabase(SqliteDatabase&&) noexcept = default;
    SqliteDatabase& operator=(SqliteDatabase&&) noexcept = default;
    ~SqliteDatabase() = default;

    // Closing it moves the log into the database.
    void settle_log_on_close();

    [[nodiscard]] absl::Status execute(const char* sql);
    [[nodiscard]] absl::StatusOr<SqliteStatement> prepare(std::string_view sql);
    // The first column of the only row.
    [[nodiscard]] absl::StatusOr<std::int64_t> integer(std::string_view sql);
    [[nodiscard]] absl::StatusOr<std::string> text(std::string_view sql);
    [[nodiscard]] std::int64_t changes() const;

private:
    struct Close {
        void operator()(sqlite3* database) const;
    };
    explicit SqliteDatabase(sqlite3* database) : database_(database) {}
    std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace ration
