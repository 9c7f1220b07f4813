// `expect:` of a test step. Thread rule: one thread; refusals go to the reader's problems.
#pragma once

#include "policy/policy.h"
#include "policy/reader.h"
#include "workbench/expectation.h"

namespace ration {

// `policy`: in force at the step, whose rules may be expected; null: it could not be read, any name
// goes. `times`: how many requests the step has; a list of expected values must have as many.
[[nodiscard]] Expectation read_expectation(Reader& reader, const YamlNode& node,
                                           const Policy* policy, std::uint64_t times);

}  // namespace ration
