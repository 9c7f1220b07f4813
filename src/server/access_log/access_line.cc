#include "server/access_log/access_line.h"

#include <array>
#include <string_view>

#include "server/access_log/json_text.h"

namespace ration {

namespace {

constexpr std::size_t max_logged_word = 128;  // methods, ids, names, reasons

std::string_view outcome_name(RequestOutcome outcome) {
    switch (outcome) {
        case RequestOutcome::admitted:
            return "admitted";
        case RequestOutcome::refused:
            return "refused";
        case RequestOutcome::replayed:
            return "replayed";
        case RequestOutcome::preflight:
            return "preflight";
        case RequestOutcome::malformed:
            return "malformed";
        case RequestOutcome::client_gone:
            return "client_gone";
    }
    return "unknown";
}

void member(std::string& out, std::string_view name) {
    out += ",\"";
    out += name;
    out += "\":";
}

void word(std::string& out, std::string_view name, std::string_view value) {
    member(out, name);
    if (value.empty()) {
        out += "null";
    } else {
        append_json_string(out, value, max_logged_word);
    }
}

void number(std::string& out, std::string_view name, std::uint64_t value) {
    member(out, name);
    append_json_number(out, static_cast<std::int64_t>(value));
}

// 0 stands for "there was none".
void status(std::string& out, std::string_view name, int value) {
    member(out, name);
    if (value == 0) {
        out += "null";
    } else {
        append_json_number(out, value);
    }
}

void millis(std::string& out, std::string_view name, Nanos value) {
    member(out, name);
    append_json_millis(out, std::chrono::floor<std::chrono::microseconds>(value));
}

// Where the rule that decided stands; nullptr when none did or the counters gave no answer.
const Level* deciding_level(const Exchange& exchange) {
    for (std::size_t i = 0; i < exchange.charge_count; ++i) {
        if (exchange.rule_of[i] == exchange.decision.rule && (exchange.judged >> i & 1U) != 0) {
            return &exchange.outcome.levels[i];
        }
    }
    return nullptr;
}

// The rule that decided, the wait, and the numbers that were shown for it.
void append_decision(std::string& out, const Exchange& exchange) {
    const Decision& decision = exchange.decision;
    word(out, "rule", exchange.binding_name());
    if (decision.wait.has_value()) {
        member(out, "wait");
        append_json_seconds(out, *decision.wait);
    }
    if (const Level* level = deciding_level(exchange)) {
        number(out, "limit", level->limit);
        number(out, "remaining", level->remaining);
    }
    if (decision.store_down) {
        out += ",\"store_down\":true";
    }
    if (decision.shadow_refused == 0) {
        return;
    }
    member(out, "shadow_refused");
    char before = '[';
    for (std::size_t i = 0; i < exchange.charge_count; ++i) {
        if ((decision.shadow_refused >> i & 1U) != 0) {
            out += before;
            before = ',';
            append_json_string(out, exchange.policy().limits[exchange.rule_of[i]].name,
                               max_logged_word);
        }
    }
    out += ']';
}

void append_caller(std::string& out, const Exchange& exchange) {
    word(out, "credential", exchange.policy().kinds[exchange.kind]);
    word(out, "fingerprint",
         exchange.credential == nullptr ? std::string_view() : exchange.credential->fingerprint);
    std::array<char, 64> text{};
    word(out, "address", exchange.address.text(text));
}

void append_exchange(std::string& out, const Exchange& exchange) {
    member(out, "path");
    if (exchange.target.path.empty()) {
        out += "null";
    } else {
        append_json_string(out, exchange.target.path, max_logged_text);
    }
    const bool routed = exchange.route.route < exchange.policy().routes.size();
    word(out, "route",
         routed ? std::string_view(exchange.policy().routes[exchange.route.route].name)
                : std::string_view());
    append_decision(out, exchange);
    append_caller(out, exchange);
}

}  // namespace

void append_access_line(std::string& out, const RequestRecord& record) {
    out += "{\"time\":";
    append_json_time(out, record.at);
    word(out, "id", record.id);
    word(out, "method", record.method);
    word(out, "outcome", outcome_name(record.outcome));
    status(out, "status", record.status);
    status(out, "upstream_status", record.upstream_status);
    if (record.exchange != nullptr && record.exchange->rules != nullptr) {
        append_exchange(out, *record.exchange);
    }
    number(out, "request_bytes", record.request_bytes);
    number(out, "response_bytes", record.response_bytes);
    millis(out, "total_ms", record.total);
    if (record.upstream > Nanos(0)) {
        millis(out, "upstream_ms", record.upstream);
    }
    if (record.tls) {
        out += ",\"tls\":true";
    }
    if (!record.detail.empty()) {
        word(out, "detail", record.detail);
    }
    out += "}\n";
}

}  // namespace ration
