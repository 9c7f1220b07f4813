// Every warning of a policy that loads: tests/policy/data/warned_policies.txt.
#include <gtest/gtest.h>

#include <cctype>
#include <string>

#include "policy/case_file.h"
#include "policy/check.h"
#include "policy/directory.h"
#include "policy/policy.h"

namespace ration {
namespace {

class WarnedPolicy : public ::testing::TestWithParam<FileCase> {};

TEST_P(WarnedPolicy, GetsExactlyTheseWarnings) {
    const std::string& text = GetParam().text;
    const std::size_t split = text.find("%%%\n");
    Problems problems;
    const auto policy = Policy::parse("p", text.substr(0, split), nullptr, problems);
    ASSERT_NE(policy, nullptr) << problems.status();
    std::shared_ptr<const Directory> directory;
    if (split != std::string::npos) {
        directory = Directory::parse("d", text.substr(split + 4), problems);
        ASSERT_NE(directory, nullptr) << problems.status();
    }
    check(*policy, directory.get(), problems);
    EXPECT_TRUE(problems.ok());
    std::string warnings;
    for (const Problem& problem : problems.warnings()) {
        warnings += problem.text() + "\n";
    }
    std::string expected;
    for (const std::string& line : GetParam().expected) {
        expected += line + "\n";
    }
    EXPECT_EQ(warnings, expected);
}

INSTANTIATE_TEST_SUITE_P(File, WarnedPolicy,
                         ::testing::ValuesIn(read_cases(std::string(RATION_SOURCE_DIR) +
                                                        "/tests/policy/data/warned_policies.txt")),
                         [](const auto& tested) {
                             std::string name;
                             for (const char c : tested.param.name) {
                                 name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                             }
                             return name;
                         });

}  // namespace
}  // namespace ration
