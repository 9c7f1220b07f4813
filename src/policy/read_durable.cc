// The rules that the ledger keeps: ceilings, quotas and idempotency.
//
//   at_most: 15 per day in workspace.timezone
//   at_most: account.booking_volume per billing period
//   at_most: 100 per billing quarter from account.contract_start in account.timezone
#include <algorithm>
#include <array>

#include "absl/time/time.h"
#include "base/text.h"
#include "policy/policy_reader.h"
#include "policy/selector.h"
#include "request/path.h"

namespace ration {
namespace {

constexpr std::size_t max_probe_bytes = 1024;
constexpr std::array<std::string_view, 3> period_words{"period", "quarter", "year"};

std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words;
    for (const std::string_view word : split_text(text, ' ')) {
        if (!word.empty()) {
            words.push_back(word);
        }
    }
    return words;
}

std::optional<Nanos> kept_for(const YamlNode& node, Reader& reader) {
    const auto text = reader.text(node, "a time");
    Nanos time{0};
    if (!text.has_value()) {
        return std::nullopt;
    }
    if (const auto problem = parse_period(*text, time)) {
        reader.error_in(node, problem->offset, problem->reason);
        return std::nullopt;
    }
    if (time < min_keep || time > max_keep) {
        reader.error(node.at, "results are kept for 1 minute to 90 days");
        return std::nullopt;
    }
    return time;
}

}  // namespace

void PolicyReader::read_durable(const YamlNode& root) {
    const auto each = [&](std::string_view section, auto read_one) {
        const YamlNode* node = root.find(section);
        if (node == nullptr) {
            return;
        }
        if (!node->is_sequence()) {
            reader_.error(node->at, cat(section, " is a list, not ", node->kind_name()));
        } else if (node->items.size() > max_durable_rules) {
            too_many(node->at, cat("more than ", max_durable_rules, " ", section));
        } else {
            std::for_each(node->items.begin(), node->items.end(),
                          [&](const YamlNode* item) { (this->*read_one)(*item); });
        }
    };
    each("ceilings", &PolicyReader::read_ceiling);
    each("quotas", &PolicyReader::read_quota);
    each("idempotency", &PolicyReader::read_idempotency);
    note_durable_routes();
}

void PolicyReader::note_durable_routes() {
    std::vector<bool>& noted = policy_.durable_routes;
    noted.resize(policy_.routes.size());
    const auto note = [&](const std::vector<bool>& routes) {
        for (std::size_t i = 0; i < noted.size(); ++i) {
            noted[i] = noted[i] || routes[i];
        }
    };
    for (const CeilingRule& rule : policy_.ceilings) {
        note(rule.routes);
    }
    for (const IdempotencyRule& rule : policy_.idempotency) {
        note(rule.routes);
    }
    for (const QuotaRule& rule : policy_.quotas) {
        note(rule.routes);
        for (const ObjectId& object : rule.down) {
            noted[object.route] = true;
        }
    }
}

std::uint16_t QuotaRule::refusal_for(KindIndex kind) const {
    for (const auto& [own_kind, own_refusal] : refusal_by_kind) {
        if (own_kind == kind) {
            return own_refusal;
        }
    }
    return refusal;
}

// Name, kinds and the parts that are counted apart; the routes are read by each rule.
void PolicyReader::read_durable_scope(const YamlNode& node, std::string_view key,
                                      DurableScope& scope) {
    LimitRule like;
    if (node.find("name") != nullptr) {
        read_limit_name(node, like);
    }
    if (const YamlNode* parts = node.find(key)) {
        read_key(*parts, like);
    }
    scope.at = node.at;
    scope.name = std::move(like.name);
    scope.key = std::move(like.key);
    scope.routes.resize(policy_.routes.size());
    if (const YamlNode* routes = node.find("routes")) {
        scope.routes = route_set(*routes);
    }
    if (const YamlNode* kinds = node.find("credentials")) {
        scope.kinds = kind_set(*kinds).value_or(all_kinds);
    }
}

// The steps of the dotted attribute `word`, a part of `text`, or nothing: "account.plan.calendars".
std::optional<std::vector<std::string>> PolicyReader::attribute_path(const YamlNode& node,
                                                                     std::string_view text,
                                                                     std::string_view word) {
    Selector selector;
    if (parse_selector(word, selector) || selector.source != Selector::Source::attribute) {
        return std::nullopt;
    }
    note_word(node, static_cast<std::size_t>(word.data() - text.data()), selector);
    return selector.path;
}

void PolicyReader::read_at_most(const YamlNode& node, std::string_view text, std::string_view word,
                                AtMost& at_most) {
    if (const auto whole = parse_whole(word)) {
        at_most.fixed = *whole;
        if (*whole > max_amount) {
            reader_.error(node.at, cat("at most ", max_amount));
        }
        return;
    }
    if (auto path = attribute_path(node, text, word)) {
        at_most.attribute = *std::move(path);
        return;
    }
    reader_.error(node.at, cat("'", word, "' is neither a whole number nor an attribute such as ",
                               "account.booking_volume"));
}

