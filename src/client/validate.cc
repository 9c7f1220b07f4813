// Whether a policy can be meant.
#include <array>
#include <utility>

#include "base/text.h"
#include "client/policy.h"
#include "wire/token.h"

namespace ration {
namespace {

constexpr std::array<Nanos RetryPolicy::*, 9> times = {
    &RetryPolicy::backoff_base,    &RetryPolicy::backoff_cap,    &RetryPolicy::retry_after_extra,
    &RetryPolicy::max_server_wait, &RetryPolicy::total_deadline, &RetryPolicy::attempt_timeout,
    &RetryPolicy::min_attempt,     &RetryPolicy::gate_guard,     &RetryPolicy::budget_floor};
constexpr std::array<std::string_view, 9> time_names = {
    "backoff_base",    "backoff_cap", "retry_after_extra", "max_server_wait", "total_deadline",
    "attempt_timeout", "min_attempt", "gate_guard",        "budget_floor"};

absl::Status invalid(std::string_view field, std::string_view what) {
    return absl::InvalidArgumentError(cat(field, " ", what));
}

}  // namespace

absl::Status validate(const RetryPolicy& policy) {
    for (std::size_t i = 0; i < times.size(); ++i) {
        if (policy.*times[i] < Nanos(0)) {
            return invalid(time_names[i], "is negative");
        }
    }
    if (policy.backoff_factor == 0) {
        return invalid("backoff_factor", "is 0; 1 keeps the bound as it is");
    }
    const std::pair<std::string_view, std::size_t> lists[] = {
        {"retry_statuses", policy.retry_statuses.size()},
        {"retry_types", policy.retry_types.size()},
        {"never_retry_types", policy.never_retry_types.size()},
        {"narrow_types", policy.narrow_types.size()},
        {"safe_methods", policy.safe_methods.size()},
        {"retry_errors", policy.retry_errors.size()}};
    for (const auto& [field, size] : lists) {
        if (size > max_policy_entries) {
            return invalid(field,
                           cat("has ", size, " entries; ", max_policy_entries, " are allowed"));
        }
    }
    if (!is_token(policy.key_header)) {
        return invalid("key_header", "is no field name");
    }
    return absl::OkStatus();
}

}  // namespace ration
