#include "engine/render.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/ascii.h"
#include "engine/cors.h"
#include "engine/durable.h"
#include "engine/rate_fields.h"
#include "policy/template.h"
#include "wire/decimal.h"

namespace ration {
namespace {

constexpr std::string_view request_id_field = "Ration-Request-Id";

bool has_header(const Answer& answer, std::string_view name) {
    return std::any_of(answer.headers.begin(), answer.headers.end(),
                       [&](const auto& header) { return equal_ignoring_case(header.first, name); });
}

auto appender(Answer& answer) {
    return [&answer](std::string_view name, std::string_view value) {
        answer.headers.emplace_back(name, value);
    };
}

// Status, templates, type of the body, and no-store: a stored refusal would outlive its wait and
// meet others (RFC 6585 section 4). A refusal of the policy may add to that, never weaken it.
Answer fill_in(const Refusal& refusal, const HoleValues& values) {
    Answer answer;
    answer.status = refusal.status;
    for (const auto& [name, text] : refusal.headers) {
        std::string value;
        if (!equal_ignoring_case(name, "Cache-Control") && text.append_to(value, values)) {
            answer.headers.emplace_back(name, std::move(value));
        }
    }
    if (!refusal.body.empty() && refusal.body.append_to(answer.body, values) &&
        !has_header(answer, "Content-Type")) {
        answer.headers.emplace_back("Content-Type", refusal.content_type);
    }
    answer.headers.emplace_back("Cache-Control", "no-store");
    return answer;
}

HoleValues text_values(const Refusal& refusal, std::string_view request_id) {
    HoleValues values;
    values.type = refusal.type;
    values.message = refusal.message;
    values.request_id = request_id;
    return values;
}

// RFC 9110 15.5.2: a 401 says how to authenticate; of the places where a policy finds credentials
// only bearer tokens have a name there.
void put_challenge(const Policy& policy, Answer& answer) {
    const bool bearer = std::any_of(
        policy.credentials.begin(), policy.credentials.end(),
        [](const CredentialRule& rule) { return rule.source == CredentialSource::bearer; });
    if (answer.status == 401 && bearer && !has_header(answer, "WWW-Authenticate")) {
        answer.headers.emplace_back("WWW-Authenticate", "Bearer");
    }
}

void put_wait(const Decision& decision, std::span<char, 32> wait_text, HoleValues& values) {
    if (decision.wait) {
        values.retry_after = retry_after_seconds(*decision.wait);
        values.wait = decimal_seconds(*decision.wait, wait_text);
    }
}

// The numbers of the ceiling or quota that refused; what is told is the policy's choice.
void put_durable_numbers(const Exchange& exchange, std::span<char, 32> wait_text,
                         HoleValues& values) {
    const Durable& durable = *exchange.durable;
    if (!durable.detail().empty()) {
        values.message = durable.detail();
    }
    if (durable.limit()) {
        values.limit = durable.limit();
        values.count = durable.level();
        values.remaining = *durable.limit() - std::min(*durable.limit(), durable.level());
    }
    put_wait(exchange.decision, wait_text, values);
}

// The numbers of the charge that refused.
void put_numbers(const Exchange& exchange, std::span<char, max_decimal_bytes> wait_text,
                 HoleValues& values) {
    const Decision& decision = exchange.decision;
    values.rule = exchange.binding_name();
    if (exchange.durable != nullptr && !exchange.durable->refused_by().empty()) {
        put_durable_numbers(exchange, wait_text, values);
        return;
    }
    if (decision.rule < 0 || decision.charge < 0) {
        return;
    }
    const auto at = static_cast<std::size_t>(decision.charge);
    const Level& level = exchange.outcome.levels[at];
    const bool zero = exchange.rule_at(at).headers == HeaderFamily::ratelimit_remaining_on_refusal;
    values.limit = level.limit;
    values.remaining = zero ? 0 : level.remaining;
    values.count = level.used;
    if (exchange.charges[at].limit->kind != LimitKind::concurrency) {
        values.reset_epoch =
            epoch_seconds_rounded_up(moment_after(exchange.charged_at.wall, level.reset));
        values.reset_after = seconds_rounded_up(level.reset);
    }
    if (decision.wait) {
        values.wait = decimal_seconds(*decision.wait, wait_text);
    }
    if (level.verdict == Verdict::refused) {
        // A slot in flight comes free when another request ends: soon, at a time nobody knows.
        values.retry_after = retry_after_seconds(decision.wait.value_or(Nanos(0)));
    }
}

// What every answer to a request known to the engine carries.
void put_common(const Exchange& exchange, bool refusal, Answer& answer) {
    shown_limit_fields(exchange, refusal, [&](std::string_view name, std::string_view value) {
        if (!has_header(answer, name)) {  // written out by the policy: its word stands
            answer.headers.emplace_back(name, value);
        }
    });
    put_challenge(exchange.policy(), answer);
    cors_fields(exchange.policy().cors, *exchange.rules->cors, exchange.origin, appender(answer));
    answer.headers.emplace_back(request_id_field, exchange.request.id);
}

Answer render_preflight(const Exchange& exchange) {
    Answer answer;
    answer.status = 204;
    cors_fields(exchange.policy().cors, *exchange.rules->cors, exchange.origin, appender(answer));
    preflight_fields(exchange.policy().cors, *exchange.rules->cors, exchange.request.headers,
                     appender(answer));
    answer.headers.emplace_back(request_id_field, exchange.request.id);
    return answer;
}

// What was kept, with the mark of a replay; the fields of the present exchange (RFC 9110 6.6.1) are
// put and taken away as on an answer that the upstream gives now.
Answer render_replay(const Exchange& exchange) {
    const StoredResponse& kept = exchange.durable->kept();
    Answer answer;
    answer.status = kept.status;
    for (const auto& [name, value] : kept.headers) {
        if (!is_dropped_response_field(exchange, name, value)) {
            answer.headers.emplace_back(name, value);
        }
    }
    answer.headers.emplace_back("Idempotent-Replayed", "true");
    answer.body = kept.body;
    render_response_fields(exchange, appender(answer));
    return answer;
}

}  // namespace

Answer render_decision(const Exchange& exchange) {
    const Decision& decision = exchange.decision;
    if (decision.kind == Decision::Kind::preflight) {
        return render_preflight(exchange);
    }
    if (decision.kind == Decision::Kind::replay) {
        return render_replay(exchange);
    }
    const Refusal& refusal = exchange.policy().refusals[decision.refusal];
    HoleValues values = text_values(refusal, exchange.request.id);
    std::array<char, max_decimal_bytes> wait_text;
    put_numbers(exchange, wait_text, values);
    Answer answer = fill_in(refusal, values);
    put_common(exchange, decision.rule >= 0, answer);
    return answer;
}

Answer render_failure(const Exchange& exchange, BuiltIn which) {
    const Refusal& refusal = exchange.policy().answer(which);
    Answer answer = fill_in(refusal, text_values(refusal, exchange.request.id));
    put_common(exchange, false, answer);
    return answer;
}

Answer render_failure(const Policy& policy, BuiltIn which, std::string_view request_id,
                      std::string_view detail) {
    const Refusal& refusal = policy.answer(which);
    HoleValues values = text_values(refusal, request_id);
    if (!detail.empty()) {
        values.message = detail;
    }
    Answer answer = fill_in(refusal, values);
    cors_fields(policy.cors, CorsText(policy.cors), {}, appender(answer));
    answer.headers.emplace_back(request_id_field, request_id);
    return answer;
}

bool is_dropped_response_field(const Exchange& exchange, std::string_view name,
                               std::string_view value) {
    if (shows_numbers(exchange) && equal_ignoring_case(name, "Cache-Control")) {
        // Ours says private; the upstream's own words stay where they say no less.
        const std::string said =
            absl::AsciiStrToLower(absl::string_view(value.data(), value.size()));
        return said.find("private") == std::string::npos &&
               said.find("no-store") == std::string::npos;
    }
    return (exchange.policy().cors.enabled && is_cors_field(name)) ||
           is_shown_limit_field(exchange, name) || equal_ignoring_case(name, request_id_field);
}

void render_response_fields(const Exchange& exchange, FieldSink sink) {
    bool numbers = false;
    shown_limit_fields(exchange, false, [&](std::string_view name, std::string_view value) {
        numbers = true;
        sink(name, value);
    });
    if (numbers) {
        // A caller's own numbers must not reach others from a shared cache. Beside the upstream's
        // own directives the stricter one counts (RFC 9111 section 4.2.1).
        sink("Cache-Control", "private");
    }
    cors_fields(exchange.policy().cors, *exchange.rules->cors, exchange.origin, sink);
    sink(request_id_field, exchange.request.id);
}

}  // namespace ration
