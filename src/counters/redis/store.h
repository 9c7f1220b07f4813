// What all connections to one Redis share: where it is, how to talk to it, what happened so far.
//
// Immutable but for its monitor and the addresses behind a name; thread rule: share freely.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "counters/redis/call_codec.h"
#include "counters/redis/monitor.h"
#include "net/addresses.h"
#include "net/tls.h"
#include "ration/redis_counters.h"

namespace ration {

class RedisStore {
public:
    // InvalidArgument: options out of bounds, or a TLS file that cannot be used. A name that is not
    // known yet is looked up again later.
    [[nodiscard]] static absl::StatusOr<std::shared_ptr<RedisStore>> open(
        const RedisOptions& options);

    [[nodiscard]] const RedisOptions& options() const { return options_; }
    [[nodiscard]] const RedisCodec& codec() const { return codec_; }
    [[nodiscard]] net::Addresses& addresses() { return *addresses_; }
    // Null without TLS; empty when a session cannot be made.
    [[nodiscard]] const net::TlsContext* tls() const { return tls_ ? &*tls_ : nullptr; }
    [[nodiscard]] RedisMonitor& monitor() { return monitor_; }
    // "redis.internal:6379", for people.
    [[nodiscard]] std::string name() const;
    // What every new connection says first, and how many answers it has.
    [[nodiscard]] std::string greeting(std::size_t& answers) const;

private:
    explicit RedisStore(const RedisOptions& options) : options_(options), codec_(options) {}

    const RedisOptions options_;
    const RedisCodec codec_;
    std::unique_ptr<net::Addresses> addresses_;
    std::optional<net::TlsContext> tls_;
    RedisMonitor monitor_;
};

}  // namespace ration