void PolicyReader::read_ceiling(const YamlNode& node) {
    if (!reader_.mapping(node, ceiling_keys)) {
        return;
    }
    CeilingRule rule;
    read_durable_scope(node, "per", rule);
    if (const YamlNode* at_most = node.find("at_most")) {
        read_ceiling_window(*at_most, rule);
    }
    rule.refusal = refusal_index_.at("rate_limited");
    if (const YamlNode* refuse = node.find("refuse")) {
        rule.refusal = refusal_named(*refuse).value_or(rule.refusal);
        refusal_used_[rule.refusal] = true;
    }
    policy_.ceilings.push_back(std::move(rule));
}

// AMOUNT per day in ZONE | AMOUNT per billing (period|quarter|year) [from ATTRIBUTE] [in ZONE]
void PolicyReader::read_ceiling_window(const YamlNode& node, CeilingRule& rule) {
    const auto text = reader_.text(node, "at_most");
    if (!text.has_value()) {
        return;
    }
    const auto words = words_of(*text);
    if (words.size() == 5 && words[1] == "per" && words[2] == "day" && words[3] == "in") {
        read_at_most(node, *text, words[0], rule.at_most);
        read_zone(node, *text, words[4], rule);
        return;
    }
    const bool anchored = words.size() >= 6 && words[4] == "from";
    const std::size_t plain = anchored ? 6 : 4;
    const bool zoned = words.size() == plain + 2 && words[plain] == "in";
    if ((words.size() == plain || zoned) && words[1] == "per" && words[2] == "billing") {
        read_at_most(node, *text, words[0], rule.at_most);
        const auto* length = std::find(period_words.begin(), period_words.end(), words[3]);
        rule.kind = CeilingKind::billing_period;
        rule.length = static_cast<PeriodLength>(length - period_words.begin());
        auto anchor = anchored ? attribute_path(node, *text, words[5])
                               : std::vector<std::string>{"account", "billing_anchor"};
        if (length != period_words.end() && anchor.has_value()) {
            rule.anchor_attribute = *std::move(anchor);
            if (zoned) {
                read_zone(node, *text, words[plain + 1], rule);
            }
            return;
        }
    }
    reader_.error(node.at,
                  "a ceiling reads like '15 per day in workspace.timezone' or "
                  "'account.booking_volume per billing period'");
}

void PolicyReader::read_zone(const YamlNode& node, std::string_view text, std::string_view word,
                             CeilingRule& rule) {
    absl::TimeZone zone;
    if (auto path = attribute_path(node, text, word)) {
        rule.zone_attribute = *std::move(path);
    } else if (absl::LoadTimeZone(std::string(word), &zone)) {
        rule.zone = word;
    } else {
        reader_.error(node.at, cat("'", word, "' is neither a time zone nor an attribute such as ",
                                   "workspace.timezone"));
    }
}

void PolicyReader::read_quota(const YamlNode& node) {
    if (!reader_.mapping(node, quota_keys)) {
        return;
    }
    QuotaRule rule;
    read_durable_scope(node, "per", rule);
    if (const YamlNode* at_most = node.find("at_most")) {
        if (const auto text = reader_.text(*at_most, "at_most")) {
            read_at_most(*at_most, *text, *text, rule.at_most);
        }
    }
    read_objects(node.find("up"), rule.up);
    read_objects(node.find("down"), rule.down);
    for (const ObjectId& object : rule.up) {
        rule.routes[object.route] = true;
    }
    rule.refusal = refusal_index_.at("plan_quota");
    if (const YamlNode* refuse = node.find("refuse")) {
        read_refusals_by_kind(*refuse, rule);
    }
    policy_.quotas.push_back(std::move(rule));
}

// {create_calendar: body.id, ...}
void PolicyReader::read_objects(const YamlNode* node, std::vector<ObjectId>& objects) {
    if (node == nullptr || !reader_.any_mapping(*node, "the routes that change a quota")) {
        return;
    }
    for (const YamlNode::Entry& entry : node->entries) {
        const auto route = route_named(*entry.key);
        const auto text = reader_.text(*entry.value, "where the object's id stands");
        if (!route.has_value() || !text.has_value()) {
            continue;
        }
        ObjectId object{*route, text->starts_with("body."), text->substr(text->find('.') + 1)};
        if (!object.in_body && !text->starts_with("path.")) {
            reader_.error(entry.value->at,
                          "an object's id is body.NAME of the answer or path.NAME");
            continue;
        }
        if (!object.in_body && !path_parameters_.contains(object.name)) {
            reader_.unknown(entry.value->at, "path parameter", object.name,
                            {path_parameters_.begin(), path_parameters_.end()});
            continue;
        }
        if (!object.in_body && !policy_.routes[*route].has_parameter(object.name)) {
            reader_.error(entry.value->at, cat("the route '", entry.key->scalar, "' has no {",
                                               object.name, "} in its path"));
            continue;
        }
        objects.push_back(std::move(object));
    }
}

