// Problem: a rule that names a route and a kind may still never count them: by its methods, by what
// it counts by, by its number. Idea: one list of all rules with everything that each needs; a kind
// on a route is covered when some rule has all of it there. What only the directory knows is looked
// up once for each rule.
#include "policy/check_coverage.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "policy/check_directory.h"
#include "policy/presence.h"

namespace ration {
namespace {

// A rule, and what it needs beside a route and a kind that it covers.
struct Rule {
    const LimitRule* limit = nullptr;  // one of the two
    const DurableScope* durable = nullptr;
    std::vector<Selector> needs;
    KindSet reached = all_kinds;  // kinds of which some key may have all of it
};

void need(const std::vector<std::string>& path, std::vector<Selector>& needs) {
    if (!path.empty()) {
        Selector selector;
        selector.source = Selector::Source::attribute;
        selector.path = path;
        needs.push_back(std::move(selector));
    }
}

std::vector<Rule> rules_of(const Policy& policy) {
    std::vector<Rule> rules;
    for (const LimitRule& limit : policy.limits) {
        if (limit.shadow || limit.part != StrikePart::none) {
            continue;
        }
        rules.push_back({&limit, nullptr, limit.key});
        if (limit.numbers.attribute) {
            rules.back().needs.push_back(*limit.numbers.attribute);
        }
    }
    for (const CeilingRule& ceiling : policy.ceilings) {
        rules.push_back({nullptr, &ceiling, ceiling.key});
        need(ceiling.at_most.attribute, rules.back().needs);
        need(ceiling.zone_attribute, rules.back().needs);
        need(ceiling.anchor_attribute, rules.back().needs);
    }
    for (const QuotaRule& quota : policy.quotas) {
        rules.push_back({nullptr, &quota, quota.key});
        need(quota.at_most.attribute, rules.back().needs);
    }
    return rules;
}

class Coverage {
public:
    Coverage(const Policy& policy, const Directory* directory)
        : policy_(policy), rules_(rules_of(policy)) {
        if (directory != nullptr) {
            look_up(*directory);
        }
        for (std::size_t k = 0; k < policy.kinds.size(); ++k) {
            // Without a place for credentials nothing is ever presented.
            if (k != kind_unknown || !policy.credentials.empty()) {
                existing_ |= kind_bit(static_cast<KindIndex>(k));
            }
        }
    }

    [[nodiscard]] bool has_rules() const { return !rules_.empty(); }

    // The names of the kinds that nothing limits there, "publishable, secret"; empty: none.
    [[nodiscard]] std::string uncovered(RouteIndex route) const {
        const KindSet accepts = existing_ & (route == no_route ? policy_.accepts_unmatched
                                                               : policy_.routes[route].accepts);
        std::string names;
        for (std::size_t k = 0; k < policy_.kinds.size(); ++k) {
            const Visit visit{route, static_cast<KindIndex>(k)};
            if ((accepts & kind_bit(visit.kind)) != 0 &&
                std::none_of(rules_.begin(), rules_.end(),
                             [&](const Rule& rule) { return covers(rule, visit); })) {
                names += cat(names.empty() ? "" : ", ", policy_.kinds[k]);
            }
        }
        return names;
    }

private:
    [[nodiscard]] bool covers(const Rule& rule, Visit visit) const {
        if ((rule.reached & kind_bit(visit.kind)) == 0) {
            return false;
        }
        if (rule.limit != nullptr) {
            return presence(policy_, *rule.limit, visit) <= Presence::by_directory;
        }
        return rule.durable->covers(visit.route, visit.kind) &&
               presence(policy_, rule.needs, visit) <= Presence::by_directory;
    }

    void look_up(const Directory& directory) {
        std::vector<std::pair<KindSet, const Credential*>> keys;
        KindSet with_keys = 0;
        for (const auto& [secret, credential] : directory.credentials()) {
            const auto kind = std::find(policy_.kinds.begin() + kind_unknown + 1,
                                        policy_.kinds.end(), credential->kind);
            if (kind != policy_.kinds.end()) {
                const auto index = static_cast<KindIndex>(kind - policy_.kinds.begin());
                keys.emplace_back(kind_bit(index), credential.get());
                with_keys |= kind_bit(index);
            }
        }
        for (const IssueRule& issue : policy_.issues) {
            with_keys &= ~kind_bit(issue.kind);
        }
        for (Rule& rule : rules_) {
            rule.reached = ~with_keys;
            for (const auto& [kind, credential] : keys) {
                if ((rule.reached & kind) == 0 && has_all(rule.needs, directory, *credential)) {
                    rule.reached |= kind;
                }
            }
        }
    }

    [[nodiscard]] bool has_all(const std::vector<Selector>& needs, const Directory& directory,
                               const Credential& credential) const {
        return std::all_of(needs.begin(), needs.end(), [&](const Selector& part) {
            return !depends_on_key(policy_, part) || leads_to(directory, credential, part);
        });
    }

    const Policy& policy_;
    std::vector<Rule> rules_;
    KindSet existing_ = 0;
};

}  // namespace

void check_coverage(const Policy& policy, const Directory* directory, Problems& problems) {
    const Coverage coverage(policy, directory);
    if (!coverage.has_rules() &&
        std::none_of(policy.limits.begin(), policy.limits.end(),
                     [](const LimitRule& rule) { return rule.part == StrikePart::none; })) {
        problems.warning(policy.file, {1, 1}, "the policy has no limits");
        return;
    }
    for (std::size_t i = 0; i < policy.routes.size(); ++i) {
        const std::string kinds = coverage.uncovered(static_cast<RouteIndex>(i));
        if (!kinds.empty()) {
            const Route& route = policy.routes[i];
            problems.warning(policy.file, route.at,
                             cat("no limit covers the route '", route.name, "' for: ", kinds));
        }
    }
    const std::string kinds = policy.forward_unmatched ? coverage.uncovered(no_route) : "";
    if (!kinds.empty()) {
        problems.warning(policy.file, {1, 1},
                         cat("no limit covers requests that match no route for: ", kinds));
    }
}

}  // namespace ration
