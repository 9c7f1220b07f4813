// `ration call --each`: a list of jobs at the pace that the answers allow.
#pragma once

#include "cli/call/arguments.h"

namespace ration {

// Gives the exit code: the worst of the jobs, in the order of cli/call/ending.h.
[[nodiscard]] int call_each(const CallArguments& arguments);

}  // namespace ration
