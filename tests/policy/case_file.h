// A text file of test cases: a name behind "===", a text, "---", and the lines that are expected of
// it.
#pragma once

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace ration {

struct FileCase {
    std::string name;
    std::string text;
    std::vector<std::string> expected;
};

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
