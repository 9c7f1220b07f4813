#include "ledger/sqlite_database.h"

#include <sqlite3.h>

#include <utility>

namespace ration {

namespace {

absl::Status status_of(sqlite3* database, int code) {
    std::string message = sqlite3_errstr(code);
    if (const std::string_view more = sqlite3_errmsg(database); more != message) {
        message.append(": ").append(more);
    }
    switch (code & 0xff) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return absl::AbortedError(message);
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
            return absl::DataLossError(message);
        default:
            return absl::UnavailableError(message);
    }
}

}  // namespace

SqliteStatement::SqliteStatement(SqliteStatement&& other) noexcept
    : statement_(std::exchange(other.statement_, nullptr)) {}

SqliteStatement& SqliteStatement::operator=(SqliteStatement&& other) noexcept {
    std::swap(statement_, other.statement_);
    return *this;
}

SqliteStatement::~SqliteStatement() {
    sqlite3_finalize(statement_);
}

SqliteStatement& SqliteStatement::bind(int index, std::int64_t value) {
    sqlite3_bind_int64(statement_, index, value);
    return *this;
}

SqliteStatement& SqliteStatement::bind_null(int index) {
    sqlite3_bind_null(statement_, index);
    return *this;
}

SqliteStatement& SqliteStatement::bind_text(int index, std::string_view value) {
    sqlite3_bind_text64(statement_, index, value.data() == nullptr ? "" : value.data(),
                        value.size(), SQLITE_STATIC, SQLITE_UTF8);
    return *this;
}

SqliteStatement& SqliteStatement::bind_blob(int index, std::string_view value) {
    sqlite3_bind_blob64(statement_, index, value.data() == nullptr ? "" : value.data(),
                        value.size(), SQLITE_STATIC);
    return *this;
}

absl::StatusOr<bool> SqliteStatement::row() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) {
        return true;
    }
    sqlite3* database = sqlite3_db_handle(statement_);
    const absl::Status status = code == SQLITE_DONE ? absl::OkStatus() : status_of(database, code);
    reset();
    if (!status.ok()) {
        return status;
    }
    return false;
}

absl::Status SqliteStatement::run() {
    while (true) {
        const absl::StatusOr<bool> more = row();
        if (!more.ok()) {
            return more.status();
        }
        if (!*more) {
            return absl::OkStatus();
        }
    }
}

void SqliteStatement::reset() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
}

std::int64_t SqliteStatement::integer(int column) const {
    return sqlite3_column_int64(statement_, column);
}

std::string_view SqliteStatement::bytes(int column) const {
    const void* data = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

bool SqliteStatement::is_null(int column) const {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

void SqliteDatabase::Close::operator()(sqlite3* database) const {
    sqlite3_close_v2(database);
}

absl::StatusOr<SqliteDatabase> SqliteDatabase::open(const std::string& path, Mode mode) {
    int flags = SQLITE_OPEN_NOMUTEX;
    switch (mode) {
        case Mode::read_only:
            flags |= SQLITE_OPEN_READONLY;
            break;
        case Mode::read_write:
            flags |= SQLITE_OPEN_READWRITE;
            break;
        case Mode::create:
            flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
            break;
    }
    sqlite3* raw = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
    SqliteDatabase database(raw);
    if (code != SQLITE_OK) {
        return status_of(raw, code);
    }
    sqlite3_extended_result_codes(raw, 1);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    return database;
}

void SqliteDatabase::settle_log_on_close() {
    sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
}

absl::Status SqliteDatabase::execute(const char* sql) {
    const int code = sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr);
    return code == SQLITE_OK ? absl::OkStatus() : status_of(database_.get(), code);
}

absl::StatusOr<SqliteStatement> SqliteDatabase::prepare(std::string_view sql) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) {
        return status_of(database_.get(), code);
    }
    return SqliteStatement(statement);
}

absl::StatusOr<std::int64_t> SqliteDatabase::integer(std::string_view sql) {
    absl::StatusOr<SqliteStatement> statement = prepare(sql);
    if (!statement.ok()) {
        return statement.status();
    }
    const absl::StatusOr<bool> row = statement->row();
    if (!row.ok()) {
        return row.status();
    }
    return *row ? statement->integer(0) : 0;
}

absl::StatusOr<std::string> SqliteDatabase::text(std::string_view sql) {
    absl::StatusOr<SqliteStatement> statement = prepare(sql);
    if (!statement.ok()) {
        return statement.status();
    }
    const absl::StatusOr<bool> row = statement->row();
    if (!row.ok()) {
        return row.status();
    }
    return *row ? std::string(statement->bytes(0)) : std::string();
}

std::int64_t SqliteDatabase::changes() const {
    return sqlite3_changes64(database_.get());
}

}  // namespace ration
