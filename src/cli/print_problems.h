// Problems of files on stderr, one a line, warnings marked.
#pragma once

#include "policy/problems.h"

namespace ration {

void print_problems(const Problems& problems);

}  // namespace ration
