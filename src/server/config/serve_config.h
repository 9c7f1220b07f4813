// serve.yaml: everything `ration serve` needs to know, in one file (docs/operating.md).
//
// Paths in it are relative to the file's own folder and come out joined with it. Every number is
// bounded here; what reads well can be served. Thread rule: plain values. Errors: all of a file at
// once, each as `file:line:column: reason`; the result is then empty.
//
//   ration::Problems problems;
//   auto config = ration::ServeConfig::load("serve.yaml", &std::getenv, problems);
//   if (!config) { print(problems); return 1; }
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "policy/policy.h"
#include "ration/redis_counters.h"
#include "server/access_log/log_file.h"
#include "server/gateway.h"

namespace ration {

inline constexpr std::size_t max_listeners = 16;
inline constexpr std::size_t min_token_bytes = 16;
inline constexpr std::size_t max_token_bytes = 512;

struct AdminConfig {
    bool enabled = true;
    std::string address = "127.0.0.1";
    std::uint16_t port = 8081;  // 0: chosen by the system
    std::string token;          // empty: none is asked for
    std::string token_file;     // where the token came from, if from a file

    friend bool operator==(const AdminConfig&, const AdminConfig&) = default;
};

// Where settings stand in the file, for what shows only when they are used; line 0: not written.
struct SettingPlaces {
    Position policy, admin, redis, ledger, access_log;
};

struct ServeConfig {
    std::string file;
    std::string policy;
    std::string directory;  // empty: nobody has a credential
    GatewayOptions gateway;
    AdminConfig admin;
    std::string ledger;         // file of the durable ledger; empty: there is none
    bool ledger_given = false;  // on the command line: what serve.yaml says of it does not count
    // Of the counters; with `redis`, of those that stand in for `store_down: local`.
    std::uint64_t counters_bytes = 256ULL << 20;
    std::optional<RedisOptions> redis;  // where the counters are, if not in this process
    unsigned replicas = 1;  // processes that share what `store_down: local` gives out alone
    LogTarget access_log{.kind = LogTarget::Kind::standard_output, .path = {}};
    Nanos drain = std::chrono::seconds(30);
    SettingPlaces places;

    static std::optional<ServeConfig> load(const std::string& path, Policy::Environment environment,
                                           Problems& problems);
    static std::optional<ServeConfig> parse(const std::string& path, std::string_view text,
                                            Policy::Environment environment, Problems& problems);
};

// What of the two would need a restart to come into force, as the file's words ("upstream",
// "threads"), comma-separated; empty when nothing does.
[[nodiscard]] std::string restart_needed(const ServeConfig& running, const ServeConfig& wanted);

}  // namespace ration
