// A text file of test cases: a name behind "===", a text, "---", and the lines that are expected of
// it.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policy/directory.h"
#include "policy/policy.h"

namespace ration {

struct FileCase {
    std::string name;
    std::string text;
    std::vector<std::string> expected;
};

// The case's name as a test's.
inline std::string test_name(const ::testing::TestParamInfo<FileCase>& tested) {
    std::string name;
    for (const char c : tested.param.name) {
        name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    }
    return name;
}

inline std::string expected_text(const FileCase& tested) {
    std::string text;
    for (const std::string& line : tested.expected) {
        text += line + "\n";
    }
    return text;
}

// A case's policy "p", and behind a line "%%%" its directory "d"; null: there is none. What is
// wrong with them goes into `problems`.
struct CaseRules {
    std::shared_ptr<const Policy> policy;
    std::shared_ptr<const Directory> directory;
};

inline CaseRules case_rules(const FileCase& tested, Problems& problems) {
    const std::size_t split = tested.text.find("%%%\n");
    CaseRules rules;
    rules.policy = Policy::parse("p", tested.text.substr(0, split), nullptr, problems);
    if (split != std::string::npos) {
        rules.directory = Directory::parse("d", tested.text.substr(split + 4), problems);
    }
    return rules;
}

// Lines before the first "===" are for people.
inline std::vector<FileCase> read_cases(const std::string& path) {
    std::ifstream file(path);
    std::vector<FileCase> cases;
    bool in_text = false;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("=== ")) {
            cases.push_back({line.substr(4), "", {}});
            in_text = true;
        } else if (cases.empty()) {
            continue;
        } else if (in_text && line == "---") {
            in_text = false;
        } else if (in_text) {
            cases.back().text += line + "\n";
        } else if (!line.empty()) {
            cases.back().expected.push_back(line);
        }
    }
    return cases;
}

}  // namespace ration
