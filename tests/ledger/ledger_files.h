// What the tests of ledger files share: whole files in memory, and what a start and the check say.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "ration/ledger.h"

namespace ration {

inline std::string read_all(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_all(const std::string& path, std::string_view bytes) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << bytes;
}

inline absl::Status open_status(const std::string& path) {
    return open_sqlite_ledger({path, {}}).status();
}

inline void change_file(const std::string& path, const std::string& sql) {
    sqlite3* database = nullptr;
    sqlite3_open(path.c_str(), &database);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sql << ": " << sqlite3_errmsg(database);
    sqlite3_close(database);
}

// A start and the check both refuse the file, name it and say `why`; it and its log stay as they
// are, or stay away.
inline void expect_refused(const std::string& path, std::string_view why) {
    const std::string log = path + "-wal";
    const bool was_there = std::filesystem::exists(path);
    const std::string before = read_all(path);
    const std::string log_before = read_all(log);
    for (const absl::Status& status : {open_status(path), check_sqlite_ledger(path)}) {
        EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
        const std::string text = status.ToString();
        EXPECT_NE(text.find(path + ": "), std::string::npos) << text;
        EXPECT_NE(text.find(why), std::string::npos) << text << " lacks " << why;
    }
    EXPECT_EQ(std::filesystem::exists(path), was_there);
    EXPECT_EQ(read_all(path), before);
    EXPECT_EQ(read_all(log), log_before);
}

}  // namespace ration
