// The part of `check` that looks at a policy and a directory together.
#pragma once

#include "policy/directory.h"
#include "policy/policy.h"
#include "policy/problems.h"

namespace ration {

void check_directory(const Policy& policy, const Directory& directory, Problems& problems);

}  // namespace ration
