// The rest of a limit: what a request takes from it, and what is told to whom.
#include <array>

#include "absl/strings/ascii.h"
#include "base/text.h"
#include "policy/policy_reader.h"

namespace ration {
namespace {

constexpr std::array<std::string_view, 4> yes_words{"true", "1", "yes", "on"};
constexpr std::array<std::string_view, 5> no_words{"", "false", "0", "no", "off"};

template <std::size_t n>
bool is_one_of(std::string_view text, const std::array<std::string_view, n>& words) {
    for (const std::string_view word : words) {
        if (text == word) {
            return true;
        }
    }
    return false;
}

}  // namespace

void PolicyReader::read_answering(const YamlNode& node, LimitRule& rule) {
    if (const YamlNode* headers = node.find("headers")) {
        rule.headers = static_cast<HeaderFamily>(
            reader_.word(*headers, "header family", header_family_words).value_or(0));
    }
    rule.refusal = refusal_index_.at("rate_limited");
    if (const YamlNode* refuse = node.find("refuse")) {
        rule.refusal = refusal_named(*refuse).value_or(rule.refusal);
    }
    refusal_used_[rule.refusal] = true;
    if (const YamlNode* down = node.find("store_down")) {
        read_store_down(*down, rule);
    }
    if (const YamlNode* shadow = node.find("shadow")) {
        rule.shadow = reader_.boolean(*shadow, "shadow").value_or(false);
    }
}

void PolicyReader::read_store_down(const YamlNode& node, LimitRule& rule) {
    if (!node.is_mapping()) {
        rule.store_down = static_cast<StoreDown>(
            reader_.word(node, "word for store_down", store_down_words).value_or(0));
        return;
    }
    const YamlNode* condition =
        reader_.mapping(node, store_down_keys) ? node.find("closed_if") : nullptr;
    const auto text = condition != nullptr ? reader_.text(*condition, "closed_if") : std::nullopt;
    if (!text.has_value()) {
        return;
    }
    const std::string name = text->substr(std::min<std::size_t>(4, text->size()));
    if (!text->starts_with("env.") || !is_identifier(name)) {
        reader_.error(condition->at, "closed_if names an environment variable: env.NAME");
        return;
    }
    const char* set = environment_ != nullptr ? environment_(name.c_str()) : nullptr;
    const std::string value = absl::AsciiStrToLower(set != nullptr ? set : "");
    if (is_one_of(value, yes_words)) {
        rule.store_down = StoreDown::closed;
    } else if (!is_one_of(value, no_words)) {
        reader_.error(condition->at, cat("the environment variable ", name,
                                         " is neither yes (true, 1, yes, on) nor no (false, 0, "
                                         "no, off, or not set)"));
    }
}

void PolicyReader::read_cost(const YamlNode& node, LimitRule& rule) {
    if (!node.is_mapping()) {
        rule.cost.fixed =
            static_cast<std::uint32_t>(reader_.whole(node, "cost", 1, max_cost).value_or(1));
        return;
    }
    if (!reader_.mapping(node, cost_keys)) {
        return;
    }
    if (const YamlNode* units = node.find("units")) {
        rule.cost.fixed =
            static_cast<std::uint32_t>(reader_.whole(*units, "units", 1, max_cost).value_or(1));
    }
    const YamlNode* by_route = node.find("by_route");
    if (by_route != nullptr && reader_.any_mapping(*by_route, "by_route")) {
        for (const YamlNode::Entry& entry : by_route->entries) {
            const auto route = route_named(*entry.key);
            const auto units = reader_.whole(*entry.value, "cost", 1, max_cost);
            if (route.has_value() && units.has_value()) {
                rule.cost.by_route.emplace_back(*route, static_cast<std::uint32_t>(*units));
            }
            if (route.has_value() && all_routes_known_ && !rule.covers(*route)) {
                reader_.error(entry.key->at, "the limit does not apply to this route");
            }
        }
    }
    read_cost_source(node.find("from"), rule.cost.request_header);
    read_cost_source(node.find("settle"), rule.cost.response_header);
}

void PolicyReader::read_cost_source(const YamlNode* node, std::string& header) {
    if (node == nullptr || !reader_.mapping(*node, cost_source_keys)) {
        return;
    }
    if (const YamlNode* name = node->find("header")) {
        header = reader_.text(*name, "a header name").value_or("");
        if (!is_short_token(header)) {
            reader_.error(name->at, "not a header name");
        }
    }
}

}  // namespace ration
