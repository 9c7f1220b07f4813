#include "cli/print_problems.h"

#include <iostream>

#include "base/text.h"

namespace ration {

void print_errors(const Problems& problems) {
    for (const Problem& problem : problems.errors()) {
        std::cerr << problem.text() << '\n';
    }
}

void print_problems(const Problems& problems) {
    print_errors(problems);
    for (const Problem& problem : problems.warnings()) {
        std::cerr << Problem{problem.file, problem.at, cat("warning: ", problem.reason)}.text()
                  << '\n';
    }
}

}  // namespace ration
