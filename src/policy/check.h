// What is not wrong with a policy but worth a look before it serves: `ration check`.
//
// Adds warnings only; loading has already reported errors and what can be seen without a directory.
// Thread rule: call from anywhere. Positions are those of the policy's and the directory's file.
#pragma once

#include "policy/directory.h"
#include "policy/policy.h"
#include "policy/problems.h"

namespace ration {

// `directory` may be null: then only the policy itself is looked at.
//   - a route and kind of caller that no enforced limit, ceiling or quota covers
//   - a key made only of what the caller sends (trust in too many proxies shows at load)
//   - keys of a kind that the policy does not know, or that fit no pattern of their kind
//   - attributes that none, or only some, of a limit's keys lead to: it does not apply to the
//   others
//   - numbers taken from attributes that are no whole number, or out of range
void check(const Policy& policy, const Directory* directory, Problems& problems);

}  // namespace ration
