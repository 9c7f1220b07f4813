#include "cli/call/ending.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "base/utf8.h"
#include "cli/call/shown.h"
#include "wire/decimal.h"

namespace ration {
namespace {

bool sent_and_lost(const ClientResult& result) {
    if (result.reason == StopReason::cancelled && !result.error) {
        return result.attempts > 0 && result.status == 0;  // while it was asked
    }
    return result.error == AttemptError::connection_lost ||
           result.error == AttemptError::attempt_timeout ||
           result.error == AttemptError::protocol_error;
}

bool repeatable(const ClientResult& result, std::string_view method) {
    const std::vector<std::string> safe = RetryPolicy{}.safe_methods;
    return keyed(result) || std::find(safe.begin(), safe.end(), method) != safe.end();
}

}  // namespace

bool keyed(const ClientResult& result) {
    return !result.idempotency_key.empty() && !result.without_secrets;
}

bool may_have_been_done(const ClientResult& result, std::string_view method) {
    return sent_and_lost(result) && !repeatable(result, method);
}

int exit_code_of(const ClientResult& result, std::string_view method) {
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
        if (*result.error == AttemptError::bad_request) {
            return exit_wrong_use;
        }
        return may_have_been_done(result, method) ? exit_unknown : exit_no_answer;
    }
    const bool limited = result.status == 429 || result.status == 503 || result.status == 0;
    return limited ? exit_limited : exit_refused;
}

int exit_code_of_lost(const ClientResult& result, std::string_view method) {
    const bool unread = result.error == AttemptError::bad_request;  // it stopped there
    if (!result.ok() && !unread) {
        return exit_code_of(result, method);
    }
    return repeatable(result, method) ? exit_no_answer : exit_unknown;
}

std::optional<Wall> again_from(const ClientResult& result) {
    const bool final = result.reason == StopReason::type_never_retry ||
                       result.reason == StopReason::status_not_retryable;
    return final ? std::nullopt : result.retry_at;
}

std::string ending_of(const ClientResult& result) {
    std::string text = result.error         ? std::string(name(*result.error))
                       : result.status != 0 ? cat(result.status)
                       : result.attempts > 0
                           ? std::string("no answer yet; it may have been carried out")
                           : std::string("nothing was sent");
    if (!result.error_type.empty()) {
        text += " " + printable(result.error_type);
    }
    if (result.attempts > 1) {
        text += cat(" after ", result.attempts, " attempts");
    }
    text += cat(" (", name(result.reason), ")");
    if (!result.message.empty()) {
        text += ": " + printable(shown_text(result.message));
    }
    if (const auto at = again_from(result)) {
        char moment[max_decimal_bytes];
        const Wall whole = std::chrono::ceil<std::chrono::seconds>(*at);
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

std::string printable(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const auto first = static_cast<unsigned char>(text.front());
        const bool c1 = length == 2 && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
        if (length == 0 || c1 || first < 0x20 || first == 0x7F) {
            for (const char c : text.substr(0, std::max<std::size_t>(length, 1))) {
                const auto byte = static_cast<unsigned char>(c);
                out += cat("\\x", "0123456789abcdef"[byte >> 4U], "0123456789abcdef"[byte & 0xFU]);
            }
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return out;
}

std::string seconds_text(Nanos time) {
    const std::int64_t tenths = (time.count() + 50'000'000) / 100'000'000;
    return cat(tenths / 10, '.', tenths % 10, " s");
}

}  // namespace ration
