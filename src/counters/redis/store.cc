#include "counters/redis/store.h"

#include <sodium.h>

#include <utility>

#include "base/text.h"
#include "counters/redis/script.h"

namespace ration {
namespace {

absl::Status check(const RedisOptions& options) {
    if (options.prefix.size() > max_redis_prefix) {
        return absl::InvalidArgumentError(
            cat("a prefix has at most ", max_redis_prefix, " bytes, got ", options.prefix.size()));
    }
    if (options.deadline < min_redis_deadline || options.deadline > max_redis_deadline) {
        return absl::InvalidArgumentError("a deadline is from 1 ms to 10 s");
    }
    if (options.connect_timeout < min_redis_deadline || options.lease < std::chrono::seconds(1) ||
        options.max_waiting == 0) {
        return absl::InvalidArgumentError(
            "connect_timeout is at least 1 ms, lease at least 1 s, max_waiting at least 1");
    }
    if (options.host.empty() || (options.port == 0 && !net::is_unix_address(options.host))) {
        return absl::InvalidArgumentError("an address has a host and a port");
    }
    return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<RedisStore>> RedisStore::open(const RedisOptions& options) {
    if (absl::Status status = check(options); !status.ok()) {
        return status;
    }
    if (sodium_init() < 0) {
        return absl::InternalError("the operating system gives no random numbers");
    }
    std::shared_ptr<RedisStore> store(new RedisStore(options));
    auto addresses =
        net::Addresses::open(options.host, options.port, net::Addresses::Unknown::is_none_yet);
    if (!addresses.ok()) {
        return absl::InvalidArgumentError(addresses.status().message());
    }
    store->addresses_ = *std::move(addresses);
    if (options.tls.enabled) {
        auto tls = net::TlsContext::client({.ca_file = options.tls.ca_file,
                                            .verify = options.tls.verify,
                                            .certificate_file = options.tls.certificate_file,
                                            .key_file = options.tls.key_file,
                                            .http = false});
        if (!tls.ok()) {
            return tls.status();
        }
        store->tls_ = *std::move(tls);
    }
    return store;
}

std::string RedisStore::name() const {
    return net::is_unix_address(options_.host) ? options_.host
                                               : cat(options_.host, ":", options_.port);
}

std::string RedisStore::greeting(std::size_t& answers) const {
    std::string out;
    answers = 2;
    if (!options_.user.empty()) {
        append_resp_command(out, {"AUTH", options_.user, options_.password});
        ++answers;
    } else if (!options_.password.empty()) {
        append_resp_command(out, {"AUTH", options_.password});
        ++answers;
    }
    if (options_.database != 0) {
        append_resp_command(out, {"SELECT", std::to_string(options_.database)});
        ++answers;
    }
    // The script last: who may not come in is told so by the short command before it.
    append_resp_command(out, {"TIME"});
    append_resp_command(out, {"SCRIPT", "LOAD", redis_script()});
    return out;
}

}  // namespace ration
