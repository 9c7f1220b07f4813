// Reservations are asked for in the policy's order: the key first (a replay ends it before any
// ceiling), then ceilings, then quotas, all in one transaction of the ledger. Days and periods are
// worked out here, from the zone or anchor in force at the request's arrival, so the ledger only
// compares instants.
#include "engine/durable.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/time/time.h"
#include "base/same_word.h"
#include "engine/conclude.h"
#include "engine/subject.h"
#include "limits/calendar.h"
#include "policy/key.h"
#include "request/idempotency.h"
#include "wire/hop_fields.h"

namespace ration {
namespace {

// Fields of an answer that are about one exchange (RFC 9110 6.6 and 10.2.3, RFC 6265, RFC 9111
// 5.1, RFC 9209, RFC 9211), and those of the repeat's own limits. Those and what ends at this hop
// pass by; all others belong to the answer and are kept.
constexpr std::string_view passing_fields[] = {"Date",
                                               "Content-Length",
                                               "Trailer",
                                               "Age",
                                               "Server",
                                               "Via",
                                               "Retry-After",
                                               "Set-Cookie",
                                               "Server-Timing",
                                               "Cache-Status",
                                               "Proxy-Status",
                                               "Idempotent-Replayed",
                                               "Proxy-Authentication-Info"};
constexpr std::string_view passing_prefixes[] = {"Ration-", "RateLimit", "X-RateLimit",
                                                 "X-Rate-Limit"};

bool is_kept(std::span<const Header> headers, std::string_view name) {
    const auto begins = [&](std::string_view prefix) { return begins_with_word(name, prefix); };
    const auto takes_away = [&](const Header& header) {
        return field_id(header.name) == FieldId::connection &&
               ends_by_connection(header.value, name);
    };
    return !is_hop_by_hop(field_id(name)) && !is_one_of(name, passing_fields) &&
           std::none_of(std::begin(passing_prefixes), std::end(passing_prefixes), begins) &&
           std::none_of(headers.begin(), headers.end(), takes_away);
}

std::optional<std::uint64_t> most_of(const Exchange& exchange, const AtMost& at_most) {
    if (at_most.attribute.empty()) {
        return at_most.fixed;
    }
    const AttributeValue* value = attribute(exchange, at_most.attribute);
    if (value == nullptr) {
        return std::nullopt;
    }
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, amount_of(*value)));
}

const std::string* text_of(const Exchange& exchange, const std::vector<std::string>& path) {
    const AttributeValue* value = attribute(exchange, path);
    return value == nullptr ? nullptr : std::get_if<std::string>(value);
}

// The window that holds the request's arrival; nullopt: the subject lacks the zone or the anchor.
std::optional<CalendarWindow> window_of(const Exchange& exchange, const CeilingRule& rule) {
    const Wall now = exchange.arrived.wall;
    const std::string* name =
        rule.zone_attribute.empty() ? &rule.zone : text_of(exchange, rule.zone_attribute);
    absl::TimeZone zone;
    const bool has_zone = name != nullptr && !name->empty() && absl::LoadTimeZone(*name, &zone);
    const bool needs_zone = !rule.zone_attribute.empty() || !rule.zone.empty();
    if (needs_zone && !has_zone) {
        return std::nullopt;
    }
    if (rule.kind == CeilingKind::local_day) {
        return local_day(zone, now);
    }
    const std::string* text = text_of(exchange, rule.anchor_attribute);
    std::optional<BillingAnchor> anchor = text == nullptr ? std::nullopt : parse_anchor(*text);
    if (!anchor) {
        return std::nullopt;
    }
    anchor->length = rule.length;
    if (has_zone) {
        anchor = in_zone(*anchor, zone);
    }
    return billing_period(*anchor, now);
}

// The member `name` of a JSON object's top level as an object's id, or empty.
std::string id_in(std::string_view body, const std::string& name) {
    const nlohmann::json answer = nlohmann::json::parse(body, nullptr, false);
    if (!answer.is_object() || !answer.contains(name)) {
        return {};
    }
    const nlohmann::json& id = answer[name];
    if (!id.is_string() && !id.is_number_integer()) {
        return {};  // not written out: nesting of any depth may stand here
    }
    const std::string text = id.is_string() ? id.get<std::string>() : id.dump();
    return text.size() <= max_object_id_bytes ? text : std::string();
}

}  // namespace

