// The words for what a client decided, as logs, metrics and the other clients spell them.
#include <array>

#include "ration/retry_policy.h"

namespace ration {

std::string_view name(AttemptError error) {
    constexpr std::array<std::string_view, 7> names = {
        "dns_failed",      "connect_failed", "connection_lost", "attempt_timeout",
        "tls_certificate", "bad_request",    "protocol_error"};
    return names[static_cast<std::size_t>(error)];
}

std::string_view name(StopReason reason) {
    constexpr std::array<std::string_view, 18> names = {"success",
                                                        "cancelled",
                                                        "type_never_retry",
                                                        "status_not_retryable",
                                                        "error_not_retryable",
                                                        "unsafe_method",
                                                        "body_not_replayable",
                                                        "attempts_exhausted",
                                                        "server_wait_too_long",
                                                        "deadline",
                                                        "budget_exhausted",
                                                        "gate_closed",
                                                        "throttled",
                                                        "breaker_open",
                                                        "too_many_redirects",
                                                        "bad_location",
                                                        "redirect_to_insecure",
                                                        "redirect_would_change_method"};
    return names[static_cast<std::size_t>(reason)];
}

std::string_view name(WaitSource source) {
    constexpr std::array<std::string_view, wait_sources> names = {
        "backoff", "retry_after", "reset", "body", "gate", "pace", "concurrency"};
    return names[static_cast<std::size_t>(source)];
}

}  // namespace ration
