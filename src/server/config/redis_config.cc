#include "server/config/redis_config.h"

#include "absl/strings/ascii.h"
#include "base/text.h"
#include "server/config/address_text.h"

namespace ration {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t max_database = 1'000'000;
constexpr std::uint64_t max_waiting = 1'000'000;

void read_address(ConfigReader& reader, const YamlNode& node, std::string_view text,
                  RedisOptions& options) {
    if (text.starts_with("unix:")) {
        options.host = cat("unix:", reader.file().path(text.substr(5)));
        return;
    }
    const auto endpoint = parse_endpoint(text);
    if (!endpoint.ok() || endpoint->port == 0) {
        reader.error(node, endpoint.ok() ? "the address of a Redis has a port"
                                         : std::string(endpoint.status().message()));
        return;
    }
    options.host = endpoint->host;
    options.port = endpoint->port;
}

void read_tls(ConfigReader& outer, const YamlNode& node, RedisTlsOptions& tls) {
    if (node.is_scalar()) {
        outer.flag("tls", tls.enabled);
        return;
    }
    ConfigReader reader(outer.file(), node, "tls");
    tls.enabled = true;
    reader.readable("ca", tls.ca_file);
    reader.flag("verify", tls.verify);
    reader.readable("certificate", tls.certificate_file);
    reader.readable("key", tls.key_file);
    if (tls.certificate_file.empty() != tls.key_file.empty()) {
        reader.error(node, "tls needs both 'certificate' and 'key', or neither");
    }
    reader.finish();
}

void check_numbers(const Policy& policy, const LimitRule& rule, const Limit& limit,
                   Problems& problems) {
    if (absl::Status status = fits_redis(limit); !status.ok()) {
        problems.error(policy.file, rule.at,
                       cat("limit '", rule.name, "': ", std::string(status.message())));
    }
}

}  // namespace

void read_redis(ConfigReader& outer, const YamlNode& node, Policy::Environment environment,
                RedisOptions& options) {
    if (node.is_scalar()) {
        return read_address(outer, node, node.scalar, options);
    }
    ConfigReader reader(outer.file(), node, "redis");
    std::string text;
    if (const YamlNode* address = reader.text("address", text)) {
        read_address(reader, *address, text, options);
    } else if (node.is_mapping() && node.find("address") == nullptr) {
        reader.error(node, "redis needs an 'address' (HOST:PORT or unix:/path)");
    }
    if (const YamlNode* tls = reader.find("tls")) {
        read_tls(reader, *tls, options.tls);
    }
    reader.text("user", options.user);
    ConfigReader::Secret password;
    if (reader.secret({"password", "password_file", "a password"}, environment, password) !=
        nullptr) {
        options.password = std::move(password.value);
    }
    if (!options.user.empty() && options.password.empty()) {
        reader.error(node, "a user needs a 'password' or a 'password_file'");
    }
    reader.number("database", options.database, {0, max_database});
    if (const YamlNode* prefix = reader.text("prefix", options.prefix)) {
        if (options.prefix.size() > max_redis_prefix) {
            reader.error(*prefix, cat("a prefix has at most ", max_redis_prefix, " bytes"));
        }
    }
    reader.duration("deadline", options.deadline, {min_redis_deadline, max_redis_deadline});
    reader.duration("connect", options.connect_timeout, {milliseconds(10), seconds(30)});
    reader.duration("lease", options.lease, {seconds(1), hours(168)});
    reader.number("waiting", options.max_waiting, {1, max_waiting});
    reader.finish();
}

void check_fits_redis(const Policy& policy, Problems& problems) {
    for (const LimitRule& rule : policy.limits) {
        const Numbers& numbers = rule.numbers;
        if (numbers.fixed) {
            check_numbers(policy, rule, **numbers.fixed, problems);
        }
        for (const auto& [route, limit] : numbers.by_route) {
            check_numbers(policy, rule, *limit, problems);
        }
        if (numbers.attribute) {
            // Whatever the amount will be, whole microseconds are exact.
            Limit limit = numbers.shape;
            limit.amount = limit.capacity = 1;
            check_numbers(policy, rule, limit, problems);
            if (limit.kind == LimitKind::token_bucket && limit.period.count() % 1000 != 0) {
                problems.error(policy.file, rule.at,
                               cat("limit '", rule.name,
                                   "': counters on Redis need a period of whole microseconds where "
                                   "the number is an attribute"));
            }
        }
    }
}

}  // namespace ration
