#include "engine/change_dates.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "engine/exchange.h"
#include "engine/snapshot.h"
#include "engine/subject.h"

namespace ration {

// What is compared with what.
struct ChangeDates::Change {
    const Policy& policy;
    const Directory& directory;
    const Policy& old_policy;
    const Directory& old_directory;
    const ChangeDates& old;
    Mono now;
};

namespace {

using Path = std::span<const std::string>;

// The numbers by name of the route: indices say nothing beyond their policy.
bool same_by_route(const Policy& a, const Numbers& of_a, const Policy& b, const Numbers& of_b) {
    const auto stands_in_b = [&](const auto& number) {
        return std::any_of(of_b.by_route.begin(), of_b.by_route.end(), [&](const auto& other) {
            return number.second == other.second &&
                   a.routes[number.first].name == b.routes[other.first].name;
        });
    };
    return of_a.by_route.size() == of_b.by_route.size() &&
           std::all_of(of_a.by_route.begin(), of_a.by_route.end(), stands_in_b);
}

bool same_levels(const StrikeRule& a, const StrikeRule& b) {
    const auto same = [](const StrikeRule::BlockLevel& one, const StrikeRule::BlockLevel& other) {
        return one.seconds == other.seconds && one.remember == other.remember;
    };
    return a.failures == b.failures &&
           std::equal(a.levels.begin(), a.levels.end(), b.levels.begin(), b.levels.end(), same);
}

// As written: what attributes say is compared for each subject.
bool same_numbers(const Policy& policy, const LimitRule& rule, const Policy& old_policy,
                  const LimitRule& old) {
    const bool from_attribute = rule.numbers.attribute.has_value();
    if (rule.part != old.part || rule.numbers.shape != old.numbers.shape ||
        rule.numbers.fixed != old.numbers.fixed ||
        from_attribute != old.numbers.attribute.has_value() ||
        (from_attribute && rule.numbers.attribute->path != old.numbers.attribute->path)) {
        return false;
    }
    return same_by_route(policy, rule.numbers, old_policy, old.numbers) &&
           (rule.part == StrikePart::none ||
            same_levels(policy.strikes[rule.strike], old_policy.strikes[old.strike]));
}

bool is_bound(const Policy& policy, std::string_view kind) {
    return std::any_of(policy.bound_entities.begin(), policy.bound_entities.end(),
                       [&](const auto& bound) { return bound.first == kind; });
}

// Nothing: there is no such number. What is none admits nothing.
std::optional<std::int64_t> number_at(const Directory& directory, const Entity* root, Path path) {
    const AttributeValue* value = follow(directory, root, path.subspan(1));
    return value == nullptr ? std::nullopt : std::optional(amount_of(*value));
}

}  // namespace

ChangeDates::ChangeDates(const Policy& policy, const Directory& directory, const Snapshot* before,
                         Mono now)
    : rules_(policy.limits.size(), now), directory_(now) {
    if (before == nullptr) {
        return;
    }
    const Change change{policy,         directory, *before->policy, *before->directory,
                        *before->dates, now};
    if (&directory == &change.old_directory) {
        directory_ = change.old.directory_;
    }
    const std::vector<LimitRule>& old_rules = change.old_policy.limits;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
        const LimitRule& rule = policy.limits[i];
        const auto old = std::find_if(old_rules.begin(), old_rules.end(),
                                      [&](const LimitRule& r) { return r.name == rule.name; });
        if (old == old_rules.end() || !same_numbers(policy, rule, change.old_policy, *old)) {
            continue;
        }
        const auto old_index = static_cast<std::uint16_t>(old - old_rules.begin());
        rules_[i] = change.old.rules_[old_index];
        if (rule.numbers.attribute.has_value()) {
            compare_subjects(change, static_cast<std::uint16_t>(i), old_index);
        }
    }
}

void ChangeDates::compare_subjects(const Change& change, std::uint16_t index,
                                   std::uint16_t old_index) {
    const std::string& kind = change.policy.limits[index].numbers.attribute->path[0];
    if (is_bound(change.policy, kind) != is_bound(change.old_policy, kind)) {
        rules_[index] = change.now;
    } else if (is_bound(change.policy, kind)) {
        compare_entities(change, index, old_index);
    } else {
        compare_credentials(change, index, old_index);
    }
}

void ChangeDates::compare_entities(const Change& change, std::uint16_t index,
                                   std::uint16_t old_index) {
    const Path path = change.policy.limits[index].numbers.attribute->path;
    change.directory.for_each_entity(path[0], [&](const Entity& entity) {
        const Entity* old = change.old_directory.entity(path[0], entity.id);
        const bool same = old != nullptr && number_at(change.directory, &entity, path) ==
                                                number_at(change.old_directory, old, path);
        const Mono since = same ? change.old.of_subject({old_index, old}) : change.now;
        if (since > rules_[index]) {
            subjects_.emplace(Subject{index, &entity}, since);
        }
    });
}

void ChangeDates::compare_credentials(const Change& change, std::uint16_t index,
                                      std::uint16_t old_index) {
    const Path path = change.policy.limits[index].numbers.attribute->path;
    const auto root = [&](const Credential& credential) {
        return path[0] == "credential" ? &credential.self : credential.entity(path[0]);
    };
    for (const auto& [secret, credential] : change.directory.credentials()) {
        const Credential* old = change.old_directory.find(credential->kind, secret);
        const bool same = old != nullptr && number_at(change.directory, root(*credential), path) ==
                                                number_at(change.old_directory, root(*old), path);
        const Mono since = same ? change.old.of_subject({old_index, old}) : change.now;
        if (since > rules_[index]) {
            subjects_.emplace(Subject{index, credential.get()}, since);
        }
    }
}

Mono ChangeDates::of_subject(Subject subject) const {
    const auto found = subjects_.find(subject);
    return found == subjects_.end() ? rules_[subject.first] : found->second;
}

Mono ChangeDates::of(const Exchange& exchange, std::uint16_t index) const {
    const std::optional<Selector>& attribute = exchange.policy().limits[index].numbers.attribute;
    if (!attribute.has_value() || (subjects_.empty() && exchange.issued == nullptr)) {
        return rules_[index];
    }
    const std::string& kind = attribute->path[0];
    if (is_bound(exchange.policy(), kind)) {
        const auto id = entity_id(exchange, kind);
        return id ? of_subject({index, exchange.rules->directory->entity(kind, *id)})
                  : rules_[index];
    }
    if (exchange.issued == nullptr) {
        return of_subject({index, exchange.credential});
    }
    // Its own numbers never change; those of its owner may have with any directory.
    return kind == "credential" ? rules_[index] : std::max(rules_[index], directory_);
}

}  // namespace ration
