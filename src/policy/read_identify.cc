// Kinds are bits of a word, numbered in the file's order behind `anonymous` and `unknown`; what a
// route accepts is then one word, and so is what a limit applies to.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "policy/policy_reader.h"
#include "policy/selector.h"

namespace ration {
namespace {

constexpr std::array<std::string_view, 4> reserved_kinds{"anonymous", "unknown", "any", "else"};

bool is_printable(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

void PolicyReader::read_identify(const YamlNode* node) {
    policy_.kinds = {"anonymous", "unknown"};
    kind_index_ = {{"anonymous", kind_anonymous}, {"unknown", kind_unknown}};
    if (node == nullptr || !reader_.mapping(*node, identify_keys)) {
        read_accepts(nullptr);
        return;
    }
    if (const YamlNode* kinds = node->find("credentials")) {
        read_kinds(*kinds);
    }
    read_accepts(node->find("accepts"));
    if (const YamlNode* issue = node->find("issue")) {
        read_issue(*issue);
    }
    if (const YamlNode* bound = node->find("attributes")) {
        read_bound(*bound);
    }
    if (const YamlNode* address = node->find("address")) {
        read_address(*address);
    }
}

void PolicyReader::read_kinds(const YamlNode& node) {
    if (!reader_.any_mapping(node, "credentials")) {
        return;
    }
    if (node.entries.size() > max_kinds) {
        too_many(node.at, cat("more than ", max_kinds, " kinds of credentials"));
    }
    for (const YamlNode::Entry& entry : node.entries) {
        read_kind(entry);
    }
}

void PolicyReader::read_kind(const YamlNode::Entry& entry) {
    const std::string& name = entry.key->scalar;
    if (!is_identifier(name)) {
        reader_.error(entry.key->at, "a kind's name is letters, digits, '_' and '-', at most 64");
        return;
    }
    if (std::find(reserved_kinds.begin(), reserved_kinds.end(), name) != reserved_kinds.end()) {
        reader_.error(entry.key->at, cat("'", name,
                                         "' is a word of the language; name the "
                                         "kind otherwise"));
        return;
    }
    if (policy_.kinds.size() == max_kinds + 2) {
        kind_index_.emplace(name, static_cast<KindIndex>(policy_.kinds.size() - 1));
        return;
    }
    const auto kind = static_cast<KindIndex>(policy_.kinds.size());
    policy_.kinds.push_back(name);
    kind_index_.emplace(name, kind);
    const auto places = Reader::items(*entry.value);
    if (places.empty() || places.size() > max_places_per_kind) {
        reader_.error(entry.value->at, places.empty()
                                           ? "a kind needs a place: {bearer: pk_*}"
                                           : cat("more than ", max_places_per_kind, " places"));
        return;
    }
    bool only_cookies = true;
    for (const YamlNode* place : places) {
        auto rule = read_credential(*place);
        if (!rule.has_value()) {
            continue;
        }
        only_cookies = only_cookies && rule->source == CredentialSource::cookie;
        rule->kind = name;
        policy_.credentials.push_back(*std::move(rule));
        policy_.kind_of_rule.push_back(kind);
    }
    if (only_cookies) {
        policy_.unknown_is_anonymous |= kind_bit(kind);
    }
}

std::optional<CredentialRule> PolicyReader::read_credential(const YamlNode& node) {
    if (!reader_.mapping(node, credential_keys)) {
        return std::nullopt;
    }
    const YamlNode* bearer = node.find("bearer");
    const YamlNode* header = node.find("header");
    const YamlNode* cookie = node.find("cookie");
    const YamlNode* value = node.find("value");
    if ((bearer != nullptr) + (header != nullptr) + (cookie != nullptr) != 1) {
        reader_.error(node.at, "a credential stands in one place: bearer, header or cookie");
        return std::nullopt;
    }
    CredentialRule rule;
    if (bearer != nullptr) {
        if (!read_pattern(*bearer, rule)) {
            return std::nullopt;
        }
        if (value != nullptr) {
            reader_.error(value->at, "'value' goes with header or cookie; bearer has its pattern");
        }
    } else {
        const YamlNode& place = header != nullptr ? *header : *cookie;
        rule.source = header != nullptr ? CredentialSource::header : CredentialSource::cookie;
        if (const auto name = reader_.text(place, "a header or cookie name")) {
            rule.name = *name;
            if (!is_short_token(*name)) {
                reader_.error(place.at, "not a header or cookie name");
            }
        }
        if (value != nullptr && !read_pattern(*value, rule)) {
            return std::nullopt;
        }
    }
    for (const CredentialRule& other : policy_.credentials) {
        if (other.source == rule.source && other.prefix == rule.prefix &&
            (rule.source == CredentialSource::cookie
                 ? other.name == rule.name
                 : equal_ignoring_case(other.name, rule.name))) {
            reader_.error(node.at, cat("the same place and pattern as kind '", other.kind, "'"));
        }
    }
    return rule;
}

bool PolicyReader::read_pattern(const YamlNode& node, CredentialRule& rule) {
    const auto text = reader_.text(node, "a pattern");
    if (!text.has_value()) {
        return false;
    }
    const std::size_t star = text->find('*');
    if (star == std::string::npos || star + 1 != text->size()) {
        reader_.error(node.at, "a pattern is a prefix and '*', such as pk_*, or '*' for any value");
        return false;
    }
    rule.prefix = text->substr(0, star);
    if (!is_printable(rule.prefix) || rule.prefix.size() > 64) {
        reader_.error(node.at,
                      "a pattern's prefix is at most 64 printable characters without blanks");
        return false;
    }
    return true;
}

std::optional<KindSet> PolicyReader::kind_word(const YamlNode& node) {
    if (node.scalar == "any") {
        return all_kinds;
    }
    const auto found = kind_index_.find(node.scalar);
    if (found != kind_index_.end()) {
        return kind_bit(found->second);
    }
    std::vector<std::string_view> known(policy_.kinds.begin(), policy_.kinds.end());
    known.emplace_back("any");
    reader_.unknown(node.at, "kind of credential", node.scalar, known);
    return std::nullopt;
}

std::optional<KindSet> PolicyReader::kind_set(const YamlNode& node) {
    KindSet set = 0;
    for (const YamlNode* word : reader_.words(node, "a kind of credential")) {
        set |= kind_word(*word).value_or(0);
    }
    if (node.is_sequence() && node.items.empty()) {
        reader_.error(node.at, "no kind at all; 'any' stands for every kind");
        return std::nullopt;
    }
    return set;
}

void PolicyReader::read_accepts(const YamlNode* node) {
    KindSet declared = 0;
    for (std::size_t kind = 2; kind < policy_.kinds.size(); ++kind) {
        declared |= kind_bit(static_cast<KindIndex>(kind));
    }
    KindSet otherwise = declared == 0 ? kind_bit(kind_anonymous) : declared;
    std::vector<std::optional<KindSet>> own(policy_.routes.size());
    if (node != nullptr && reader_.any_mapping(*node, "accepts")) {
        for (const YamlNode::Entry& entry : node->entries) {
            const auto kinds = kind_set(*entry.value);
            if (entry.key->scalar == "else") {
                otherwise = kinds.value_or(otherwise);
            } else if (const auto route = route_named(*entry.key)) {
                own[*route] = kinds;
            }
        }
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
        policy_.routes[i].accepts = own[i].value_or(otherwise);
    }
    // What is not forwarded is a 404 for everybody, not a question of who asks.
    policy_.accepts_unmatched = policy_.forward_unmatched ? otherwise : all_kinds;
}

void PolicyReader::read_bound(const YamlNode& node) {
    if (!reader_.any_mapping(node, "attributes")) {
        return;
    }
    if (node.entries.size() > max_bound_entities) {
        reader_.error(node.at, cat("more than ", max_bound_entities, " attributes"));
        return;
    }
    for (const YamlNode::Entry& entry : node.entries) {
        Selector name;
        if (parse_selector(entry.key->scalar, name) || name.source != Selector::Source::entity) {
            reader_.error(entry.key->at, "an entity's kind is one word, and none of the language");
            continue;
        }
        // A kind is known also where what names it is wrong.
        policy_.bound_entities.emplace_back(entry.key->scalar, read_binding(*entry.value));
    }
}

Selector PolicyReader::read_binding(const YamlNode& node) {
    const std::size_t words = policy_.entity_words.size();
    const auto text = reader_.text(node, "where an entity is named");
    const auto selector = text ? read_selector(node, 0, *text) : std::nullopt;
    if (selector && selector->source != Selector::Source::path &&
        selector->source != Selector::Source::query &&
        selector->source != Selector::Source::header) {
        reader_.error(node.at, "an entity is named by path.x, query.x or header.X");
        policy_.entity_words.resize(words);  // a slip in it needs no second word
    }
    return selector.value_or(Selector{});
}

}  // namespace ration
