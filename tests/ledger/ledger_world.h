// What the ledger's tests share: short names for requests, and a ledger in a temporary folder that
// can be closed and opened again, as a restart does.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ration/ledger.h"

namespace ration {

using namespace std::chrono_literals;

inline constexpr Wall noon{std::chrono::sys_days{std::chrono::year{2026} / 6 / 15} + 12h};

// A folder of its own, removed afterwards.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "ration-XXXXXX").string();
        path_ = ::mkdtemp(pattern.data());
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

inline CeilingUse daily(std::string_view key, std::uint64_t at_most, Wall day = noon - 12h) {
    return {key, CeilingKind::local_day, at_most, {day, day + 24h}};
}

inline CeilingUse monthly(std::string_view key, std::uint64_t at_most, Wall start = noon - 240h) {
    return {key, CeilingKind::billing_period, at_most, {start, start + 720h}};
}

inline IdempotencyKey key(std::string_view identity, std::uint8_t content = 1,
                          DoubtRule doubt = DoubtRule::forward) {
    IdempotencyKey key;
    key.identity = identity;
    key.fingerprint.fill(content);
    key.doubt = doubt;
    return key;
}

inline StoredResponse created(std::string body) {
    return {201,
            {{"Location", "/v1/bookings/7"}, {"Content-Type", "application/json"}},
            std::move(body)};
}

}  // namespace ration
