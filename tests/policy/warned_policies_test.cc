// Every warning of a policy that loads: tests/policy/data/warned_policies.txt.
#include <gtest/gtest.h>

#include <string>

#include "policy/case_file.h"
#include "policy/check.h"

namespace ration {
namespace {

class WarnedPolicy : public ::testing::TestWithParam<FileCase> {};

TEST_P(WarnedPolicy, GetsExactlyTheseWarnings) {
    Problems problems;
    const CaseRules rules = case_rules(GetParam(), problems);
    ASSERT_TRUE(problems.ok()) << problems.status();
    check(*rules.policy, rules.directory.get(), problems);
    EXPECT_TRUE(problems.ok());
    std::string warnings;
    for (const Problem& problem : problems.warnings()) {
        warnings += problem.text() + "\n";
    }
    EXPECT_EQ(warnings, expected_text(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(File, WarnedPolicy,
                         ::testing::ValuesIn(read_cases(std::string(RATION_SOURCE_DIR) +
                                                        "/tests/policy/data/warned_policies.txt")),
                         test_name);

}  // namespace
}  // namespace ration
