// What can be seen in the policy alone: requests that nothing limits, and keys that callers choose.
#include "policy/check.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "policy/check_directory.h"

namespace ration {
namespace {

// Names of the kinds in `kinds`: "publishable, secret".
std::string kind_list(const Policy& policy, KindSet kinds) {
    std::string names;
    for (std::size_t k = 0; k < policy.kinds.size(); ++k) {
        if ((kinds & kind_bit(static_cast<KindIndex>(k))) != 0) {
            names += cat(names.empty() ? "" : ", ", policy.kinds[k]);
        }
    }
    return names;
}

// Kinds that get to the route and meet no limit on it.
KindSet uncovered(const Policy& policy, RouteIndex route, KindSet accepts) {
    KindSet left = accepts;
    for (const LimitRule& rule : policy.limits) {
        if (!rule.shadow && rule.part == StrikePart::none && rule.covers(route)) {
            left &= ~rule.kinds;
        }
    }
    return left;
}

void check_coverage(const Policy& policy, Problems& problems) {
    KindSet existing = 0;
    for (std::size_t k = 0; k < policy.kinds.size(); ++k) {
        existing |= kind_bit(static_cast<KindIndex>(k));
    }
    for (std::size_t i = 0; i < policy.routes.size(); ++i) {
        const Route& route = policy.routes[i];
        const KindSet left =
            uncovered(policy, static_cast<RouteIndex>(i), route.accepts & existing);
        if (left != 0) {
            problems.warning(
                policy.file, route.at,
                cat("no limit covers the route '", route.name, "' for: ", kind_list(policy, left)));
        }
    }
    const KindSet left = uncovered(policy, no_route, policy.accepts_unmatched & existing);
    if (policy.forward_unmatched && left != 0) {
        problems.warning(
            policy.file, {1, 1},
            cat("no limit covers requests that match no route for: ", kind_list(policy, left)));
    }
}

bool is_callers_choice(const Selector& part) {
    return part.source == Selector::Source::query || part.source == Selector::Source::header;
}

bool is_shape_of_request(const Selector& part) {
    return part.source == Selector::Source::route || part.source == Selector::Source::method;
}

void check_forgeable(const Policy& policy, Problems& problems) {
    for (const LimitRule& rule : policy.limits) {
        const auto chosen = std::find_if(rule.key.begin(), rule.key.end(), is_callers_choice);
        const bool only = std::all_of(rule.key.begin(), rule.key.end(), [](const Selector& part) {
            return is_callers_choice(part) || is_shape_of_request(part);
        });
        if (chosen != rule.key.end() && only) {
            problems.warning(policy.file, chosen->at,
                             cat("the limit '", rule.name,
                                 "' counts by what the caller sends: another value is another "
                                 "counter, and no value is no limit"));
        }
    }
}

}  // namespace

void check(const Policy& policy, const Directory* directory, Problems& problems) {
    if (policy.limits.empty()) {
        problems.warning(policy.file, {1, 1}, "the policy has no limits");
    } else {
        check_coverage(policy, problems);
    }
    check_forgeable(policy, problems);
    if (directory != nullptr) {
        check_directory(policy, *directory, problems);
    }
}

}  // namespace ration
