#include "server/reload/rules.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "base/text.h"
#include "policy/check_directory.h"
#include "policy/yaml_source.h"
#include "server/config/redis_config.h"

namespace ration {

std::string text_digest(std::string_view text) {
    std::array<unsigned char, crypto_hash_sha256_BYTES> digest{};
    crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(text.data()),
                       text.size());
    return cat("sha256:", absl::BytesToHexString(absl::string_view(
                              reinterpret_cast<const char*>(digest.data()), digest.size())));
}

namespace {

Position first_durable_rule(const Policy& policy) {
    Position first;
    const auto look = [&](const DurableScope& rule) {
        if (first.line == 0 ||
            std::pair(rule.at.line, rule.at.column) < std::pair(first.line, first.column)) {
            first = rule.at;
        }
    };
    std::for_each(policy.ceilings.begin(), policy.ceilings.end(), look);
    std::for_each(policy.quotas.begin(), policy.quotas.end(), look);
    std::for_each(policy.idempotency.begin(), policy.idempotency.end(), look);
    return first;
}

}  // namespace

std::optional<LoadedRules> load_rule_files(const RuleFiles& files, Policy::Environment environment,
                                           Problems& problems) {
    LoadedRules rules;
    std::string text;
    if (files.directory.empty()) {
        rules.directory = std::make_shared<const Directory>();
    } else if (read_file(files.directory, text, problems)) {
        rules.directory_digest = text_digest(text);
        rules.directory = Directory::parse(files.directory, text, problems);
    }
    if (read_file(files.policy, text, problems)) {
        rules.policy_digest = text_digest(text);
        rules.policy =
            Policy::parse(files.policy, text, environment, problems, rules.directory.get());
    }
    if (rules.policy != nullptr && rules.policy->needs_ledger() && !files.ledger) {
        problems.error(
            files.policy, first_durable_rule(*rules.policy),
            "ceilings, quotas and idempotency need a ledger: name its file in serve.yaml "
            "(ledger: data/ledger.db)");
    }
    if (rules.policy != nullptr && files.redis) {
        check_fits_redis(*rules.policy, problems);
    }
    if (rules.policy != nullptr && rules.directory != nullptr && !files.directory.empty()) {
        check_directory(*rules.policy, *rules.directory, problems);
    }
    if (!problems.ok() || rules.policy == nullptr || rules.directory == nullptr) {
        return std::nullopt;
    }
    return rules;
}

}  // namespace ration
