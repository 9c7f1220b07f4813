// The part of `check` that looks at a policy and a directory together.
#pragma once

#include "policy/directory.h"
#include "policy/policy.h"
#include "policy/problems.h"

namespace ration {

// Whether the value depends on the key alone, not on the single request.
[[nodiscard]] bool depends_on_key(const Policy& policy, const Selector& selector);
// Whether the key has it, for a selector that depends on the key.
[[nodiscard]] bool leads_to(const Directory& directory, const Credential& credential,
                            const Selector& selector);

void check_directory(const Policy& policy, const Directory& directory, Problems& problems);

}  // namespace ration
