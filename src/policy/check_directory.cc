// Problem: a rule whose attribute a key lacks does not apply to that key, in silence; so does a
// limit whose number is text. Idea: look at every key of the directory as the engine would, and say
// once per rule and attribute how many keys are left out, with the first of them.
#include "policy/check_directory.h"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/text.h"
#include "policy/presence.h"

namespace ration {
namespace {

using Subject = std::pair<std::string_view, const Credential*>;  // secret, and who that is

// In the file's order, so that messages do not depend on hashing.
std::vector<Subject> subjects_of(const Directory& directory) {
    std::vector<Subject> subjects;
    for (const auto& [secret, credential] : directory.credentials()) {
        subjects.emplace_back(secret, credential.get());
    }
    std::sort(subjects.begin(), subjects.end(), [](const Subject& a, const Subject& b) {
        const Position one = a.second->self.at;
        const Position other = b.second->self.at;
        return std::pair(one.line, one.column) < std::pair(other.line, other.column);
    });
    return subjects;
}

std::string place(const Directory& directory, const Credential& credential) {
    return cat(directory.file(), ":", credential.self.at.line, ":", credential.self.at.column);
}

std::string dotted(const Selector& selector) {
    std::string text = selector.name;
    for (const std::string& step : selector.path) {
        text += cat(text.empty() ? "" : ".", step);
    }
    return text;
}

const AttributeValue* attribute_of(const Directory& directory, const Credential& credential,
                                   std::span<const std::string> path) {
    const Entity* entity = path[0] == "credential" ? &credential.self : credential.entity(path[0]);
    for (path = path.subspan(1); entity != nullptr && path.size() > 1; path = path.subspan(1)) {
        const AttributeValue* next = entity->find(path[0]);
        const auto* id = next != nullptr ? std::get_if<std::string>(next) : nullptr;
        entity = id != nullptr ? directory.entity(path[0], *id) : nullptr;
    }
    return entity != nullptr && !path.empty() ? entity->find(path[0]) : nullptr;
}

class DirectoryCheck {
public:
    DirectoryCheck(const Policy& policy, const Directory& directory, Problems& problems)
        : policy_(policy),
          directory_(directory),
          problems_(problems),
          subjects_(subjects_of(directory)) {}

    void run() {
        check_kinds();
        for (const LimitRule& rule : policy_.limits) {
            check_limit(rule);
        }
        for (const CeilingRule& rule : policy_.ceilings) {
            check_durable(cat("ceiling '", rule.name, "'"), rule,
                          {&rule.at_most.attribute, &rule.zone_attribute, &rule.anchor_attribute});
        }
        for (const QuotaRule& rule : policy_.quotas) {
            check_durable(cat("quota '", rule.name, "'"), rule, {&rule.at_most.attribute});
        }
        for (const IdempotencyRule& rule : policy_.idempotency) {
            check_durable(cat("idempotency rule '", rule.name, "'"), rule, {});
        }
    }

private:
    // Kinds that some of these routes let through.
    [[nodiscard]] KindSet let_in(const std::vector<bool>& routes) const {
        KindSet kinds = 0;
        for (std::size_t i = 0; i < policy_.routes.size(); ++i) {
            kinds |= routes[i] ? policy_.routes[i].accepts : 0;
        }
        return kinds;
    }

    // The keys of these kinds.
    [[nodiscard]] std::vector<const Credential*> keys_of(KindSet kinds) const {
        std::vector<const Credential*> keys;
        for (const auto& [secret, credential] : subjects_) {
            const int kind = kind_index(credential->kind);
            if (kind >= 0 && (kinds & kind_bit(static_cast<KindIndex>(kind))) != 0) {
                keys.push_back(credential);
            }
        }
        return keys;
    }

    [[nodiscard]] int kind_index(std::string_view kind) const {
        for (std::size_t k = 2; k < policy_.kinds.size(); ++k) {
            if (policy_.kinds[k] == kind) {
                return static_cast<int>(k);
            }
        }
        return -1;
    }

    [[nodiscard]] bool fits_a_pattern(int kind, std::string_view secret) const {
        for (std::size_t i = 0; i < policy_.credentials.size(); ++i) {
            if (policy_.kind_of_rule[i] == kind &&
                secret.starts_with(policy_.credentials[i].prefix)) {
                return true;
            }
        }
        return false;
    }

