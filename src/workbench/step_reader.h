// Steps of a test case. Thread rule: one thread; refusals go to the reader's problems.
#pragma once

#include <optional>
#include <string>

#include "policy/reader.h"
#include "workbench/rules_reader.h"
#include "workbench/test_file.h"

namespace ration {

// What requests say that say nothing of their own.
struct RequestDefaults {
    std::optional<std::string> key;
    std::string address = "192.0.2.1";
    Fields headers;
};

// Reads `key`, `address` and `headers` of a mapping over what `defaults` has.
void read_request_defaults(Reader& reader, const YamlNode& node, RequestDefaults& defaults);

struct StepContext {
    Reader& reader;
    RulesReader& rules_reader;
    const RequestDefaults& defaults;
    Wall start;          // of the case
    Nanos previous;      // when the step before happens
    Nanos wall_ahead;    // how far the wall clock has been stepped before
    const Rules& rules;  // in force at the step before
};

[[nodiscard]] std::optional<TestStep> read_step(const StepContext& context, const YamlNode& node);

}  // namespace ration