std::size_t Durable::max_answer() const {
    return keyed() ? rule_->max_answer : IdempotencyRule{}.max_answer;
}

std::string Durable::key_of(const Exchange& exchange, const DurableScope& rule) const {
    std::array<std::string_view, max_key_parts> parts;
    std::array<char, 1024> room;
    Scratch scratch(room);
    for (std::size_t i = 0; i < rule.key.size(); ++i) {
        const auto part = key_part(exchange, rule.key[i], scratch);
        if (!part) {
            return {};
        }
        parts[i] = *part;
    }
    std::array<char, max_built_key_bytes> buffer;
    std::uint16_t rule_bytes = 0;
    return std::string(
        build_key(buffer, rule.name, std::span(parts).first(rule.key.size()), rule_bytes));
}

void Durable::find_rule(const Exchange& exchange) {
    for (const IdempotencyRule& rule : exchange.policy().idempotency) {
        if (!rule.covers(exchange.route.route, exchange.kind)) {
            continue;
        }
        const bool sent = find_header(exchange.request.headers, rule.header) != nullptr;
        if (sent || rule.required) {
            rule_ = &rule;
        }
        return;
    }
}

void Durable::add_ceilings(const Exchange& exchange) {
    for (const CeilingRule& rule : exchange.policy().ceilings) {
        if (!rule.covers(exchange.route.route, exchange.kind) ||
            ceilings_.size() == max_ceilings_per_request) {
            continue;
        }
        const std::optional<std::uint64_t> at_most = most_of(exchange, rule.at_most);
        const std::optional<CalendarWindow> window = window_of(exchange, rule);
        std::string key = key_of(exchange, rule);
        if (!at_most || !window || key.empty()) {
            continue;  // the subject lacks an attribute: the rule does not apply to it
        }
        ceiling_keys_.push_back(std::move(key));
        ceilings_.push_back({{}, rule.kind, *at_most, *window});
        ceiling_rules_.push_back(&rule);
    }
    for (std::size_t i = 0; i < ceilings_.size(); ++i) {
        ceilings_[i].key = ceiling_keys_[i];
    }
}

void Durable::add_change(const Exchange& exchange, const QuotaRule& rule, const ObjectId& object,
                         bool up) {
    std::string key = key_of(exchange, rule);
    if (key.empty()) {
        return;
    }
    Change change{std::move(key), &object, {}, up};
    if (object.in_body) {
        reads_answer_ = true;
    } else {
        change.id = exchange.route.parameter(object.name);
    }
    changes_.push_back(std::move(change));
}

void Durable::add_quotas(const Exchange& exchange) {
    const RouteIndex route = exchange.route.route;
    for (const QuotaRule& rule : exchange.policy().quotas) {
        if ((rule.kinds & kind_bit(exchange.kind)) == 0) {
            continue;
        }
        for (const ObjectId& object : rule.down) {
            if (object.route == route) {
                add_change(exchange, rule, object, false);
            }
        }
        for (const ObjectId& object : rule.up) {
            if (object.route != route || quotas_.size() == max_quotas_per_request) {
                continue;
            }
            add_change(exchange, rule, object, true);
            const std::optional<std::uint64_t> at_most = most_of(exchange, rule.at_most);
            std::string key = key_of(exchange, rule);
            if (at_most && !key.empty()) {
                quota_keys_.push_back(std::move(key));
                quotas_.push_back({{}, *at_most});
                quota_rules_.push_back(&rule);
            }
        }
    }
    for (std::size_t i = 0; i < quotas_.size(); ++i) {
        quotas_[i].key = quota_keys_[i];
    }
}

std::shared_ptr<Durable> plan_durable(const Exchange& exchange) {
    const Policy& policy = exchange.policy();
    const RouteIndex route = exchange.route.route;
    if (route == no_route || !policy.durable_routes[route]) {
        return nullptr;
    }
    auto durable = std::make_shared<Durable>(exchange.rules);
    durable->find_rule(exchange);
    durable->add_ceilings(exchange);
    durable->add_quotas(exchange);
    if (durable->only_settles() && durable->changes_.empty()) {
        return nullptr;
    }
    return durable;
}

