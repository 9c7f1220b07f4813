#include "engine/rate_fields.h"

#include "request/header.h"
#include "wire/rate_limit_fields.h"

namespace ration {
namespace {

// The limit whose numbers are shown, or nullptr.
const LimitRule* shown_rule(const Exchange& exchange) {
    return exchange.decision.charge < 0
               ? nullptr
               : &exchange.rule_at(static_cast<std::size_t>(exchange.decision.charge));
}

}  // namespace

void shown_limit_fields(const Exchange& exchange, bool refusal, FieldSink sink) {
    const LimitRule* rule = shown_rule(exchange);
    if (rule == nullptr || rule->headers == HeaderFamily::none) {
        return;
    }
    const auto at = static_cast<std::size_t>(exchange.decision.charge);
    const Level& level = exchange.outcome.levels[at];
    const Limit& limit = *exchange.charges[at].limit;
    RateLimitNumbers numbers;
    numbers.name = rule->name;
    numbers.refused = refusal;
    numbers.limit = level.limit;
    numbers.amount = limit.amount;
    numbers.remaining = level.remaining;
    numbers.concurrent = limit.kind == LimitKind::concurrency;
    numbers.window = limit.period;
    numbers.next = level.next;
    numbers.reset = level.reset;
    numbers.now = exchange.charged_at.wall;
    render_rate_limit_fields(rule->headers, numbers, sink);
}

bool shows_numbers(const Exchange& exchange) {
    const LimitRule* rule = shown_rule(exchange);
    return rule != nullptr && rule->headers != HeaderFamily::none &&
           rule->headers != HeaderFamily::ratelimit_remaining_on_refusal;
}

bool is_shown_limit_field(const Exchange& exchange, std::string_view name) {
    const LimitRule* rule = shown_rule(exchange);
    if (rule == nullptr || (rule->headers != HeaderFamily::x_ratelimit &&
                            rule->headers != HeaderFamily::ietf_draft_03)) {
        return false;
    }
    for (const std::string_view own : rate_limit_field_names(rule->headers).names) {
        if (!own.empty() && equal_ignoring_case(own, name)) {
            return true;
        }
    }
    return false;
}

}  // namespace ration
