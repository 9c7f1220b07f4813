// Words that only a directory could give a meaning: tests/policy/data/words.txt.
#include <gtest/gtest.h>

#include <string>

#include "base/text.h"
#include "policy/case_file.h"
#include "policy/check_words.h"

namespace ration {
namespace {

class PolicyWords : public ::testing::TestWithParam<FileCase> {};

TEST_P(PolicyWords, GetExactlyTheseMessages) {
    Problems problems;
    const CaseRules rules = case_rules(GetParam(), problems);
    ASSERT_TRUE(problems.ok()) << problems.status();
    Problems found;
    const Directory unknown;
    check_words(*rules.policy, rules.directory != nullptr ? *rules.directory : unknown, found);
    std::string messages;
    for (const Problem& problem : found.errors()) {
        messages += problem.text() + "\n";
    }
    for (const Problem& problem : found.warnings()) {
        messages +=
            Problem{problem.file, problem.at, cat("warning: ", problem.reason)}.text() + "\n";
    }
    EXPECT_EQ(messages, expected_text(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(File, PolicyWords,
                         ::testing::ValuesIn(read_cases(std::string(RATION_SOURCE_DIR) +
                                                        "/tests/policy/data/words.txt")),
                         test_name);

}  // namespace
}  // namespace ration
