// The rules in force: policy and directory that belong together, and since when.
#pragma once

#include <memory>

#include "policy/directory.h"
#include "policy/policy.h"
#include "ration/time.h"

namespace ration {

struct Snapshot {
    std::shared_ptr<const Policy> policy;
    std::shared_ptr<const Directory> directory;
    Mono since{};
};

}  // namespace ration
