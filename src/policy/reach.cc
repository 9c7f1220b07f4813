// What only shows when the whole policy is known: limits that can never apply, costs that never
// fit, too many limits on one request, answers that nobody gives.
#include <algorithm>

#include "base/text.h"
#include "policy/policy_reader.h"
#include "policy/presence.h"

namespace ration {
namespace {

constexpr KindSet strangers = kind_bit(kind_anonymous) | kind_bit(kind_unknown);

// Kinds whose limits are judged on a route: those it accepts, and strangers before their 401.
KindSet judged(KindSet accepts) {
    return accepts | strangers;
}

}  // namespace

// What is found here of a file with errors may come of them: the errors alone are told then.
void PolicyReader::check_reach() {
    if (reader_.error_count() > 0) {
        check_charges();
        return;
    }
    check_all_parameters();
    const bool reachable = !policy_.routes.empty() || policy_.forward_unmatched;
    if (!reachable) {
        reader_.warning({1, 1},
                        "the policy has no routes and forwards nothing: every answer is 404");
    }
    for (const LimitRule& rule : policy_.limits) {
        if (reachable) {
            check_limit_reach(rule);
        }
        check_never_fits(rule);
    }
    check_charges();
    check_unused();
}

void PolicyReader::check_all_parameters() {
    for (const LimitRule& rule : policy_.limits) {
        check_parameters(cat("the limit '", rule.name, "'"), rule.key, rule.routes);
    }
    for (const CeilingRule& rule : policy_.ceilings) {
        check_parameters(cat("the ceiling '", rule.name, "'"), rule.key, rule.routes);
    }
    for (const QuotaRule& rule : policy_.quotas) {
        check_parameters(cat("the quota '", rule.name, "'"), rule.key, rule.routes);
    }
    for (const IdempotencyRule& rule : policy_.idempotency) {
        check_parameters("the rule", rule.key, rule.routes);
    }
}

// A rule that names its routes and counts by a part of the path means routes that have the part.
void PolicyReader::check_parameters(std::string_view what, const std::vector<Selector>& key,
                                    const std::vector<bool>& routes) {
    for (const Selector& part : key) {
        if (part.source != Selector::Source::path) {
            continue;
        }
        bool any = false;
        const Route* lacking = nullptr;
        for (std::size_t i = 0; i < policy_.routes.size(); ++i) {
            if (!routes.empty() && !routes[i]) {
                continue;
            }
            if (policy_.routes[i].has_parameter(part.name)) {
                any = true;
            } else if (lacking == nullptr) {
                lacking = &policy_.routes[i];
            }
        }
        if (lacking != nullptr && (!any || !routes.empty())) {
            reader_.warning(
                part.at,
                cat(what, any ? " does not apply to" : " never applies: not to", " the route '",
                    lacking->name, "', whose path has no {", part.name, "}"));
        }
    }
}

// Whether some kind that is judged on the route has what the rule counts by and its number.
bool PolicyReader::can_apply(const LimitRule& rule, RouteIndex route) const {
    const KindSet kinds = rule.kinds & judged(route == no_route ? policy_.accepts_unmatched
                                                                : policy_.routes[route].accepts);
    for (std::size_t k = 0; k < policy_.kinds.size(); ++k) {
        const auto kind = static_cast<KindIndex>(k);
        if ((kinds & kind_bit(kind)) != 0 &&
            presence(policy_, rule, {route, kind}) != Presence::never) {
            return true;
        }
    }
    return false;
}

void PolicyReader::check_limit_reach(const LimitRule& rule) {
    if (rule.unmatched && policy_.forward_unmatched && can_apply(rule, no_route)) {
        return;
    }
    bool route_seen = rule.unmatched && policy_.forward_unmatched;
    bool kind_seen = route_seen && (rule.kinds & judged(policy_.accepts_unmatched)) != 0;
    for (std::size_t i = 0; i < policy_.routes.size(); ++i) {
        const auto route = static_cast<RouteIndex>(i);
        if (!rule.covers(route) || !methods_meet(rule.methods, policy_.routes[i].methods)) {
            continue;
        }
        route_seen = true;
        kind_seen = kind_seen || (rule.kinds & judged(policy_.routes[i].accepts)) != 0;
        if (can_apply(rule, route)) {
            return;
        }
    }
    if (kind_seen && std::any_of(rule.key.begin(), rule.key.end(), [](const Selector& part) {
            return part.source == Selector::Source::path;
        })) {
        return;  // paths without the part: said by check_parameters
    }
    reader_.warning(rule.at, cat("the limit '", rule.name, "' never applies: ",
                                 kind_seen    ? "nobody on a route of it has what it counts by"
                                 : route_seen ? "no route of it accepts a kind of credential of it"
                                              : "no route with a method of it"));
}

void PolicyReader::check_never_fits(const LimitRule& rule) {
    const auto check = [&](const LimitRef& limit, std::uint32_t cost) {
        if (limit->capacity < cost && cost > 1) {
            reader_.warning(rule.at, cat("the limit '", rule.name, "' always refuses: a cost of ",
                                         cost, " is above its ", limit->capacity));
            return true;
        }
        return false;
    };
    const auto cost_of = [&](RouteIndex route) {
        for (const auto& [own, cost] : rule.cost.by_route) {
            if (own == route) {
                return cost;
            }
        }
        return rule.cost.fixed;
    };
    for (const auto& [route, limit] : rule.numbers.by_route) {
        if (check(limit, cost_of(route))) {
            return;
        }
    }
    if (!rule.numbers.fixed.has_value() || check(*rule.numbers.fixed, rule.cost.fixed)) {
        return;
    }
    for (const auto& [route, cost] : rule.cost.by_route) {
        if (check(*rule.numbers.fixed, cost)) {
            return;
        }
    }
}

void PolicyReader::check_charges() {
    check_charges_of(no_route);
    for (std::size_t i = 0; i < policy_.routes.size(); ++i) {
        check_charges_of(static_cast<RouteIndex>(i));
        check_durable_of(static_cast<RouteIndex>(i));
    }
}

// One past the bound would not be judged.
void PolicyReader::check_durable_of(RouteIndex route) {
    const Route& here = policy_.routes[route];
    for (std::size_t k = 0; k < policy_.kinds.size(); ++k) {
        const auto kind = static_cast<KindIndex>(k);
        if ((here.accepts & kind_bit(kind)) == 0) {
            continue;
        }
        const auto whose = cat("the route '", here.name, "' with kind '", policy_.kinds[k], "'");
        const auto covering = [&](const auto& rules) {
            return std::count_if(rules.begin(), rules.end(), [&](const DurableScope& rule) {
                return rule.covers(route, kind);
            });
        };
        const auto bound = [&](const auto& rules, std::string_view what, std::size_t most) {
            const auto count = static_cast<std::size_t>(covering(rules));
            if (count > most) {
                reader_.error(here.at,
                              cat(count, " ", what, " apply to ", whose, "; at most ", most));
            }
            return count > most;
        };
        if (bound(policy_.ceilings, "ceilings", max_ceilings_per_request) ||
            bound(policy_.quotas, "quotas", max_quotas_per_request)) {
            return;
        }
        if (covering(policy_.idempotency) > 1) {
            reader_.warning(here.at, cat("several idempotency rules are meant for ", whose,
                                         "; only the first is asked"));
            return;
        }
    }
}

void PolicyReader::check_charges_of(RouteIndex route) {
    const bool matched = route != no_route;
    for (std::size_t k = 0; k < policy_.kinds.size(); ++k) {
        std::size_t charges = 0;
        Position past;  // of the first limit that is one too many
        for (const LimitRule& rule : policy_.limits) {
            const bool applies =
                rule.covers(route) && (rule.kinds & kind_bit(static_cast<KindIndex>(k))) != 0 &&
                (!matched || methods_meet(rule.methods, policy_.routes[route].methods));
            charges += applies ? 1 : 0;
            if (applies && charges == max_charges + 1) {
                past = rule.at;
            }
        }
        if (charges > max_charges) {
            reader_.error(matched ? policy_.routes[route].at : past,
                          cat(charges, " limits apply to ",
                              matched ? cat("the route '", policy_.routes[route].name, "'")
                                      : "a request that matches no route",
                              " with kind '", policy_.kinds[k], "'; at most ", max_charges));
            return;
        }
    }
}

void PolicyReader::check_unused() {
    refusal_used_.resize(policy_.refusals.size());
    for (const std::uint16_t index : policy_.built_in) {
        refusal_used_[index] = true;
    }
    for (std::size_t i = 0; i < policy_.refusals.size(); ++i) {
        if (!refusal_used_[i] && refusal_at_[i].line != 0) {
            reader_.warning(refusal_at_[i],
                            cat("no limit refuses with '", policy_.refusals[i].name, "'"));
        }
    }
}

}  // namespace ration