bool ask(Exchange& exchange, Durable& durable, std::string_view body) {
    if (!durable.keyed()) {
        return true;
    }
    const IdempotencyRule& rule = *durable.rule_;
    std::array<char, max_idempotency_key_bytes + 1> room;
    const auto key = idempotency_key(exchange.request.headers, rule.header, room);
    const std::string scope = durable.key_of(exchange, rule);
    if (!key.ok() || !key->has_value()) {
        durable.detail_ = key.ok() ? "This request needs an idempotency key."
                                   : std::string(key.status().message());
        durable.refused_by_ = rule.name;
        refuse(exchange, BuiltIn::bad_request);
        return false;
    }
    if (scope.empty()) {
        durable.rule_ = nullptr;  // the subject has no such scope: the rule does not apply to it
        return true;
    }
    durable.key_ = **key;
    const std::array<std::string_view, 3> parts = {scope, exchange.policy().kinds[exchange.kind],
                                                   durable.key_};
    std::array<char, max_built_key_bytes> buffer;
    std::uint16_t rule_bytes = 0;
    durable.identity_ = build_key(buffer, "key", parts, rule_bytes);
    const Header* type = find_header(exchange.request.headers, "Content-Type");
    durable.fingerprint_ =
        fingerprint({exchange.request.method, exchange.target.path, exchange.target.query,
                     type == nullptr ? std::string_view{} : type->value, body, rule.comparison});
    return true;
}

Reserve Durable::reserve() const {
    Reserve reserve{std::nullopt, ceilings_, quotas_};
    if (keyed()) {
        reserve.key = IdempotencyKey{identity_, fingerprint_, rule_->keep, rule_->doubt};
    }
    return reserve;
}

// ---- the ledger's answer ----

namespace {

// RFC 3986 2.3: what is not unreserved is written as an escape.
void append_percent_encoded(std::string& to, std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    for (const char c : text) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (letter || (c >= '0' && c <= '9') ||
            std::string_view("-._~").find(c) != std::string_view::npos) {
            to += c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        to += {'%', digits[byte >> 4], digits[byte & 15]};
    }
}

// Refused by none of its limits: their declared numbers stay on ration's own answers.
void refuse_beside_limits(Exchange& exchange, BuiltIn which) {
    exchange.decision.rule = -1;
    refuse(exchange, which);
}

}  // namespace

void Durable::refuse_key(Exchange& exchange, BuiltIn which) {
    refused_by_ = rule_->name;
    refuse_beside_limits(exchange, which);
}

void Durable::refuse_count(Exchange& exchange, const DurableScope& rule, std::uint64_t limit) {
    refused_by_ = rule.name;
    limit_ = limit;
    exchange.decision.kind = Decision::Kind::refuse;
    exchange.decision.rule = -1;  // a refusal shows its own rule's numbers and nobody else's
    exchange.decision.charge = -1;
}

// A ceiling or quota that is used up, or would be if what is in flight succeeds.
void Durable::refuse_place(Exchange& exchange, const Reserved& reserved) {
    level_ = reserved.level;
    const bool quota = reserved.verdict == ReserveVerdict::quota_reached || reserved.quota;
    if (reserved.verdict == ReserveVerdict::contended) {
        refused_by_ =
            quota ? quota_rules_[reserved.index]->name : ceiling_rules_[reserved.index]->name;
        refuse_beside_limits(exchange, BuiltIn::contention);
    } else if (quota) {
        const QuotaRule& rule = *quota_rules_[reserved.index];
        refuse_count(exchange, rule, quotas_[reserved.index].at_most);
        exchange.decision.refusal = rule.refusal_for(exchange.kind);
    } else {
        const CeilingRule& rule = *ceiling_rules_[reserved.index];
        const CeilingUse& use = ceilings_[reserved.index];
        refuse_count(exchange, rule, use.at_most);
        exchange.decision.refusal = rule.refusal;
        if (use.at_most != 0) {  // no waiting helps against a ceiling of 0
            exchange.decision.wait = use.window.end - exchange.arrived.wall;
        }
    }
}

