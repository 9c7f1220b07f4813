// A limit's numbers come in three spellings: a rate ("60/min"), a mapping of its parts
// ({limit: 60, every: minute}), or a mapping from routes to either. The first two may name an
// attribute instead of a number; then only the shape is fixed here and the engine fills in the
// rest.
#include <algorithm>

#include "base/text.h"
#include "policy/policy_reader.h"
#include "policy/rate.h"

namespace ration {
namespace {

bool is_rate_key(std::string_view word) {
    return std::any_of(rate_keys.keys.begin(), rate_keys.keys.end(),
                       [&](const Key& key) { return key.name == word; });
}

std::string join(std::span<const std::string_view> words) {
    std::string out;
    for (const std::string_view word : words) {
        out += cat(out.empty() ? "" : ", ", word);
    }
    return out;
}

// Whether a mapping holds the parts of a rate rather than routes.
bool holds_rate(const YamlNode& node) {
    return std::any_of(node.entries.begin(), node.entries.end(),
                       [](const YamlNode::Entry& entry) { return is_rate_key(entry.key->scalar); });
}

}  // namespace

void PolicyReader::read_numbers(const YamlNode& limit, LimitRule& rule) {
    const YamlNode* numbers = nullptr;
    for (std::size_t i = 0; i < limit_kind_words.words.size(); ++i) {
        const YamlNode* node = limit.find(limit_kind_words.words[i]);
        if (node != nullptr && numbers != nullptr) {
            reader_.error(node->at, "a limit has one kind of numbers; write a second limit");
        } else if (node != nullptr) {
            numbers = node;
            rule.numbers.shape.kind = static_cast<LimitKind>(i);
        }
    }
    if (numbers == nullptr) {
        reader_.error(limit.at,
                      cat("a limit needs its numbers: one of ", join(limit_kind_words.words)));
        return;
    }
    read_count(limit, *numbers, rule.numbers.shape);
    const Limit shape = rule.numbers.shape;
    if (numbers->is_mapping() && !holds_rate(*numbers)) {
        read_by_route(*numbers, shape, rule);
        check_one_length(*numbers, rule);
    } else {
        read_value(*numbers, shape, rule.numbers, false);
    }
}

void PolicyReader::read_count(const YamlNode& limit, const YamlNode& numbers, Limit& shape) {
    const YamlNode* outer = limit.find("count");
    const YamlNode* inner = numbers.is_mapping() ? numbers.find("count") : nullptr;
    if (outer != nullptr && inner != nullptr) {
        reader_.error(outer->at, "'count' is said twice");
    }
    const YamlNode* count = inner != nullptr ? inner : outer;
    if (count == nullptr) {
        return;
    }
    shape.count_attempts = reader_.word(*count, "word for count", count_words) == std::size_t{1};
    if (shape.count_attempts && shape.kind != LimitKind::fixed_window &&
        shape.kind != LimitKind::sliding_counter) {
        reader_.error(count->at, "only a fixed_window or a sliding_counter can count attempts");
        shape.count_attempts = false;
    }
}

void PolicyReader::read_by_route(const YamlNode& node, const Limit& shape, LimitRule& rule) {
    const bool named = !rule.routes.empty();
    bool otherwise = false;
    std::vector<bool> own(policy_.routes.size());
    for (const YamlNode::Entry& entry : node.entries) {
        Numbers numbers;
        read_value(*entry.value, shape, numbers, true);
        if (entry.key->scalar == "else") {
            otherwise = true;
            rule.numbers.fixed = numbers.fixed;
            continue;
        }
        const auto route = route_named(*entry.key);
        if (!route.has_value()) {
            continue;
        }
        if (named && all_routes_known_ && !rule.routes[*route]) {
            reader_.error(entry.key->at, "the limit does not apply to this route");
        }
        own[*route] = true;
        if (numbers.fixed.has_value()) {
            rule.numbers.by_route.emplace_back(*route, *numbers.fixed);
        }
    }
    if (node.entries.empty()) {
        reader_.error(node.at, "no numbers");
    }
    if (otherwise) {
        return;
    }
    if (!named) {
        rule.routes = own;
        rule.unmatched = false;
        return;
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
        if (rule.routes[i] && !own[i]) {
            reader_.error(node.at, cat("no numbers for the route '", policy_.routes[i].name,
                                       "'; 'else' would stand for the others"));
        }
    }
    rule.unmatched = false;
}

// What windows of two lengths count on one counter, each would take from the other.
void PolicyReader::check_one_length(const YamlNode& node, const LimitRule& rule) {
    const bool counts_routes_apart =
        std::any_of(rule.key.begin(), rule.key.end(),
                    [](const Selector& part) { return part.source == Selector::Source::route; });
    if (counts_routes_apart || rule.numbers.by_route.empty()) {
        return;
    }
    const Limit& first = *rule.numbers.by_route.front().second;
    const auto differs = [&](const LimitRef& other) { return other->period != first.period; };
    const bool several = std::any_of(rule.numbers.by_route.begin(), rule.numbers.by_route.end(),
                                     [&](const auto& route) { return differs(route.second); }) ||
                         (rule.numbers.fixed.has_value() && differs(*rule.numbers.fixed));
    if (several && first.kind != LimitKind::token_bucket) {
        reader_.error(node.at,
                      "windows of different lengths need counters of their own: put 'route' into "
                      "'per', or write a limit for each length");
    }
}

void PolicyReader::read_value(const YamlNode& node, const Limit& shape, Numbers& numbers,
                              bool by_route) {
    if (node.is_mapping()) {
        read_rate_mapping(node, shape, numbers, by_route);
    } else if (node.is_scalar()) {
        read_rate_text(node, shape, numbers, by_route);
    } else {
        reader_.error(node.at,
                      cat("a limit's numbers are text or a mapping, not ", node.kind_name()));
    }
}

void PolicyReader::read_rate_text(const YamlNode& node, Limit shape, Numbers& numbers,
                                  bool by_route) {
    if (shape.kind == LimitKind::concurrency) {
        if (const auto amount = parse_whole(node.scalar)) {
            shape.amount = shape.capacity = *amount;
            set_fixed(node, shape, numbers);
        } else if (node.scalar.find('.') != std::string::npos && !by_route &&
                   node.scalar.find_first_not_of("-0123456789.") != std::string::npos) {
            set_attribute(node, node.scalar, shape, numbers);
        } else {
            reader_.error(node.at, "the number of requests in flight is a whole number, 0 or more");
        }
        return;
    }
    Rate rate;
    if (const auto problem = parse_rate(node.scalar, rate)) {
        reader_.error_in(node, problem->offset, problem->reason);
        return;
    }
    shape.period = rate.period;
    if (!rate.attribute.empty()) {
        if (by_route) {
            reader_.error(node.at, "numbers by route are literal; write a limit of its own");
        } else {
            set_attribute(node, rate.attribute, shape, numbers);
        }
        return;
    }
    shape.amount = shape.capacity = rate.amount;
    set_fixed(node, shape, numbers);
}

void PolicyReader::read_rate_mapping(const YamlNode& node, Limit shape, Numbers& numbers,
                                     bool by_route) {
    if (!reader_.mapping(node, rate_keys)) {
        return;
    }
    const YamlNode* rate = node.find("rate");
    const YamlNode* limit = node.find("limit");
    const YamlNode* every = node.find("every");
    const YamlNode* burst = node.find("burst");
    if (by_route && node.find("count") != nullptr) {
        reader_.error(node.find("count")->at, "'count' belongs to the whole limit");
    }
    if ((rate != nullptr) == (limit != nullptr)) {
        reader_.error(node.at, "say rate (60/min), or limit and every");
        return;
    }
    const bool periodic = shape.kind != LimitKind::concurrency;
    if (!periodic && limit == nullptr) {
        reader_.error(rate->at, "concurrency has a limit, not a rate");
        return;
    }
    if ((every != nullptr) != (limit != nullptr && periodic)) {
        reader_.error(every != nullptr ? every->at : node.at,
                      every == nullptr ? "'limit' needs 'every': minute, 13s, 365 days"
                      : periodic       ? "'every' goes with 'limit'; 'rate' has its period"
                                       : "concurrency has no period");
        return;
    }
    if (burst != nullptr && shape.kind != LimitKind::token_bucket) {
        reader_.error(burst->at, "only a token_bucket has a burst");
        return;
    }
    if (every != nullptr) {
        const auto text = reader_.text(*every, "every");
        const auto problem = text.has_value() ? parse_period(*text, shape.period) : std::nullopt;
        if (problem.has_value()) {
            reader_.error_in(*every, problem->offset, problem->reason);
        }
        if (!text.has_value() || problem.has_value()) {
            return;
        }
    }
    Numbers own;
    if (limit != nullptr && limit->is_scalar()) {
        read_amount(*limit, shape, own, by_route);
    } else if (limit != nullptr) {
        reader_.error(limit->at, "a limit's number is a whole number or an attribute");
    } else {
        read_rate_text(*rate, shape, own, by_route);
    }
    add_burst(burst, own, numbers);
}

void PolicyReader::read_amount(const YamlNode& node, Limit shape, Numbers& numbers, bool by_route) {
    if (const auto amount = parse_whole(node.scalar)) {
        shape.amount = shape.capacity = *amount;
        set_fixed(node, shape, numbers);
    } else if (node.scalar.find('.') == std::string::npos ||
               node.scalar.find_first_not_of("-0123456789.") == std::string::npos) {
        reader_.error(node.at,
                      "a limit's number is a whole number, 0 or more, or an attribute such as "
                      "credential.rate_limit_per_min");
    } else if (by_route) {
        reader_.error(node.at, "numbers by route are literal; write a limit of its own");
    } else {
        set_attribute(node, node.scalar, shape, numbers);
    }
}

void PolicyReader::add_burst(const YamlNode* burst, const Numbers& read, Numbers& numbers) {
    if (burst == nullptr) {
        numbers = read;
        return;
    }
    const auto capacity = reader_.whole(*burst, "burst", 1, max_amount);
    if (read.attribute.has_value()) {
        reader_.error(burst->at,
                      "a bucket whose number is an attribute holds as many as that number");
        return;
    }
    if (!read.fixed.has_value() || !capacity.has_value()) {
        return;
    }
    Limit limit = **read.fixed;
    limit.capacity = *capacity;
    set_fixed(*burst, limit, numbers);
}

void PolicyReader::set_attribute(const YamlNode& node, std::string_view text, const Limit& shape,
                                 Numbers& numbers) {
    auto selector = read_selector(node, 0, text);
    if (!selector.has_value()) {
        return;
    }
    if (selector->source != Selector::Source::attribute) {
        reader_.error(node.at, "a limit's number cannot come from what the caller sends");
        return;
    }
    numbers.attribute = *std::move(selector);
    numbers.shape = shape;
}

void PolicyReader::set_fixed(const YamlNode& node, const Limit& limit, Numbers& numbers) {
    const auto reference = LimitRef::of(limit);
    if (!reference.ok()) {
        reader_.error(node.at, std::string(reference.status().message()));
        return;
    }
    numbers.fixed = *reference;
    numbers.shape = limit;
}

}  // namespace ration
