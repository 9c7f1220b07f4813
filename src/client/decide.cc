#include "client/decide.h"

#include <algorithm>

#include "base/same_word.h"
#include "client/hints.h"
#include "client/policy.h"
#include "wire/decimal.h"

namespace ration::client {
namespace {

std::optional<Nanos> latest_empty_reset(const std::vector<ToldLimit>& limits) {
    std::optional<Nanos> latest;
    for (const ToldLimit& limit : limits) {
        if (limit.remaining == 0 && limit.reset_in && *limit.reset_in > Nanos(0)) {
            latest = std::max(latest.value_or(Nanos(0)), *limit.reset_in);
        }
    }
    return latest;
}

std::optional<StopReason> reason_in_outcome(const EndedAttempt& ended) {
    const RetryPolicy& policy = ended.policy;
    if (const auto error = ended.outcome.error) {
        const auto& list = policy.retry_errors;
        return std::find(list.begin(), list.end(), *error) == list.end()
                   ? std::optional(StopReason::error_not_retryable)
                   : std::nullopt;
    }
    const Told& told = ended.told;
    if (lists(policy.never_retry_types, told.error_type)) {
        return StopReason::type_never_retry;
    }
    if (lists(policy.narrow_types, told.error_type) && !told.floor) {
        return StopReason::type_never_retry;  // it clears at a moment that it did not tell
    }
    const bool good = lists(policy.retry_statuses, ended.outcome.status) ||
                      lists(policy.retry_types, told.error_type);
    return good ? std::nullopt : std::optional(StopReason::status_not_retryable);
}

std::optional<StopReason> reason_in_request(const EndedAttempt& ended) {
    const bool unsent = ended.outcome.error && nothing_sent(*ended.outcome.error);
    if (!unsent && !ended.keyed && !lists(ended.policy.safe_methods, ended.method)) {
        return StopReason::unsafe_method;
    }
    if (ended.body == BodyKind::stream_once_consumed) {
        return StopReason::body_not_replayable;
    }
    return ended.attempts_made > ended.policy.max_retries
               ? std::optional(StopReason::attempts_exhausted)
               : std::nullopt;
}

// The longest wait after which an attempt still has its least time.
Nanos room_for(const EndedAttempt& ended) {
    return ended.policy.total_deadline - ended.policy.min_attempt - ended.elapsed;
}

std::optional<StopReason> reason_in_time(const EndedAttempt& ended) {
    const Nanos floor = ended.told.floor.value_or(Nanos(0));
    if (floor > ended.policy.max_server_wait) {
        return StopReason::server_wait_too_long;
    }
    if (room_for(ended) < floor) {
        return StopReason::deadline;
    }
    return ended.retry_tokens < ended.policy.budget_retry_cost
               ? std::optional(StopReason::budget_exhausted)
               : std::nullopt;
}

std::optional<StopReason> reason_to_stop(const EndedAttempt& ended) {
    if (ended.cancelled) {
        return StopReason::cancelled;
    }
    if (ended.outcome.answered() && ended.outcome.status < 400) {
        return ended.outcome.redirect.value_or(StopReason::success);
    }
    if (const auto reason = reason_in_outcome(ended)) {
        return reason;
    }
    if (const auto reason = reason_in_request(ended)) {
        return reason;
    }
    return reason_in_time(ended);
}

// A field of a limit or a wait is there: without one the server's clock is of no use.
bool tells_times(const HeaderLines& headers) {
    constexpr std::string_view names[] = {"ratelimit", "ratelimit-remaining",
                                          "x-ratelimit-remaining", "retry-after"};
    return std::any_of(std::begin(names), std::end(names), [&](std::string_view name) {
        return find_header(headers, name) != nullptr;
    });
}

// What the server asked for and a little more, or any time up to the back-off's bound.
Nanos wait_for(const EndedAttempt& ended, RandomSource& random) {
    const Nanos room = room_for(ended);
    if (ended.told.floor) {
        const Nanos floor = *ended.told.floor;
        return floor + draw(random, std::min(ended.policy.retry_after_extra, room - floor));
    }
    return draw(random, std::min(backoff_bound(ended.policy, ended.attempts_made - 1), room));
}

}  // namespace

bool lists(const std::vector<std::string>& list, std::string_view word) {
    return !word.empty() && std::find(list.begin(), list.end(), word) != list.end();
}

bool lists(const std::vector<int>& list, int status) {
    return std::find(list.begin(), list.end(), status) != list.end();
}

std::optional<std::string> joined_field(const HeaderLines& headers, std::string_view name) {
    std::optional<std::string> joined;
    for (const auto& [field, value] : headers) {
        if (same_word(field, name)) {
            joined = joined ? *joined + ", " + value : value;
        }
    }
    return joined;
}

Told read_answer(const Outcome& outcome, Wall now) {
    Told told;
    if (!outcome.answered() || !outcome.headers) {
        return told;
    }
    const HeaderLines& headers = *outcome.headers;
    if (outcome.status < 400 && !tells_times(headers)) {
        return told;
    }
    const auto field = [&](std::string_view name) { return joined_field(headers, name); };
    const std::string* date = find_header(headers, "date");
    const Wall server =
        server_now(date ? std::optional<std::string_view>(*date) : std::nullopt, now);
    told.limits = parse_limit_fields(field, server);
    if (outcome.status < 400) {
        return told;
    }
    ErrorBody body = read_error_body(outcome.body);
    told.error_type = std::move(body.type);
    const auto retry_after = field("retry-after");
    const std::pair<WaitSource, std::optional<Nanos>> candidates[] = {
        {WaitSource::retry_after,
         retry_after ? parse_retry_after(*retry_after, server) : std::nullopt},
        {WaitSource::reset, latest_empty_reset(told.limits)},
        {WaitSource::body, body.wait}};
    for (const auto& [source, wait] : candidates) {
        if (wait) {
            told.floor = wait;
            told.source = source;
            break;
        }
    }
    return told;
}

Verdict decide(const EndedAttempt& ended, RandomSource& random) {
    Verdict verdict;
    if (ended.told.floor) {
        verdict.retry_at = moment_after(ended.now, *ended.told.floor);
    }
    if (const auto reason = reason_to_stop(ended)) {
        verdict.reason = *reason;
        return verdict;
    }
    verdict.retry = true;
    verdict.wait = wait_for(ended, random);
    return verdict;
}

}  // namespace ration::client
