// Problems of files on stderr, one a line, warnings marked.
#pragma once

#include "policy/problems.h"

namespace ration {

// Without the warnings.
void print_errors(const Problems& problems);
void print_problems(const Problems& problems);

}  // namespace ration
