#include "vector_cases.h"

namespace ration::client {
namespace {

std::vector<AttemptError> errors_of(const Json& names) {
    std::vector<AttemptError> errors;
    for (const Json& one : names) {
        errors.push_back(*error_named(one));
    }
    return errors;
}

bool set_time(RetryPolicy& policy, const std::string& field, const Json& value) {
    const std::map<std::string, Nanos RetryPolicy::*> times = {
        {"backoff_base_ms", &RetryPolicy::backoff_base},
        {"backoff_cap_ms", &RetryPolicy::backoff_cap},
        {"retry_after_extra_ms", &RetryPolicy::retry_after_extra},
        {"max_server_wait_ms", &RetryPolicy::max_server_wait},
        {"total_deadline_ms", &RetryPolicy::total_deadline},
        {"attempt_timeout_ms", &RetryPolicy::attempt_timeout},
        {"min_attempt_ms", &RetryPolicy::min_attempt},
        {"gate_guard_ms", &RetryPolicy::gate_guard},
        {"budget_floor_ms", &RetryPolicy::budget_floor}};
    const auto found = times.find(field);
    if (found == times.end()) {
        return false;
    }
    policy.*(found->second) = milliseconds(value);
    return true;
}

bool set_list(RetryPolicy& policy, const std::string& field, const Json& value) {
    const std::map<std::string, std::vector<std::string> RetryPolicy::*> lists = {
        {"retry_types", &RetryPolicy::retry_types},
        {"never_retry_types", &RetryPolicy::never_retry_types},
        {"narrow_types", &RetryPolicy::narrow_types},
        {"safe_methods", &RetryPolicy::safe_methods}};
    const auto found = lists.find(field);
    if (found == lists.end()) {
        return false;
    }
    policy.*(found->second) = value.get<std::vector<std::string>>();
    return true;
}

std::uint32_t thousandths(const Json& tokens) {
    return static_cast<std::uint32_t>(std::lround(tokens.get<double>() * 1000));
}

bool set_other(RetryPolicy& policy, const std::string& field, const Json& value) {
    const std::map<std::string, std::function<void()>> setters = {
        {"max_retries", [&] { policy.max_retries = value; }},
        {"backoff_factor", [&] { policy.backoff_factor = value; }},
        {"max_redirects", [&] { policy.max_redirects = value; }},
        {"redirect_to_get", [&] { policy.redirect_to_get = value; }},
        {"retry_statuses", [&] { policy.retry_statuses = value.get<std::vector<int>>(); }},
        {"retry_error_kinds", [&] { policy.retry_errors = errors_of(value); }},
        {"idempotency",
         [&] { policy.key_making = value == "auto" ? KeyMaking::automatic : KeyMaking::caller; }},
        {"idempotency_header", [&] { policy.key_header = value; }},
        {"budget_capacity", [&] { policy.budget_capacity = thousandths(value); }},
        {"budget_retry_cost", [&] { policy.budget_retry_cost = thousandths(value); }},
        {"budget_success_deposit", [&] { policy.budget_success_deposit = thousandths(value); }},
        {"nothing_sent_kinds", [&] {
             for (int i = 0; i <= static_cast<int>(AttemptError::protocol_error); ++i) {
                 const auto error = static_cast<AttemptError>(i);
                 const bool listed =
                     std::find(value.begin(), value.end(), std::string(name(error))) != value.end();
                 EXPECT_EQ(nothing_sent(error), listed) << name(error);
             }
         }}};
    const auto found = setters.find(field);
    if (found == setters.end()) {
        return false;
    }
    found->second();
    return true;
}

}  // namespace

RetryPolicy policy_of(const Json& fields) {
    RetryPolicy policy;
    for (const auto& [field, value] : fields.items()) {
        if (!set_time(policy, field, value) && !set_list(policy, field, value) &&
            !set_other(policy, field, value)) {
            ADD_FAILURE() << "unknown policy field " << field;
        }
    }
    return policy;
}

}  // namespace ration::client
