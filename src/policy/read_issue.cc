// What operators may issue: the kind's own place says how its secrets begin, the rule says whom
// they belong to and which numbers they carry.
#include <algorithm>

#include "base/text.h"
#include "policy/policy_reader.h"
#include "policy/selector.h"

namespace ration {

void PolicyReader::read_issue(const YamlNode& node) {
    if (!reader_.any_mapping(node, "issue")) {
        return;
    }
    for (const YamlNode::Entry& entry : node.entries) {
        read_issue_rule(entry);
    }
}

void PolicyReader::read_issue_rule(const YamlNode::Entry& entry) {
    const auto kind = kind_index_.find(entry.key->scalar);
    const bool known = kind != kind_index_.end() && kind->second > kind_unknown;
    if (!known) {
        reader_.unknown(entry.key->at, "kind of credential", entry.key->scalar,
                        {policy_.kinds.begin() + 2, policy_.kinds.end()});
    }
    if (!reader_.mapping(*entry.value, issue_keys)) {
        return;
    }
    IssueRule rule;
    rule.at = entry.key->at;
    if (known) {
        rule.kind = kind->second;
        read_issue_prefix(*entry.key, rule);
    }
    if (const YamlNode* owner = entry.value->find("owner")) {
        Selector selector;
        const auto text = reader_.text(*owner, "the owner's kind");
        if (text.has_value() &&
            (parse_selector(*text, selector) || selector.source != Selector::Source::entity)) {
            reader_.error(owner->at, "an owner is a kind of entity: user, team, account");
        }
        rule.owner = text.value_or("");
        rule.owner_at = owner->at;
    }
    const YamlNode* numbers = entry.value->find("numbers");
    if (numbers != nullptr && reader_.any_mapping(*numbers, "numbers")) {
        if (numbers->entries.size() > max_issued_numbers) {
            reader_.error(numbers->at, cat("more than ", max_issued_numbers, " numbers"));
            return;
        }
        for (const YamlNode::Entry& number : numbers->entries) {
            read_issued_number(number, rule);
        }
    }
    policy_.issues.push_back(std::move(rule));
}

void PolicyReader::read_issue_prefix(const YamlNode& at, IssueRule& rule) {
    std::size_t places = 0;
    for (std::size_t i = 0; i < policy_.credentials.size(); ++i) {
        if (policy_.kind_of_rule[i] == rule.kind &&
            policy_.credentials[i].source != CredentialSource::cookie) {
            ++places;
            rule.prefix = policy_.credentials[i].prefix;
        }
    }
    if (places != 1 || rule.prefix.empty()) {
        reader_.error(at.at,
                      "a kind that is issued has one place, not a cookie, with a pattern "
                      "that says how its secrets begin: {bearer: tok_*}");
    }
}

void PolicyReader::read_issued_number(const YamlNode::Entry& entry, IssueRule& rule) {
    IssuedNumber number;
    number.name = entry.key->scalar;
    if (!is_identifier(number.name) || number.name == "kind" || number.name == "name" ||
        number.name == rule.owner) {
        reader_.error(entry.key->at,
                      "a number's name is a word, and none of kind, name and the "
                      "owner's kind");
        return;
    }
    if (!reader_.mapping(*entry.value, issued_number_keys)) {
        return;
    }
    const auto read = [&](std::string_view key, std::int64_t& value) {
        if (const YamlNode* node = entry.value->find(key)) {
            value = static_cast<std::int64_t>(reader_.whole(*node, key, 0, max_amount).value_or(0));
        }
    };
    read("from", number.least);
    read("to", number.most);
    read("default", number.otherwise);
    const bool whole = entry.value->find("from") != nullptr && entry.value->find("to") != nullptr &&
                       entry.value->find("default") != nullptr;
    if (whole && (number.least > number.otherwise || number.otherwise > number.most)) {
        reader_.error(entry.value->at, "the default lies between 'from' and 'to'");
    }
    rule.numbers.push_back(std::move(number));
}

}  // namespace ration