// NAME, or {KIND: NAME, else: NAME}
void PolicyReader::read_refusals_by_kind(const YamlNode& node, QuotaRule& rule) {
    if (!node.is_mapping()) {
        rule.refusal = refusal_named(node).value_or(rule.refusal);
        refusal_used_[rule.refusal] = true;
        return;
    }
    for (const YamlNode::Entry& entry : node.entries) {
        const auto refusal = refusal_named(*entry.value);
        if (refusal.has_value()) {
            refusal_used_[*refusal] = true;
        }
        if (entry.key->scalar == "else") {
            rule.refusal = refusal.value_or(rule.refusal);
            continue;
        }
        const auto kind = kind_index_.find(entry.key->scalar);
        if (kind == kind_index_.end()) {
            (void)kind_word(*entry.key);
        } else if (refusal.has_value()) {
            rule.refusal_by_kind.emplace_back(kind->second, *refusal);
        }
    }
}

void PolicyReader::read_idempotency(const YamlNode& node) {
    if (!reader_.mapping(node, idempotency_keys)) {
        return;
    }
    IdempotencyRule rule;
    read_durable_scope(node, "scope", rule);
    if (rule.name.empty()) {
        rule.name = "idempotency";
    }
    if (const YamlNode* header = node.find("header")) {
        rule.header = reader_.text(*header, "a header name").value_or(rule.header);
        if (!is_short_token(rule.header)) {
            reader_.error(header->at, "not a header name");
        }
    }
    if (const YamlNode* required = node.find("required")) {
        rule.required = reader_.boolean(*required, "required").value_or(false);
    }
    if (const YamlNode* keep = node.find("keep")) {
        rule.keep = kept_for(*keep, reader_).value_or(rule.keep);
    }
    if (const YamlNode* compare = node.find("compare")) {
        rule.comparison = static_cast<BodyComparison>(
            reader_.word(*compare, "word for compare", compare_words).value_or(0));
    }
    if (const YamlNode* doubt = node.find("doubt")) {
        rule.doubt =
            static_cast<DoubtRule>(reader_.word(*doubt, "word for doubt", doubt_words).value_or(0));
    }
    read_probe(node, rule);
    read_kept_size(node.find("max_body"), rule.max_body);
    read_kept_size(node.find("max_answer"), rule.max_answer);
    policy_.idempotency.push_back(std::move(rule));
}

// probe: {path: "/v1/bookings/by-key/{key}", status: 201}
void PolicyReader::read_probe(const YamlNode& node, IdempotencyRule& rule) {
    const YamlNode* probe = node.find("probe");
    if (probe == nullptr) {
        if (rule.doubt == DoubtRule::probe) {
            reader_.error(node.find("doubt")->at,
                          "doubt: probe needs probe: {path: ...}, which asks about a key");
        }
        return;
    }
    if (rule.doubt != DoubtRule::probe) {
        reader_.error(probe->at, "probe is used with doubt: probe alone");
    }
    if (!reader_.mapping(*probe, probe_keys)) {
        return;
    }
    if (const YamlNode* path = probe->find("path")) {
        read_probe_path(*path, rule.probe);
    }
    if (const YamlNode* status = probe->find("status")) {
        rule.probe.status = static_cast<int>(
            reader_.whole(*status, "the status of a replay", 200, 299).value_or(0));
    }
}

void PolicyReader::read_probe_path(const YamlNode& node, ProbeRule& probe) {
    const auto text = reader_.text(node, "path");
    if (!text.has_value()) {
        return;
    }
    std::string plain;  // each hole as a letter, to see whether the target is in its one spelling
    std::string_view rest = *text;
    for (std::size_t open = rest.find('{'); open != rest.npos; open = rest.find('{')) {
        const std::size_t close = rest.find('}', open);
        if (close == rest.npos) {
            reader_.error(node.at, "a '{' without its '}'");
            return;
        }
        const std::string_view hole = rest.substr(open + 1, close - open - 1);
        if (hole != "key" && !path_parameters_.contains(std::string(hole))) {
            reader_.error(node.at, cat("'{", hole, "}' is neither {key} nor a path parameter"));
            return;
        }
        probe.texts.emplace_back(rest.substr(0, open));
        probe.holes.emplace_back(hole);
        plain += cat(rest.substr(0, open), "x");
        rest.remove_prefix(close + 1);
    }
    probe.texts.emplace_back(rest);
    plain += rest;
    std::array<char, 3 * max_probe_bytes> buffer;  // escaped at worst
    if (text->size() > max_probe_bytes) {
        reader_.error(node.at, cat("longer than ", max_probe_bytes, " bytes"));
        return;
    }
    const auto target = normal_target(plain, buffer);
    if (!plain.starts_with('/')) {
        reader_.error(node.at, "the path of a probe starts with '/'");
    } else if (!target.ok()) {
        reader_.error(node.at, cat("not a path: ", std::string(target.status().message())));
    } else if (plain.substr(0, plain.find('?')) != target->path) {
        reader_.error(node.at,
                      cat("not the normal spelling of this path, which is ", target->path));
    }
}

void PolicyReader::read_kept_size(const YamlNode* node, std::size_t& bytes) {
    if (node != nullptr) {
        bytes = reader_.whole(*node, "a number of bytes", 1, max_kept_body_bytes).value_or(bytes);
    }
}

}  // namespace ration
