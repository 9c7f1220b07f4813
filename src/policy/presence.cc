#include "policy/presence.h"

#include <algorithm>

namespace ration {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

bool has_numbers(const Numbers& numbers, RouteIndex route) {
    return numbers.fixed.has_value() || numbers.attribute.has_value() ||
           std::any_of(numbers.by_route.begin(), numbers.by_route.end(),
                       [route](const auto& own) { return own.first == route; });
}

// Of what the entity has; `root` is its kind, or "credential".
Presence entity_presence(const Policy& policy, std::string_view root, Visit visit, bool attribute) {
    if (const Selector* bound = bound_selector(policy, root)) {
        const Presence named = presence(policy, *bound, visit);
        return attribute ? std::max(named, Presence::by_directory) : named;
    }
    return visit.kind > kind_unknown ? Presence::by_directory : Presence::never;
}

}  // namespace

const Selector* bound_selector(const Policy& policy, std::string_view kind) {
    const auto found = std::find_if(policy.bound_entities.begin(), policy.bound_entities.end(),
                                    [kind](const auto& bound) { return bound.first == kind; });
    return found == policy.bound_entities.end() ? nullptr : &found->second;
}

Presence presence(const Policy& policy, const Selector& part, Visit visit) {
    switch (part.source) {
        case Selector::Source::route:
        case Selector::Source::method:
        case Selector::Source::address:
            return Presence::always;
        case Selector::Source::credential:
            return visit.kind > kind_unknown ? Presence::always : Presence::never;
        case Selector::Source::entity:
            return entity_presence(policy, part.name, visit, false);
        case Selector::Source::attribute:
            return entity_presence(policy, part.path.front(), visit, true);
        case Selector::Source::path:
            return visit.route != no_route && policy.routes[visit.route].has_parameter(part.name)
                       ? Presence::always
                       : Presence::never;
        case Selector::Source::query:
        case Selector::Source::header:
        case Selector::Source::body:
            return Presence::by_caller;
    }
    return Presence::never;
}

Presence presence(const Policy& policy, const std::vector<Selector>& parts, Visit visit) {
    Presence least = Presence::always;
    for (const Selector& part : parts) {
        least = std::max(least, presence(policy, part, visit));
    }
    return least;
}

Presence presence(const Policy& policy, const LimitRule& rule, Visit visit) {
    const bool matched = visit.route != no_route;
    if (!rule.covers(visit.route) || (rule.kinds & kind_bit(visit.kind)) == 0 ||
        (matched && !methods_meet(rule.methods, policy.routes[visit.route].methods)) ||
        !has_numbers(rule.numbers, visit.route)) {
        return Presence::never;
    }
    const Presence key = presence(policy, rule.key, visit);
    return rule.numbers.attribute ? std::max(key, presence(policy, *rule.numbers.attribute, visit))
                                  : key;
}

bool methods_meet(const std::vector<std::string>& named, const std::vector<std::string>& of_route) {
    return named.empty() || contains(of_route, "ANY") ||
           std::any_of(named.begin(), named.end(), [&](const std::string& method) {
               return contains(of_route,
                               method == "HEAD" && !contains(of_route, "HEAD") ? "GET" : method);
           });
}

}  // namespace ration
