#include "engine/plan.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>

#include "base/assert.h"
#include "engine/subject.h"
#include "policy/key.h"

namespace ration {
namespace {

bool counts_method(const LimitRule& rule, std::string_view method) {
    if (rule.methods.empty()) {
        return true;
    }
    const std::string_view counted = counted_method(method);
    return std::any_of(rule.methods.begin(), rule.methods.end(), [&](const std::string& named) {
        return named == method || named == counted;
    });
}

// The canonical key in the charge's own slot of the key buffer, or empty when a part is lacking.
std::string_view key_of(Exchange& exchange, const LimitRule& rule, Charge& charge) {
    RATION_ASSERT(rule.key.size() <= max_key_parts);
    std::array<std::string_view, max_key_parts> parts;
    Scratch scratch(exchange.scratch_room());
    for (std::size_t i = 0; i < rule.key.size(); ++i) {
        const auto part = key_part(exchange, rule.key[i], scratch);
        if (!part) {
            return {};
        }
        parts[i] = *part;
    }
    const auto slot =
        std::span(exchange.key_buffer)
            .subspan(exchange.charge_count * max_built_key_bytes, max_built_key_bytes);
    const std::string_view key =
        build_key(slot, rule.name, std::span(parts).first(rule.key.size()), charge.rule_bytes);
    RATION_ASSERT(!key.empty());
    return key;
}

enum class Applies : std::uint8_t { no, yes, impossible };

Applies charge_for(Exchange& exchange, const Candidate& candidate, Charge& charge) {
    const LimitRule& rule = *candidate.rule;
    charge.op = rule.part == StrikePart::block ? ChargeOp::require : ChargeOp::take;
    charge.limit = candidate.limit;
    if (!charge.limit) {
        const AttributeValue* amount = attribute(exchange, rule.numbers.attribute->path);
        if (amount == nullptr) {
            return Applies::no;
        }
        charge.limit = exchange.rules->plan->from_attribute(candidate.index, amount_of(*amount));
        if (!charge.limit) {
            return Applies::impossible;
        }
    }
    charge.cost = candidate.cost;
    if (!rule.cost.request_header.empty()) {
        const std::uint32_t stated =
            stated_cost(exchange.request.headers, rule.cost.request_header, candidate.cost);
        charge.cost = stated == 0 ? candidate.cost : stated;  // nobody declares itself free
    }
    charge.numbers_since = exchange.rules->dates->of(exchange, candidate.index);
    charge.key = key_of(exchange, rule, charge);
    return charge.key.empty() ? Applies::no : Applies::yes;
}

}  // namespace

std::uint32_t stated_cost(std::span<const Header> headers, std::string_view name,
                          std::uint32_t otherwise) {
    const Header* header = find_header(headers, name);
    if (header == nullptr || header->value.empty() ||
        !std::all_of(header->value.begin(), header->value.end(),
                     [](char c) { return c >= '0' && c <= '9'; })) {
        return otherwise;
    }
    std::uint32_t cost = 0;
    const std::string_view text = header->value;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), cost);
    return read.ec == std::errc::result_out_of_range ? std::numeric_limits<std::uint32_t>::max()
                                                     : cost;
}

bool plan(Exchange& exchange) {
    exchange.charge_count = exchange.enforced_count = 0;
    exchange.to_settle = 0;
    bind_entities(exchange);
    for (const Candidate& candidate :
         exchange.rules->plan->candidates(exchange.route.route, exchange.kind)) {
        if (!counts_method(*candidate.rule, exchange.method) ||
            (exchange.preflight && candidate.rule->part != StrikePart::block)) {
            continue;
        }
        // In place; one more than can be charged has room, to be seen to be one too many.
        Charge& charge = exchange.charges[exchange.charge_count];
        const Applies applies = charge_for(exchange, candidate, charge);
        if (applies == Applies::no) {
            continue;
        }
        if (applies == Applies::impossible || exchange.charge_count == max_charges) {
            return false;
        }
        const std::size_t at = exchange.charge_count++;
        exchange.rule_of[at] = candidate.index;
        exchange.enforced_count =
            static_cast<std::uint8_t>(exchange.enforced_count + (candidate.rule->shadow ? 0 : 1));
        exchange.to_settle |= candidate.settles ? std::uint32_t{1} << at : 0;
    }
    return true;
}

}  // namespace ration
