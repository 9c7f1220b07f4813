// The part of `check` that looks for requests which nothing limits.
#pragma once

#include "policy/directory.h"
#include "policy/policy.h"
#include "policy/problems.h"

namespace ration {

// Warns of each route and kinds of caller that it lets in, for whom no enforced limit, ceiling or
// quota has all it counts by. What callers may leave out (a query, a header) limits none who does.
// `directory` null: every credential is taken to lead to what the policy asks of it. Otherwise one
// key of the kind must, unless there are none yet or more can be issued.
void check_coverage(const Policy& policy, const Directory* directory, Problems& problems);

}  // namespace ration
