// The numbers and lists by which the retrying client decides, and the words for what it decided.
//
// A policy is plain data: change the fields that differ and hand it to a client
// (ration/client.h). Times are spans in nanoseconds, none longer than `longest_time`; a longer one
// counts as that. Names compare as HTTP has them: methods and types with case, fields without.
//
//   ration::RetryPolicy policy;
//   policy.max_server_wait = std::chrono::minutes(5);   // a batch job can wait
//   policy.retry_statuses.push_back(502);
//   absl::Status good = ration::validate(policy);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ration/time.h"

namespace ration {

// A hundred years: "no bound" in words of this header.
inline constexpr Nanos longest_time = std::chrono::hours(24 * 36525);
inline constexpr unsigned max_policy_entries = 256;  // of each list

// Why an attempt has no answer.
enum class AttemptError : std::uint8_t {
    dns_failed,       // nothing was sent
    connect_failed,   // nothing was sent
    connection_lost,  // on the way; the server may have acted
    attempt_timeout,  // as above
    tls_certificate,  // the server is not who it says
    bad_request,      // no such URL or field, or the body could not be read
    protocol_error,   // the answer is not HTTP, or larger than allowed
};

// Why a call ended. `success` is any answer below 400.
enum class StopReason : std::uint8_t {
    success,
    cancelled,
    type_never_retry,
    status_not_retryable,
    error_not_retryable,
    unsafe_method,
    body_not_replayable,
    attempts_exhausted,
    server_wait_too_long,
    deadline,
    budget_exhausted,
    gate_closed,  // nothing was sent: an earlier answer said "not before", further off than allowed
    throttled,    // nothing was sent: the server accepts too little of what it gets
    breaker_open,  // nothing was sent: the circuit breaker is open
    too_many_redirects,
    bad_location,
    redirect_to_insecure,
    redirect_would_change_method,
};

// Whose word a wait follows.
enum class WaitSource : std::uint8_t {
    backoff,      // nobody's: full jitter
    retry_after,  // the Retry-After field
    reset,        // the reset time of a limit that is used up
    body,         // retry_after in the error's body
    gate,         // what an answer to another call told
    pace,         // the load shaper
    concurrency,  // the in-flight limit
};
inline constexpr std::size_t wait_sources = 7;

// "connection_lost", "server_wait_too_long", "retry_after": for logs and metrics.
[[nodiscard]] std::string_view name(AttemptError error);
[[nodiscard]] std::string_view name(StopReason reason);
[[nodiscard]] std::string_view name(WaitSource source);

// Who makes idempotency keys for POST and PATCH.
enum class KeyMaking : std::uint8_t {
    caller,     // the caller or nobody
    automatic,  // the client, where the caller gave none
};

struct RetryPolicy {
    // A retry is one more send: 5 retries are at most 6 sends.
    unsigned max_retries = 5;
    // Without a hint: any time from 0 to min(cap, base * factor^n), n from 0.
    Nanos backoff_base = std::chrono::milliseconds(500);
    unsigned backoff_factor = 2;
    Nanos backoff_cap = std::chrono::seconds(30);
    // With a hint: that long and a random part of this.
    Nanos retry_after_extra = std::chrono::milliseconds(500);
    // A longer wait asked for by the server ends the call instead.
    Nanos max_server_wait = std::chrono::seconds(60);
    // Covers all sends, waits and holds of a call.
    Nanos total_deadline = std::chrono::seconds(120);
    Nanos attempt_timeout = std::chrono::seconds(30);
    // Nothing is begun that would leave an attempt less.
    Nanos min_attempt = std::chrono::milliseconds(100);
    // Behind the reset time of a limit that is used up.
    Nanos gate_guard = std::chrono::milliseconds(50);
    std::vector<int> retry_statuses = {429, 503};
    // Error types that make any status retryable.
    std::vector<std::string> retry_types;
    std::vector<std::string> never_retry_types = {"booking_volume_refused", "idempotency_mismatch"};
    // They concern one operation only, and clear at the time that their answer tells.
    std::vector<std::string> narrow_types = {"daily_booking_limit"};
    std::vector<std::string> safe_methods = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};
    std::vector<AttemptError> retry_errors = {
        AttemptError::dns_failed, AttemptError::connect_failed, AttemptError::connection_lost,
        AttemptError::attempt_timeout};
    KeyMaking key_making = KeyMaking::caller;
    std::string key_header = "Idempotency-Key";
    // Retries are paid for by successes, for each origin. Thousandths of a token. A repeat of what
    // was never sent (dns_failed, connect_failed) takes none.
    std::uint32_t budget_capacity = 50'000;
    std::uint32_t budget_retry_cost = 1'000;
    std::uint32_t budget_success_deposit = 200;
    // Whoever has not retried for so long always has one retry.
    Nanos budget_floor = std::chrono::seconds(10);
    unsigned max_redirects = 5;
    // Follow redirects that turn a POST into a GET.
    bool redirect_to_get = false;
};

// InvalidArgument with the field's name for a negative time, a factor of 0, a list longer than
// max_policy_entries, a key header that is no field name.
[[nodiscard]] absl::Status validate(const RetryPolicy& policy);

// Where random numbers come from. Thread rule: the client asks it under a lock of its own.
class RandomSource {
public:
    virtual ~RandomSource() = default;
    [[nodiscard]] virtual std::uint64_t bits() = 0;  // 64 independent fair bits
};

}  // namespace ration
