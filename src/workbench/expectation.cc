#include "workbench/expectation.h"

#include "base/text.h"
#include "request/header.h"
#include "workbench/instant.h"

namespace ration {

namespace {

using What = ExpectedValue::What;

// All values of a header; a field that stands twice never looks like one that stands once.
std::string header_value(const Fields& fields, std::string_view name) {
    std::string value;
    std::size_t count = 0;
    for (const auto& [field, text] : fields) {
        if (equal_ignoring_case(field, name)) {
            value += count == 0 ? text : cat(" | ", text);
            ++count;
        }
    }
    if (count == 0) {
        return "absent";
    }
    return count == 1 ? value : cat(value, " (", count, " fields)");
}

std::string level_number(const ServiceAnswer& answer, std::string_view rule, bool used) {
    for (const LevelLine& line : answer.levels) {
        if (line.rule == rule) {
            return cat(used ? line.level.used : line.level.remaining);
        }
    }
    return "none";
}

std::string label(const ExpectedValue& expected) {
    switch (expected.what) {
        case What::status:
            return "status";
        case What::outcome:
            return "outcome";
        case What::rule:
            return "rule";
        case What::wait:
            return "wait";
        case What::header:
            return cat("header ", expected.name);
        case What::body:
        case What::json_body:
            return "body";
        case What::remaining:
            return cat("remaining of ", expected.name);
        case What::used:
            return cat("used of ", expected.name);
        case What::sent_path:
            return "path sent to the upstream";
        case What::sent_header:
            return cat("sent header ", expected.name);
    }
    return {};
}

std::string observed(const ExpectedValue& expected, const ServiceAnswer& answer) {
    switch (expected.what) {
        case What::status:
            return answer.status == 0 ? "none" : cat(answer.status);
        case What::outcome:
            return to_string(answer.outcome);
        case What::rule:
            return answer.rule.value_or("none");
        case What::wait:
            return answer.wait ? decimal_seconds(*answer.wait) : "none";
        case What::header:
            return header_value(answer.headers, expected.name);
        case What::body:
        case What::json_body:
            return answer.body;
        case What::remaining:
            return level_number(answer, expected.name, false);
        case What::used:
            return level_number(answer, expected.name, true);
        case What::sent_path:
            return answer.forwarded ? answer.forwarded->target : "none";
        case What::sent_header:
            return answer.forwarded ? header_value(answer.forwarded->headers, expected.name)
                                    : "none: the upstream was not asked";
    }
    return {};
}

}  // namespace

std::optional<Mismatch> compare(const ExpectedValue& expected, std::size_t index,
                                const ServiceAnswer& answer) {
    const std::string& want =
        expected.values.size() == 1 ? expected.values.front() : expected.values[index];
    if (want == "any") {
        return std::nullopt;
    }
    std::string got = observed(expected, answer);
    if (expected.what == What::json_body) {
        const std::string difference = json_difference(want, got);
        return difference.empty()
                   ? std::nullopt
                   : std::optional(Mismatch{cat(label(expected), ", ", difference), want, got});
    }
    const bool header = expected.what == What::header || expected.what == What::sent_header;
    if (got == want || (header && want == "present" && got != "absent" && answer.status != 0)) {
        return std::nullopt;
    }
    return Mismatch{label(expected), want, std::move(got)};
}

}  // namespace ration
