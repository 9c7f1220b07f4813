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

// Attempts on one account or thing are counted by the name of what is attacked, which an attacker
// cannot choose otherwise: for strikes such a name is no caller's choice.
bool names_the_target(const LimitRule& rule, const Selector& source) {
    return rule.part != StrikePart::none &&
           (source.source == Selector::Source::path || source.source == Selector::Source::body);
}

void check_forgeable(const Policy& policy, const LimitRule& rule, Problems& problems) {
    const Selector* first = nullptr;
    bool can_be_left_out = false;
    for (const Selector& part : rule.key) {
        const Selector* source = chosen_by_caller(policy, part);
        if (source != nullptr && !names_the_target(rule, *source)) {
            first = first != nullptr ? first : &part;
            can_be_left_out = can_be_left_out || source->source != Selector::Source::path;
        } else if (!is_shape_of_request(part)) {
            return;
        }
    }
    if (first != nullptr) {
        problems.warning(
            policy.file, first->at,
            cat("the ", rule.part == StrikePart::none ? "limit" : "strike rule", " '", rule.name,
                "' counts by what the caller sends: another value is another counter",
                can_be_left_out ? ", and no value is no limit" : ""));
    }
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
