// Words that only a directory could give a meaning: tests/policy/data/words.txt.
#include <gtest/gtest.h>

#include <cctype>
#include <string>

#include "base/text.h"
#include "policy/case_file.h"
#include "policy/check_words.h"
#include "policy/directory.h"
#include "policy/policy.h"

namespace ration {
namespace {

class PolicyWords : public ::testing::TestWithParam<FileCase> {};

TEST_P(PolicyWords, GetExactlyTheseMessages) {
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
    Problems found;
    check_words(*policy, directory.get(), found);
    std::string messages;
    for (const Problem& problem : found.errors()) {
        messages += problem.text() + "\n";
    }
    for (const Problem& problem : found.warnings()) {
        messages +=
            Problem{problem.file, problem.at, cat("warning: ", problem.reason)}.text() + "\n";
    }
    std::string expected;
    for (const std::string& line : GetParam().expected) {
        expected += line + "\n";
    }
    EXPECT_EQ(messages, expected);
}

INSTANTIATE_TEST_SUITE_P(File, PolicyWords,
                         ::testing::ValuesIn(read_cases(std::string(RATION_SOURCE_DIR) +
                                                        "/tests/policy/data/words.txt")),
                         [](const auto& tested) {
                             std::string name;
                             for (const char c : tested.param.name) {
                                 name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                             }
                             return name;
                         });

}  // namespace
}  // namespace ration
