// `expect:` of a test step. Thread rule: one thread; refusals go to the reader's problems.
#pragma once

#include "policy/reader.h"
#include "workbench/expectation.h"

namespace ration {

// `times`: how many requests the step has; a list of expected values must have as many.
[[nodiscard]] Expectation read_expectation(Reader& reader, const YamlNode& node,
                                           std::uint64_t times);

}  // namespace ration
