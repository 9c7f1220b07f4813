// A strike rule becomes two limits that are judged with all others in one step: `attempts` holds a
// place for each failure and each attempt under way, so parallel guesses cannot outrun the count,
// and `block` refuses while it is not empty and takes nothing. What else is counted (failures, and
// how far the block has grown) is touched only when an attempt has failed.
#include <algorithm>
#include <limits>

#include "base/text.h"
#include "policy/policy_reader.h"
#include "policy/rate.h"

namespace ration {
namespace {

constexpr std::uint32_t day_seconds = 24 * 60 * 60;

// A bucket of one second per unit.
LimitRef seconds_bucket(std::uint32_t seconds) {
    return LimitRef::of(token_bucket(1, std::chrono::seconds(1), seconds)).value_or(LimitRef{});
}

}  // namespace

bool StrikeRule::fails(int status) const {
    return std::find(failed.begin(), failed.end(), status) != failed.end();
}

void PolicyReader::read_strikes(const YamlNode& node) {
    if (!node.is_sequence()) {
        reader_.error(node.at, cat("strikes is a list, not ", node.kind_name()));
        return;
    }
    if (node.items.size() > max_strikes ||
        policy_.limits.size() + 2 * node.items.size() > max_limits) {
        too_many(node.at, cat("more than ", max_strikes, " strike rules, or than ", max_limits,
                              " limits with two for each of them"));
        return;
    }
    for (const YamlNode* item : node.items) {
        read_strike(*item);
    }
}

void PolicyReader::read_strike(const YamlNode& node) {
    if (!reader_.mapping(node, strike_keys)) {
        return;
    }
    StrikeRule strike;
    strike.at = node.at;
    LimitRule attempts = attempts_of(node);
    strike.name = attempts.name;
    if (strike.name.size() > max_strike_name_bytes) {
        reader_.error(node.at, cat("a strike rule's name has at most ", max_strike_name_bytes,
                                   " characters"));
        return;
    }
    strike.failures_name = cat(strike.name, " (failures)");
    strike.failed = {401};
    if (const YamlNode* failed = node.find("failed")) {
        read_failed(*failed, strike);
    }
    if (const YamlNode* block = node.find("block")) {
        read_block(*block, strike);
    }
    if (const YamlNode* cleared = node.find("cleared_by_success")) {
        strike.cleared_by_success = reader_.boolean(*cleared, "cleared_by_success").value_or(false);
    }
    LimitRule block = block_of(node, attempts);
    if (!attempts.numbers.fixed.has_value() || strike.levels.empty()) {
        return;  // and why was said
    }
    strike.failures = *attempts.numbers.fixed;
    block.cost.fixed = strike.levels.back().seconds;
    block.numbers.fixed = seconds_bucket(block.cost.fixed);
    block.part = StrikePart::block;
    attempts.part = StrikePart::attempts;
    attempts.name = cat(strike.name, " (attempts)");
    block.strike = attempts.strike = static_cast<std::uint16_t>(policy_.strikes.size());
    strike.block = static_cast<std::uint16_t>(policy_.limits.size());
    strike.attempts = static_cast<std::uint16_t>(strike.block + 1);
    policy_.limits.push_back(std::move(block));
    policy_.limits.push_back(std::move(attempts));
    policy_.strikes.push_back(std::move(strike));
}

LimitRule PolicyReader::attempts_of(const YamlNode& node) {
    LimitRule rule;
    rule.at = node.at;
    read_limit_name(node, rule);
    read_scope(node, rule);
    if (const YamlNode* key = node.find("per")) {
        read_key(*key, rule);
        check_body_key(rule);
    }
    if (const YamlNode* failures = node.find("failures")) {
        rule.numbers.shape.kind = LimitKind::sliding_window;
        read_value(*failures, rule.numbers.shape, rule.numbers, false);
        if (rule.numbers.attribute.has_value()) {
            reader_.error(failures->at, "the number of failures is a whole number");
        }
        if (rule.numbers.fixed.has_value() && (*rule.numbers.fixed)->amount == 0) {
            reader_.error(failures->at, "a block needs at least one failure");
            rule.numbers.fixed.reset();
        }
    }
    read_answering(node, rule);
    return rule;
}

// The requests counted, and with `blocks` those routes besides, whatever the method and the kind.
LimitRule PolicyReader::block_of(const YamlNode& node, const LimitRule& attempts) {
    LimitRule rule = attempts;
    rule.numbers = {};
    const YamlNode* blocks = node.find("blocks");
    if (blocks == nullptr) {
        return rule;
    }
    if (attempts.unmatched) {
        reader_.error(blocks->at,
                      "'blocks' goes with 'routes': without them the block is for "
                      "every request that is counted");
        return rule;
    }
    const std::vector<bool> besides = route_set(*blocks);
    for (std::size_t i = 0; i < besides.size(); ++i) {
        rule.routes[i] = rule.routes[i] || besides[i];
    }
    rule.kinds = all_kinds;
    rule.methods.clear();
    return rule;
}

void PolicyReader::read_failed(const YamlNode& node, StrikeRule& strike) {
    strike.failed.clear();
    for (const YamlNode* status : reader_.words(node, "a status")) {
        if (const auto code = reader_.whole(*status, "a status", 100, 599)) {
            strike.failed.push_back(static_cast<std::uint16_t>(*code));
        }
    }
    if (strike.failed.size() > max_failed_statuses || (node.is_sequence() && node.items.empty())) {
        reader_.error(node.at, cat("a strike rule has 1 to ", max_failed_statuses, " statuses"));
    }
}

std::optional<std::uint32_t> PolicyReader::read_seconds(const YamlNode& node,
                                                        std::string_view what) {
    const auto text = reader_.text(node, what);
    if (!text.has_value()) {
        return std::nullopt;
    }
    Nanos time{0};
    if (const auto problem = parse_period(*text, time)) {
        reader_.error_in(node, problem->offset, problem->reason);
        return std::nullopt;
    }
    if (time > max_block || time < std::chrono::seconds(1) ||
        time % std::chrono::seconds(1) != Nanos(0)) {
        reader_.error(node.at, cat(what, " is whole seconds, from 1 s to 365 days"));
        return std::nullopt;
    }
    return static_cast<std::uint32_t>(time / std::chrono::seconds(1));
}

void PolicyReader::read_block(const YamlNode& node, StrikeRule& strike) {
    if (!node.is_mapping()) {
        if (const auto seconds = read_seconds(node, "a block")) {
            strike.levels.push_back(
                {cat(strike.name, " (level 1)"), *seconds, *seconds, seconds_bucket(*seconds)});
        }
        return;
    }
    if (!reader_.mapping(node, block_keys)) {
        return;
    }
    const YamlNode* first = node.find("first");
    const auto seconds = first == nullptr ? std::nullopt : read_seconds(*first, "the first block");
    if (seconds.has_value()) {
        make_levels(node, *seconds, strike);
    }
}

// Each level twice as long as the one before, the last as long as `at_most` says.
void PolicyReader::make_levels(const YamlNode& node, std::uint32_t first, StrikeRule& strike) {
    const YamlNode* longest = node.find("at_most");
    const auto most =
        longest == nullptr ? std::nullopt : read_seconds(*longest, "the longest block");
    const YamlNode* quiet = node.find("forget");
    const auto forget = quiet == nullptr ? std::optional(day_seconds)
                                         : read_seconds(*quiet, "the time until it is forgotten");
    if (!most.has_value() || !forget.has_value()) {
        return;
    }
    if (*most < first) {
        reader_.error(longest->at, "the longest block is shorter than the first");
        return;
    }
    for (std::uint64_t seconds = first;; seconds *= 2) {
        const auto length = static_cast<std::uint32_t>(std::min<std::uint64_t>(seconds, *most));
        if (strike.levels.size() == max_block_levels) {
            reader_.error(longest->at, cat("a block doubles at most ", max_block_levels - 1,
                                           " times; begin with a longer one"));
            return;
        }
        strike.levels.push_back({cat(strike.name, " (level ", strike.levels.size() + 1, ")"),
                                 length, length + *forget, seconds_bucket(length + *forget)});
        if (length == *most) {
            return;
        }
    }
}

// A body is read before its request is judged; that is done where it has to be, and nowhere else.
void PolicyReader::check_body_key(const LimitRule& rule) {
    for (const Selector& part : rule.key) {
        if (part.source == Selector::Source::body && rule.unmatched) {
            reader_.error(part.at, "a rule that counts by the body names its routes");
        }
    }
}

void PolicyReader::note_body_routes() {
    policy_.body_routes.assign(policy_.routes.size(), false);
    const auto note = [&](const std::vector<Selector>& key, const std::vector<bool>& routes) {
        const bool body = std::any_of(key.begin(), key.end(), [](const Selector& part) {
            return part.source == Selector::Source::body;
        });
        for (std::size_t i = 0; body && i < routes.size(); ++i) {
            policy_.body_routes[i] = policy_.body_routes[i] || routes[i];
        }
    };
    for (const LimitRule& rule : policy_.limits) {
        note(rule.key, rule.routes);
    }
    for (const CeilingRule& rule : policy_.ceilings) {
        note(rule.key, rule.routes);
    }
    for (const QuotaRule& rule : policy_.quotas) {
        note(rule.key, rule.routes);
        for (const ObjectId& object : rule.down) {
            std::vector<bool> routes(policy_.routes.size());
            routes[object.route] = true;
            note(rule.key, routes);
        }
    }
    for (const IdempotencyRule& rule : policy_.idempotency) {
        note(rule.key, rule.routes);
    }
}

}  // namespace ration
