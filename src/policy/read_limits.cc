#include "base/text.h"
#include "policy/key.h"
#include "policy/policy_reader.h"
#include "policy/selector.h"

namespace ration {
namespace {

bool is_limit_name(std::string_view text) {
    if (text.empty() || text.size() > max_rule_name_bytes || text.front() == ' ' ||
        text.back() == ' ') {
        return false;
    }
    for (const char c : text) {
        if (c < 0x20 || c > 0x7e || c == '"' || c == '\\') {
            return false;
        }
    }
    return true;
}

bool same_selector(const Selector& a, const Selector& b) {
    const bool names_equal = a.source == Selector::Source::header
                                 ? equal_ignoring_case(a.name, b.name)
                                 : a.name == b.name;
    return a.source == b.source && names_equal && a.path == b.path;
}

}  // namespace

void PolicyReader::read_limits(const YamlNode& node) {
    if (!node.is_sequence()) {
        reader_.error(node.at, cat("limits is a list, not ", node.kind_name()));
        return;
    }
    if (node.items.size() > max_limits) {
        too_many(node.at, cat("more than ", max_limits, " limits"));
        return;
    }
    for (const YamlNode* item : node.items) {
        read_limit(*item);
    }
}

void PolicyReader::read_limit(const YamlNode& node) {
    if (!reader_.mapping(node, limit_keys)) {
        return;
    }
    LimitRule rule;
    rule.at = node.at;
    read_limit_name(node, rule);
    read_scope(node, rule);
    if (const YamlNode* key = node.find("per")) {
        read_key(*key, rule);
        check_body_key(rule);
    }
    read_numbers(node, rule);
    if (const YamlNode* cost = node.find("cost")) {
        read_cost(*cost, rule);
    }
    read_answering(node, rule);
    policy_.limits.push_back(std::move(rule));
}

void PolicyReader::read_limit_name(const YamlNode& node, LimitRule& rule) {
    const YamlNode* name = node.find("name");
    const auto text = name != nullptr ? reader_.text(*name, "a limit's name") : std::nullopt;
    if (!text.has_value()) {
        return;
    }
    rule.name = *text;
    if (!is_limit_name(*text)) {
        reader_.error(name->at, cat("a limit's name is 1 to ", max_rule_name_bytes,
                                    " printable ASCII characters without quotes"));
        return;
    }
    const auto [first, added] = limit_names_.emplace(*text, name->at);
    if (!added) {
        reader_.error(name->at, cat("the limit '", *text, "' is there already, on line ",
                                    first->second.line, "; a limit's name is its identity"));
    }
}

void PolicyReader::read_scope(const YamlNode& node, LimitRule& rule) {
    all_routes_known_ = true;
    const YamlNode* routes = node.find("routes");
    const YamlNode* except = node.find("except_routes");
    if (routes != nullptr && except != nullptr) {
        reader_.error(except->at, "a limit has routes or except_routes, not both");
    } else if (routes != nullptr) {
        const std::size_t before = reader_.error_count();
        rule.routes = route_set(*routes);
        all_routes_known_ = reader_.error_count() == before;
        rule.unmatched = false;
    } else if (except != nullptr) {
        rule.routes = route_set(*except);
        rule.routes.flip();
    }
    if (const YamlNode* methods = node.find("methods")) {
        read_methods(*methods, rule);
    }
    if (const YamlNode* kinds = node.find("credentials")) {
        rule.kinds = kind_set(*kinds).value_or(all_kinds);
    }
}

std::optional<RouteIndex> PolicyReader::route_named(const YamlNode& node) {
    const auto found = route_index_.find(node.scalar);
    if (found != route_index_.end()) {
        return found->second;
    }
    reader_.unknown(node.at, "route", node.scalar, route_names_);
    return std::nullopt;
}

std::vector<bool> PolicyReader::route_set(const YamlNode& node) {
    std::vector<bool> set(policy_.routes.size());
    if (node.is_sequence() && node.items.empty()) {
        reader_.error(node.at, "no route at all; leave the key out to mean every request");
    }
    for (const YamlNode* name : reader_.words(node, "a route")) {
        if (const auto route = route_named(*name)) {
            set[*route] = true;
        }
    }
    return set;
}

void PolicyReader::read_methods(const YamlNode& node, LimitRule& rule) {
    bool get = false;
    bool head = false;
    for (const YamlNode* method : reader_.words(node, "a method")) {
        if (!is_short_token(method->scalar)) {
            reader_.error(method->at, "not a method");
            continue;
        }
        const std::vector<std::string_view> known(method_words.words.begin(),
                                                  method_words.words.end());
        const std::string_view meant = nearest_word(method->scalar, known);
        if (!meant.empty() && meant != method->scalar) {
            reader_.unknown(method->at, "method", method->scalar, known);
            continue;
        }
        get = get || method->scalar == "GET";
        head = head || method->scalar == "HEAD";
        rule.methods.push_back(method->scalar);
    }
    if (rule.methods.size() > method_words.words.size() * 2) {
        reader_.error(node.at, "too many methods");
    }
    if (node.is_sequence() && node.items.empty()) {
        reader_.error(node.at, "no method at all; leave the key out to mean every method");
    }
    if (get && !head) {
        rule.methods.emplace_back("HEAD");  // spends what GET spends
    }
}

void PolicyReader::read_key(const YamlNode& node, LimitRule& rule) {
    const auto parts = reader_.words(node, "a part of the key");
    if (parts.size() > max_key_parts) {
        reader_.error(node.at, cat("more than ", max_key_parts, " parts"));
        return;
    }
    for (const YamlNode* part : parts) {
        auto selector = read_selector(*part, 0, part->scalar);
        if (!selector.has_value()) {
            continue;
        }
        for (const Selector& other : rule.key) {
            if (same_selector(other, *selector)) {
                reader_.error(part->at, cat("'", part->scalar, "' is there already"));
            }
        }
        rule.key.push_back(*std::move(selector));
    }
}

std::optional<Selector> PolicyReader::read_selector(const YamlNode& node, std::size_t offset,
                                                    std::string_view text) {
    Selector selector;
    selector.at = node.at;
    if (const auto problem = parse_selector(text, selector)) {
        reader_.error_in(node, offset + problem->offset, problem->reason);
        return std::nullopt;
    }
    if (selector.source == Selector::Source::path && !path_parameters_.contains(selector.name)) {
        reader_.unknown(node.at, "path parameter", selector.name,
                        {path_parameters_.begin(), path_parameters_.end()});
        return std::nullopt;
    }
    note_word(node, offset, selector);
    return selector;
}

void PolicyReader::note_word(const YamlNode& node, std::size_t offset, const Selector& selector) {
    const bool attribute = selector.source == Selector::Source::attribute;
    if (!attribute && selector.source != Selector::Source::entity) {
        return;
    }
    const int shift = static_cast<int>(offset) + (node.quoted ? 1 : 0);
    policy_.entity_words.push_back(
        {attribute ? selector.path : std::vector<std::string>{selector.name},
         attribute,
         {node.at.line, node.at.column + shift}});
}

}  // namespace ration