void judge(Exchange& exchange, Durable& durable, const LedgerReply& reply) {
    if (!reply.status.ok()) {
        return refuse_beside_limits(exchange, BuiltIn::ledger_unavailable);
    }
    const Reserved& reserved = reply.reserved;
    switch (reserved.verdict) {
        case ReserveVerdict::started:
            durable.attempt_ = reserved.attempt;
            durable.second_try_ = reserved.second_try;
            durable.open_ = true;
            return;
        case ReserveVerdict::replay:
            durable.response_ = reserved.response;
            durable.refused_by_ = durable.rule_->name;
            exchange.decision.kind = Decision::Kind::replay;
            return;
        case ReserveVerdict::probe:
            durable.attempt_ = reserved.attempt;
            durable.second_try_ = durable.open_ = true;
            durable.probing_ = !durable.probed_;
            if (durable.probed_) {  // what the first probe found could not be written down
                refuse_beside_limits(exchange, BuiltIn::ledger_unavailable);
            }
            return;
        case ReserveVerdict::mismatch:
            return durable.refuse_key(exchange, BuiltIn::idempotency_mismatch);
        case ReserveVerdict::in_progress:
            return durable.refuse_key(exchange, BuiltIn::idempotency_in_progress);
        case ReserveVerdict::in_doubt:
            return durable.refuse_key(exchange, BuiltIn::idempotency_in_doubt);
        case ReserveVerdict::not_kept:
            return durable.refuse_key(exchange, BuiltIn::idempotency_response_not_kept);
        case ReserveVerdict::ceiling_reached:
        case ReserveVerdict::quota_reached:
        case ReserveVerdict::contended:
            return durable.refuse_place(exchange, reserved);
    }
}

// ---- probing ----

std::string Durable::probe_target(const Exchange& exchange) const {
    const ProbeRule& probe = rule_->probe;
    std::string target = probe.texts[0];
    for (std::size_t i = 0; i < probe.holes.size(); ++i) {
        if (probe.holes[i] == "key") {
            append_percent_encoded(target, key_);
        } else {
            target += exchange.route.parameter(probe.holes[i]);
        }
        target += probe.texts[i + 1];
    }
    return target;
}

Durable::Probe Durable::probed(int status) {
    if (status >= 200 && status < 300) {
        return Probe::found;
    }
    return status == 404 || status == 410 ? Probe::absent : Probe::unknown;
}

std::optional<Settle> Durable::settle_probed(Exchange& exchange, const CompleteAnswer& answer) {
    probing_ = false;
    probed_ = true;
    if (probed(answer.status) != Probe::found) {
        return settle(SettleKind::absent, answer);
    }
    CompleteAnswer found = answer;
    if (rule_->probe.status != 0) {
        found.status = rule_->probe.status;
    }
    refused_by_ = rule_->name;
    if (answer.whole) {
        exchange.decision.kind = Decision::Kind::replay;
    } else {
        refuse_key(exchange, BuiltIn::idempotency_response_not_kept);
    }
    return settle(SettleKind::written, found);
}

// ---- settling ----

void Durable::keep(const CompleteAnswer& answer) {
    response_ = StoredResponse{answer.status, {}, std::string(answer.body)};
    for (const Header& header : answer.headers) {
        if (is_kept(answer.headers, header.name)) {
            response_.headers.emplace_back(header.name, header.value);
        }
    }
}

void Durable::read_ids(const CompleteAnswer& answer) {
    settled_changes_.clear();
    for (Change& change : changes_) {
        if (change.object->in_body) {
            change.id = answer.whole ? id_in(answer.body, change.object->name) : std::string();
        }
        if (!change.id.empty()) {
            settled_changes_.push_back({change.key, change.id, change.up});
        }
    }
}

std::optional<Settle> Durable::settle(SettleKind kind, const CompleteAnswer& answer) {
    const bool was_open = std::exchange(open_, false);
    Settle settle{attempt_, kind, nullptr, {}};
    if (kind == SettleKind::written) {
        read_ids(answer);
        settle.quotas = settled_changes_;
        if (keyed() && answer.whole) {
            keep(answer);
            settle.response = &response_;
        }
    }
    if (!was_open && !(only_settles() && !settle.quotas.empty())) {
        return std::nullopt;
    }
    return settle;
}

}  // namespace ration
