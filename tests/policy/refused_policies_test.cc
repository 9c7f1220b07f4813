// Every message that a bad policy gets, with its exact place:
// tests/policy/data/refused_policies.txt, refused_values.txt and refused_identities.txt.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "policy/case_file.h"
#include "policy/policy.h"

namespace ration {
namespace {

const char* environment(const char* name) {
    return std::string_view(name) == "RATION_ODD" ? "perhaps" : nullptr;
}

std::string messages(const std::vector<Problem>& problems) {
    std::string text;
    for (const Problem& problem : problems) {
        text += problem.text().substr(problem.file.size() + 1) + "\n";
    }
    return text;
}

class RefusedPolicy : public ::testing::TestWithParam<FileCase> {};

TEST_P(RefusedPolicy, GetsExactlyTheseMessages) {
    Problems problems;
    const Directory unknown;
    const auto policy = Policy::parse("p", GetParam().text, environment, problems, &unknown);
    EXPECT_EQ(policy, nullptr);
    std::string expected;
    for (const std::string& line : GetParam().expected) {
        expected += line + "\n";
    }
    EXPECT_EQ(messages(problems.errors()), expected);
}

const std::string data = std::string(RATION_SOURCE_DIR) + "/tests/policy/data/";

INSTANTIATE_TEST_SUITE_P(File, RefusedPolicy,
                         ::testing::ValuesIn(read_cases(data + "refused_policies.txt")), test_name);
INSTANTIATE_TEST_SUITE_P(Together, RefusedPolicy,
                         ::testing::ValuesIn(read_cases(data + "refused_together.txt")), test_name);
INSTANTIATE_TEST_SUITE_P(Values, RefusedPolicy,
                         ::testing::ValuesIn(read_cases(data + "refused_values.txt")), test_name);
INSTANTIATE_TEST_SUITE_P(Identities, RefusedPolicy,
                         ::testing::ValuesIn(read_cases(data + "refused_identities.txt")),
                         test_name);

}  // namespace
}  // namespace ration
