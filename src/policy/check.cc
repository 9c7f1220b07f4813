// What can be seen in the policy alone: requests that nothing limits, and keys that callers choose.
#include "policy/check.h"

#include <string>

#include "base/text.h"
#include "policy/check_coverage.h"
#include "policy/check_directory.h"
#include "policy/presence.h"

namespace ration {
namespace {

// Where a value comes from that callers choose: the request, directly or by `identify.attributes`.
// Null when others have a word in it.
const Selector* chosen_by_caller(const Policy& policy, const Selector& part) {
    switch (part.source) {
        case Selector::Source::path:
        case Selector::Source::query:
        case Selector::Source::header:
        case Selector::Source::body:
            return &part;
        case Selector::Source::entity:
            return bound_selector(policy, part.name);
        case Selector::Source::attribute:
            return bound_selector(policy, part.path.front());
        default:
            return nullptr;
    }
}

bool is_shape_of_request(const Selector& part) {
    return part.source == Selector::Source::route || part.source == Selector::Source::method;
}

// A path and a body name the account or thing that a request is about.
bool names_the_target(const Selector& source) {
    return source.source == Selector::Source::path || source.source == Selector::Source::body;
}

// What a limit counts by, as far as callers choose it.
struct Choice {
    const Selector* first = nullptr;  // null: by something that they do not choose
    bool can_be_left_out = false;
    bool targets_only = true;
};

Choice choice_of(const Policy& policy, const LimitRule& rule) {
    Choice choice;
    for (const Selector& part : rule.key) {
        const Selector* source = chosen_by_caller(policy, part);
        if (source != nullptr) {
            choice.first = choice.first != nullptr ? choice.first : &part;
            choice.can_be_left_out |= source->source != Selector::Source::path;
            choice.targets_only &= names_the_target(*source);
        } else if (!is_shape_of_request(part)) {
            return {};
        }
    }
    return choice;
}

// Whether a limit of the callers themselves stands beside the rule, wherever it counts.
bool callers_are_limited(const Policy& policy, const LimitRule& rule) {
    for (std::size_t i = 0; i < policy.routes.size(); ++i) {
        const auto route = static_cast<RouteIndex>(i);
        KindSet left = rule.covers(route) ? rule.kinds & policy.routes[i].accepts : 0;
        for (const LimitRule& other : policy.limits) {
            if (!other.shadow && other.part == StrikePart::none && other.covers(route) &&
                methods_meet(other.methods, policy.routes[i].methods) &&
                choice_of(policy, other).first == nullptr) {
                left &= ~other.kinds;
            }
        }
        if (left != 0) {
            return false;
        }
    }
    return true;
}

// A limit of a target is a good one beside a limit of whoever asks, and so are strikes: an attacker
// of an account cannot name another one.
void check_forgeable(const Policy& policy, const LimitRule& rule, Problems& problems) {
    const bool strikes = rule.part != StrikePart::none;
    const Choice choice = choice_of(policy, rule);
    if (choice.first == nullptr ||
        (choice.targets_only && (strikes || callers_are_limited(policy, rule)))) {
        return;
    }
    problems.warning(policy.file, choice.first->at,
                     cat("the ", strikes ? "strike rule" : "limit", " '", rule.name,
                         "' counts by what the caller sends: another value is another counter",
                         choice.can_be_left_out ? ", and no value is no limit" : ""));
}

}  // namespace

void check(const Policy& policy, const Directory* directory, Problems& problems) {
    check_coverage(policy, directory, problems);
    for (const LimitRule& rule : policy.limits) {
        if (rule.part != StrikePart::attempts) {
            check_forgeable(policy, rule, problems);
        }
    }
    if (directory != nullptr) {
        check_directory(policy, *directory, problems);
    }
}

}  // namespace ration
