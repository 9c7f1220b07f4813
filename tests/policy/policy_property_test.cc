// Whatever happens to a policy file, reading it ends with a policy or with errors that have a place
// inside the file.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "policy/check.h"
#include "policy/policy.h"

namespace ration {
namespace {

const std::string& booking() {
    static const std::string text = [] {
        std::ifstream file(std::string(RATION_SOURCE_DIR) + "/examples/booking/policy.yaml");
        return std::string(std::istreambuf_iterator<char>(file), {});
    }();
    return text;
}

void reads_cleanly(const std::string& text) {
    Problems problems;
    const auto policy = Policy::parse("p", text, nullptr, problems);
    RC_ASSERT((policy != nullptr) == problems.ok());
    const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 2;
    for (const Problem& problem : problems.errors()) {
        RC_ASSERT(problem.at.line >= 0 && problem.at.line <= lines);
        RC_ASSERT(problem.at.line == 0 || problem.at.column >= 1);
        RC_ASSERT(!problem.reason.empty());
    }
    if (policy != nullptr) {
        check(*policy, nullptr, problems);
        RC_ASSERT(problems.ok());
    }
}

RC_GTEST_PROP(PolicyProperty, AnyBytesEndInErrorsOrAPolicy, (const std::string& text)) {
    reads_cleanly(text);
}

RC_GTEST_PROP(PolicyProperty, AMutatedPolicyEndsInErrorsOrAPolicy, ()) {
    std::string text = booking();
    const int changes = *rc::gen::inRange(1, 6);
    for (int i = 0; i < changes && !text.empty(); ++i) {
        const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
        const auto length = std::min(*rc::gen::inRange<std::size_t>(0, 12), text.size() - at);
        const auto from = *rc::gen::inRange<std::size_t>(0, text.size());
        switch (*rc::gen::inRange(0, 3)) {
            case 0:
                text.erase(at, length);
                break;
            case 1:
                text.insert(at, text.substr(from, length));
                break;
            default:
                text[at] = *rc::gen::elementOf(std::string(" :,-[]{}\"'*&!|>#%@\n\t\\0a\xc3\xff"));
        }
    }
    reads_cleanly(text);
}

// Swapping whole lines keeps most of the YAML sound, so that the language's own checks are reached.
RC_GTEST_PROP(PolicyProperty, ShuffledWordsEndInErrorsOrAPolicy, ()) {
    static const std::vector<std::string> words = {
        "route",    "address", "workspace",  "account.plan", "60/min", "{}",      "[]",
        "null",     "quote",   "else",       "any",          "-1",     "path.id", "token_bucket",
        "0/s",      "[a, b]",  "{limit: 5}", "attempts",     "x",      "1",       "\"{limit}\"",
        "header.X", "unknown", "open",       "true"};
    std::string text = booking();
    const int changes = *rc::gen::inRange(1, 4);
    for (int i = 0; i < changes; ++i) {
        const auto colon = text.find(": ", *rc::gen::inRange<std::size_t>(0, text.size()));
        if (colon == std::string::npos) {
            continue;
        }
        const auto end = std::min(text.find_first_of(",}\n", colon), text.size());
        text.replace(colon + 2, end - colon - 2, *rc::gen::elementOf(words));
    }
    reads_cleanly(text);
}

}  // namespace
}  // namespace ration