    void check_kinds() {
        std::vector<std::string_view> told;
        for (const auto& [secret, credential] : subjects_) {
            const int kind = kind_index(credential->kind);
            if (kind >= 0 && !fits_a_pattern(kind, secret)) {
                problems_.warning(directory_.file(), credential->self.at,
                                  cat("this key fits no pattern of its kind '", credential->kind,
                                      "', so nobody can use it"));
            }
            if (kind >= 0 || std::find(told.begin(), told.end(), credential->kind) != told.end()) {
                continue;
            }
            told.push_back(credential->kind);
            const std::string_view meant =
                nearest_word(credential->kind, {policy_.kinds.begin(), policy_.kinds.end()});
            problems_.warning(directory_.file(), credential->self.at,
                              cat("the policy has no kind of credential '", credential->kind, "'",
                                  meant.empty() ? "" : cat("; did you mean '", meant, "'?")));
        }
    }

    void check_limit(const LimitRule& rule) {
        std::vector<bool> routes(policy_.routes.size());
        for (std::size_t i = 0; i < routes.size(); ++i) {
            routes[i] = rule.covers(static_cast<RouteIndex>(i));
        }
        const KindSet kinds = let_in(routes) | (rule.unmatched ? policy_.accepts_unmatched : 0);
        const std::vector<const Credential*> own = keys_of(kinds & rule.kinds);
        const std::string name = cat("limit '", rule.name, "'");
        for (const Selector& part : rule.key) {
            check_present(name, part, own);
        }
        if (rule.numbers.attribute.has_value()) {
            check_present(name, *rule.numbers.attribute, own);
            check_numbers(rule, own);
        }
    }

    // `needed`: the attributes of its number and its window; empty where it has none.
    void check_durable(const std::string& name, const DurableScope& rule,
                       std::initializer_list<const std::vector<std::string>*> needed) {
        const std::vector<const Credential*> own = keys_of(let_in(rule.routes) & rule.kinds);
        for (const Selector& part : rule.key) {
            check_present(name, part, own);
        }
        for (const std::vector<std::string>* path : needed) {
            if (!path->empty()) {
                Selector selector;
                selector.source = Selector::Source::attribute;
                selector.path = *path;
                selector.at = rule.at;
                check_present(name, selector, own);
            }
        }
    }

    void check_present(const std::string& name, const Selector& selector,
                       const std::vector<const Credential*>& own) {
        if (!depends_on_key(policy_, selector)) {
            return;
        }
        const Credential* first = nullptr;
        std::size_t lacking = 0;
        for (const Credential* credential : own) {
            if (!leads_to(directory_, *credential, selector)) {
                first = first != nullptr ? first : credential;
                ++lacking;
            }
        }
        if (lacking == 0) {
            return;
        }
        const std::string which =
            lacking == own.size() ? cat("any of the ", own.size(), " keys it is meant for")
                                  : cat(lacking, " of the ", own.size(), " keys it is meant for");
        problems_.warning(policy_.file, selector.at,
                          cat("the ", name, " does not apply to ", which, ", which have no ",
                              dotted(selector), "; the first is at ", place(directory_, *first)));
    }

    void check_numbers(const LimitRule& rule, const std::vector<const Credential*>& own) {
        const Selector& selector = *rule.numbers.attribute;
        if (!depends_on_key(policy_, selector)) {
            return;
        }
        for (const Credential* credential : own) {
            const AttributeValue* value = attribute_of(directory_, *credential, selector.path);
            const std::string why = value != nullptr ? why_not_a_number(rule, *value) : "";
            if (!why.empty()) {
                problems_.warning(directory_.file(), credential->self.at,
                                  cat("for this key ", dotted(selector),
                                      ", the number of the limit '", rule.name, "', ", why));
            }
        }
    }

    // Empty when the value makes a valid limit.
    static std::string why_not_a_number(const LimitRule& rule, const AttributeValue& value) {
        const auto* number = std::get_if<std::int64_t>(&value);
        if (number == nullptr) {
            return "is not a whole number: nothing is admitted";
        }
        if (*number < 0) {
            return "is below 0: nothing is admitted";
        }
        Limit limit = rule.numbers.shape;
        limit.amount = limit.capacity = static_cast<std::uint64_t>(*number);
        const absl::Status status = validate(limit);
        return status.ok() ? "" : cat("is out of range: ", std::string(status.message()));
    }

    const Policy& policy_;
    const Directory& directory_;
    Problems& problems_;
    std::vector<Subject> subjects_;
};

}  // namespace

bool depends_on_key(const Policy& policy, const Selector& selector) {
    if (selector.source == Selector::Source::entity) {
        return bound_selector(policy, selector.name) == nullptr;
    }
    return selector.source == Selector::Source::attribute &&
           bound_selector(policy, selector.path[0]) == nullptr;
}

bool leads_to(const Directory& directory, const Credential& credential, const Selector& selector) {
    return selector.source == Selector::Source::entity
               ? credential.entity(selector.name) != nullptr
               : attribute_of(directory, credential, selector.path) != nullptr;
}

void check_directory(const Policy& policy, const Directory& directory, Problems& problems) {
    DirectoryCheck(policy, directory, problems).run();
}

}  // namespace ration
