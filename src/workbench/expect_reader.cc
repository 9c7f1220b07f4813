#include "workbench/expect_reader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/text.h"
#include "workbench/instant.h"
#include "workbench/message_check.h"
#include "workbench/test_keys.h"
#include "workbench/yaml_values.h"

namespace ration {

namespace {

using What = ExpectedValue::What;

constexpr std::uint64_t max_counted = std::numeric_limits<std::uint32_t>::max();  // by a limit

class ExpectReader {
public:
    ExpectReader(Reader& reader, const Policy* policy, std::uint64_t times)
        : reader_(reader), policy_(policy), times_(times) {}

    Expectation read(const YamlNode& node);

private:
    void member(const std::string& name, const YamlNode& value);
    void values(What what, std::string name, const YamlNode& node);
    void named(What what, const YamlNode& node, std::string_view words);
    void sent(const YamlNode& node);
    void body(const YamlNode& node);
    [[nodiscard]] std::string one(What what, const YamlNode& node);
    void check_rule(What what, Position at, std::string_view name);

    Reader& reader_;
    const Policy* policy_;
    std::uint64_t times_;
    Expectation expected_;
};

// One expected text as `compare` will see it.
std::string ExpectReader::one(What what, const YamlNode& node) {
    const bool header = what == What::header || what == What::sent_header;
    if (header && node.kind == YamlNode::Kind::null) {
        reader_.error(node.at, "a header is expected to have a value, or absent, or present");
        return "any";
    }
    if (node.kind == YamlNode::Kind::null && what != What::outcome) {
        return what == What::body ? "" : "none";
    }
    std::string text = reader_.text(node, "an expected value").value_or("any");
    if (text == "any" || (text == "none" && what != What::outcome)) {
        return text;
    }
    if (what == What::wait) {
        const auto span = parse_span(text);
        if (!span.ok()) {
            reader_.error(node.at, cat(std::string(span.status().message()), ", or none"));
            return "any";
        }
        if (*span < Nanos(0)) {
            reader_.error(node.at, "a wait is not below 0");
        }
        return decimal_seconds(*span);
    }
    static const std::vector<std::string_view> outcomes = {"admitted", "refused", "replayed",
                                                           "lost"};
    if (what == What::outcome &&
        std::find(outcomes.begin(), outcomes.end(), text) == outcomes.end()) {
        reader_.unknown(node.at, "outcome", text, outcomes);
    }
    if (what == What::rule) {
        check_rule(what, node.at, text);
    }
    if (what == What::status) {
        static_cast<void>(reader_.whole(node, "an expected status", 200, 599));
    } else if (what == What::remaining || what == What::used) {
        static_cast<void>(reader_.whole(node, "what a limit counts", 0, max_counted));
    }
    return text;
}

// A rule that nobody has would never be met, or always `none`.
void ExpectReader::check_rule(What what, Position at, std::string_view name) {
    if (policy_ == nullptr) {
        return;
    }
    std::vector<std::string_view> known;
    const auto add = [&](const auto& rules) {
        for (const auto& rule : rules) {
            known.push_back(rule.name);
        }
    };
    add(policy_->limits);
    if (what == What::rule) {
        add(policy_->strikes);
        add(policy_->ceilings);
        add(policy_->quotas);
        add(policy_->idempotency);
    }
    if (std::find(known.begin(), known.end(), name) == known.end()) {
        reader_.unknown(at, what == What::rule ? "rule" : "limit", name, known);
    }
}

void ExpectReader::values(What what, std::string name, const YamlNode& node) {
    ExpectedValue value{what, std::move(name), node.at, {}};
    for (const YamlNode* item : Reader::items(node)) {
        value.values.push_back(one(what, *item));
    }
    if (node.is_sequence() && value.values.size() != times_) {
        reader_.error(node.at, cat("a list of ", value.values.size(),
                                   " expected values, but the step has ", times_, " requests"));
        return;
    }
    expected_.values.push_back(std::move(value));
}

void ExpectReader::named(What what, const YamlNode& node, std::string_view words) {
    if (!reader_.any_mapping(node, words)) {
        return;
    }
    for (const YamlNode::Entry& entry : node.entries) {
        if (what == What::remaining || what == What::used) {
            check_rule(what, entry.key->at, entry.key->scalar);
        } else if (const std::string wrong = wrong_field(entry.key->scalar, ""); !wrong.empty()) {
            reader_.error(entry.key->at, wrong);
        }
        values(what, entry.key->scalar, *entry.value);
    }
}

void ExpectReader::sent(const YamlNode& node) {
    if (!reader_.mapping(node, test_sent_keys)) {
        return;
    }
    if (const YamlNode* path = node.find("path")) {
        values(What::sent_path, "", *path);
    }
    if (const YamlNode* headers = node.find("headers")) {
        named(What::sent_header, *headers, "headers that were sent");
    }
}

void ExpectReader::body(const YamlNode& node) {
    const auto kind_of = [](const YamlNode& item) {
        return item.is_mapping() ? What::json_body : What::body;
    };
    const auto items = Reader::items(node);
    if (items.empty()) {
        reader_.error(node.at, "an empty list expects nothing");
        return;
    }
    const bool text = std::all_of(items.begin(), items.end(), [&](const YamlNode* item) {
        return kind_of(*item) == What::body;
    });
    if (text) {
        values(What::body, "", node);
        return;
    }
    ExpectedValue value{What::json_body, "", node.at, {}};
    for (const YamlNode* item : items) {
        if (!item->is_mapping() && item->scalar != "any") {
            reader_.error(item->at, "bodies of one step are all text or all mappings");
        }
        value.values.push_back(item->is_mapping() ? yaml_to_json(*item) : "any");
    }
    if (node.is_sequence() && value.values.size() != times_) {
        reader_.error(node.at, cat("a list of ", value.values.size(),
                                   " expected bodies, but the step has ", times_, " requests"));
        return;
    }
    expected_.values.push_back(std::move(value));
}

void ExpectReader::member(const std::string& name, const YamlNode& value) {
    static constexpr std::array<std::pair<std::string_view, What>, 4> single = {
        {{"status", What::status},
         {"outcome", What::outcome},
         {"rule", What::rule},
         {"wait", What::wait}}};
    static constexpr std::array<std::pair<std::string_view, ServiceOutcome>, 4> counts = {
        {{"admitted", ServiceOutcome::admitted},
         {"refused", ServiceOutcome::refused},
         {"replayed", ServiceOutcome::replayed},
         {"lost", ServiceOutcome::lost}}};
    for (const auto& [word, what] : single) {
        if (name == word) {
            values(what, "", value);
        }
    }
    for (const auto& [word, outcome] : counts) {
        if (name == word) {
            const auto count = reader_.whole(value, cat("the number of ", word), 0, times_);
            expected_.counts.push_back({outcome, value.at, count.value_or(0)});
        }
    }
    if (name == "headers") {
        named(What::header, value, "expected headers");
    } else if (name == "remaining") {
        named(What::remaining, value, "what limits have left");
    } else if (name == "used") {
        named(What::used, value, "what limits have in use");
    } else if (name == "sent") {
        sent(value);
    } else if (name == "body") {
        body(value);
    }
}

Expectation ExpectReader::read(const YamlNode& node) {
    if (reader_.mapping(node, test_expect_keys)) {
        for (const YamlNode::Entry& entry : node.entries) {
            member(entry.key->scalar, *entry.value);
        }
    }
    return std::move(expected_);
}

}  // namespace

Expectation read_expectation(Reader& reader, const YamlNode& node, const Policy* policy,
                             std::uint64_t times) {
    return ExpectReader(reader, policy, times).read(node);
}

}  // namespace ration
