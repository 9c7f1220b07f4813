// What differed in a step, for people. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workbench/test_file.h"

namespace ration {

// The first request of a step that came out otherwise than expected, or (request 0) the step as a
// whole.
struct StepFailure {
    const TestStep* step = nullptr;
    std::size_t step_number = 0;  // from 1
    std::uint64_t request = 0;    // from 1
    std::uint64_t others = 0;     // further requests of the step that differ
    std::vector<Mismatch> mismatches;
    std::vector<LevelLine> levels;
};

// Several lines, each ended, the first one "file:line:column: case 'NAME', step 2 at 0.5 s: ...".
[[nodiscard]] std::string failure_text(const TestFile& file, const TestCase& test,
                                       const StepFailure& failure);

}  // namespace ration
