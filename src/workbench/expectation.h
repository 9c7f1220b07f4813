// What a step expects of its answers, and how an answer is compared with it.
//
// Pure; thread rule: const, share freely.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/problems.h"
#include "workbench/message.h"

namespace ration {

// One observed value. `values` holds one text for every request of the step, or one per request;
// the word "any" fits everything.
struct ExpectedValue {
    enum class What : std::uint8_t {
        status,
        outcome,
        rule,         // name, or "none"
        wait,         // decimal seconds, or "none"
        header,       // `name`; "absent", "present", or the one value
        body,         // to the letter
        json_body,    // these members; others may be there
        remaining,    // of the limit `name`
        used,         // of the limit `name`
        sent_path,    // target that the upstream got; "none" when it was not asked
        sent_header,  // header `name` that the upstream got
    };
    What what = What::status;
    std::string name;
    Position at;
    std::vector<std::string> values;
};

// How many of the step's requests ended in an outcome.
struct ExpectedCount {
    ServiceOutcome outcome = ServiceOutcome::admitted;
    Position at;
    std::uint64_t count = 0;
};

struct Expectation {
    std::vector<ExpectedValue> values;
    std::vector<ExpectedCount> counts;
};

struct Mismatch {
    std::string what;  // "status", "header Retry-After", ...
    std::string expected;
    std::string got;
};

// nullopt when request `index` (from 0) of the step came out as expected.
[[nodiscard]] std::optional<Mismatch> compare(const ExpectedValue& expected, std::size_t index,
                                              const ServiceAnswer& answer);

// Empty, or the first difference: `expected` is contained in `got` when every member of its objects
// is in the other's, and everything else is equal. Both are JSON texts.
[[nodiscard]] std::string json_difference(const std::string& expected, const std::string& got);

}  // namespace ration
