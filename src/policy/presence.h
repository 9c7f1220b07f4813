// Whether a kind of caller on a route has what a rule counts by.
//
// Looks at the policy alone, so what the directory will say is left open. Pure. Thread rule: call
// from anywhere.
//
//   presence(policy, rule, {route, kind}) == Presence::never    // the rule never applies to them
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace ration {

// From what is there with every request to what never is; of several parts the last one counts.
enum class Presence : std::uint8_t {
    always,
    by_directory,  // when the credential leads to it
    by_caller,     // when the request has it: a query, a header, a body's field
    never,
};

// Who asks for what.
struct Visit {
    RouteIndex route = no_route;
    KindIndex kind = kind_anonymous;
};

[[nodiscard]] Presence presence(const Policy& policy, const Selector& part, Visit visit);
// Of all parts of the rule's key and of its number; `never` also where the rule does not cover the
// visit, whichever of the route's methods it is.
[[nodiscard]] Presence presence(const Policy& policy, const LimitRule& rule, Visit visit);
// Of all parts.
[[nodiscard]] Presence presence(const Policy& policy, const std::vector<Selector>& parts,
                                Visit visit);

// Whether a request of a route with such patterns can have a method that a rule names. A route of
// GET has HEAD too.
[[nodiscard]] bool methods_meet(const std::vector<std::string>& named,
                                const std::vector<std::string>& of_route);

// The entity's kind when the request itself names it (`identify.attributes`), else null.
[[nodiscard]] const Selector* bound_selector(const Policy& policy, std::string_view kind);

}  // namespace ration
