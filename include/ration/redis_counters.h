// Counters on Redis or Valkey: what many processes share.
//
// Each transaction is one run of one script, so it is as indivisible there as everywhere: all its
// charges in one round trip, however many limits. The server's clock decides and is told
// (`Outcome::at`). Times are whole microseconds there; `fits_redis` says which numbers that can't
// hold. Keys carry no caller's text: limit name and a 128-bit BLAKE2b digest of the key.
//
// An answer that does not come within `deadline` is a failure: the connection is dropped with all
// that waits on it, and the script itself does nothing once the deadline has passed on the server's
// clock. While there is no connection every call fails at once, and one is tried again and again,
// at most a quarter of a second apart.
//
// In-flight slots (`concurrency`) are leases: one that is not given back ends by itself after
// `lease`, so a process that dies holds nothing for ever. A give-back that could not be sent is
// sent when the server is there again.
//
// Thread rule: as Counters; a call waits for its own answer, never longer than `deadline`. Errors:
// `open_redis_counters` refuses options only; a server out of reach shows in each call's outcome
// (kUnavailable) and in `stats`.
//
//   auto counters = ration::open_redis_counters({.host = "redis.internal", .database = 2});
//   if (!counters.ok()) return counters.status();
//   auto limiter = ration::Limiter::create("emails", ration::token_bucket(100, minute),
//                                           *std::move(counters));
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ration/counters.h"
#include "ration/time.h"

namespace ration {

struct RedisTlsOptions {
    bool enabled = false;
    std::string ca_file = {};           // empty: the system's roots
    bool verify = true;                 // chain and host name
    std::string certificate_file = {};  // this side's own, with its key; empty: none
    std::string key_file = {};
};

struct RedisOptions {
    std::string host = "127.0.0.1";  // address, name, or "unix:/path"
    std::uint16_t port = 6379;
    RedisTlsOptions tls = {};
    std::string user = {};  // of an ACL; empty: the default user
    std::string password = {};
    std::uint32_t database = 0;
    // In front of every key. The braces make all keys one hash slot, as a cluster asks of a script.
    std::string prefix = "{ration}:";
    Nanos deadline = std::chrono::milliseconds(50);
    Nanos connect_timeout = std::chrono::milliseconds(500);
    Nanos lease = std::chrono::hours(1);
    std::size_t max_waiting = 10'000;  // calls without an answer, per connection; more are refused
    // For tests and simulations: the time of each call decides instead of the server's clock, and
    // keys have no end.
    bool time_from_calls = false;
};

inline constexpr std::size_t max_redis_prefix = 64;
inline constexpr Nanos min_redis_deadline = std::chrono::milliseconds(1);
inline constexpr Nanos max_redis_deadline = std::chrono::seconds(10);

// OK when the limit's arithmetic is exact in whole microseconds; else InvalidArgument with the
// reason: a window that is no whole number of them, a rate that needs finer steps.
[[nodiscard]] absl::Status fits_redis(const Limit& limit);

// InvalidArgument: a bad address, prefix, deadline, or TLS file.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Counters>> open_redis_counters(
    const RedisOptions& options);

}  // namespace ration
