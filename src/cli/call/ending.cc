#include "cli/call/ending.h"

#include "base/text.h"
#include "wire/decimal.h"

namespace ration {

int exit_code_of(const ClientResult& result) {
    if (result.ok()) {
        return exit_good;
    }
    switch (result.reason) {
        case StopReason::cancelled:
            return exit_interrupted;
        case StopReason::gate_closed:
        case StopReason::throttled:
        case StopReason::breaker_open:
        case StopReason::server_wait_too_long:
            return exit_limited;
        case StopReason::type_never_retry:
            return exit_refused;
        default:
            break;
    }
    if (result.error) {
        const bool maybe_done = *result.error == AttemptError::connection_lost ||
                                *result.error == AttemptError::attempt_timeout;
        if (*result.error == AttemptError::bad_request) {
            return exit_wrong_use;
        }
        return maybe_done && result.reason == StopReason::unsafe_method ? exit_unknown
                                                                        : exit_no_answer;
    }
    const bool limited = result.status == 429 || result.status == 503 || result.status == 0;
    return limited ? exit_limited : exit_refused;
}

std::string ending_of(const ClientResult& result) {
    std::string text = result.error         ? std::string(name(*result.error))
                       : result.status != 0 ? cat(result.status)
                                            : std::string("nothing was sent");
    if (!result.error_type.empty()) {
        text += " " + result.error_type;
    }
    if (result.attempts > 1) {
        text += cat(" after ", result.attempts, " attempts");
    }
    text += cat(" (", name(result.reason), ")");
    if (!result.message.empty()) {
        text += ": " + result.message;
    }
    if (result.retry_at) {
        char moment[max_decimal_bytes];
        const Wall whole = std::chrono::ceil<std::chrono::seconds>(*result.retry_at);
        text += cat("; try again from ", rfc3339(whole, moment));
    }
    return text;
}

std::string_view words_for(WaitSource source) {
    switch (source) {
        case WaitSource::backoff:
            return "backing off";
        case WaitSource::retry_after:
            return "the server asked for it (Retry-After)";
        case WaitSource::reset:
            return "the limit is used up until then";
        case WaitSource::body:
            return "the server asked for it (in the body)";
        case WaitSource::gate:
            return "what remains is in use, or an answer asked to hold back";
        case WaitSource::pace:
            return "keeping the pace";
        case WaitSource::concurrency:
            return "enough calls are in flight";
    }
    return {};
}

std::string seconds_text(Nanos time) {
    const std::int64_t tenths = (time.count() + 50'000'000) / 100'000'000;
    return cat(tenths / 10, '.', tenths % 10, " s");
}

}  // namespace ration
