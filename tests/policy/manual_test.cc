// Every YAML block of the manual is one that loads.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "policy/directory.h"
#include "policy/policy.h"

namespace ration {
namespace {

std::vector<std::string> yaml_blocks() {
    std::ifstream file(std::string(RATION_SOURCE_DIR) + "/docs/policy.md");
    std::vector<std::string> blocks;
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
        if (line == "```yaml") {
            blocks.emplace_back();
            inside = true;
        } else if (line == "```") {
            inside = false;
        } else if (inside) {
            blocks.back() += line + "\n";
        }
    }
    return blocks;
}

bool has_section(const std::string& text, const std::string& name) {
    return ("\n" + text).find("\n" + name + ":") != std::string::npos;
}

// A block shows one section; the others stand here so that its names are known.
std::string whole_policy(const std::string& block) {
    const std::vector<std::pair<std::string, std::string>> others = {
        {"policy", "policy: manual\n"},
        {"routes",
         "routes: {search: GET /s, items: \"GET,POST /i\", item: \"ANY /i/{id}\", files: ANY "
         "/f/**}\n"},
        {"identify", "identify: {credentials: {secret: {bearer: sk_*}}}\n"},
        {"limits", "limits: [{name: x, per: [], token_bucket: 60/min}]\n"},
    };
    std::string text;
    for (const auto& [name, section] : others) {
        text += has_section(block, name) ? "" : section;
    }
    return text + block;
}

TEST(Manual, EveryExampleLoads) {
    const auto blocks = yaml_blocks();
    EXPECT_GE(blocks.size(), 9U);
    for (const std::string& block : blocks) {
        Problems problems;
        if (has_section(block, "entities")) {
            EXPECT_NE(Directory::parse("d", block, problems), nullptr)
                << block << problems.status();
        } else {
            EXPECT_NE(Policy::parse("p", whole_policy(block), nullptr, problems), nullptr)
                << block << problems.status();
        }
        for (const Problem& warning : problems.warnings()) {
            ADD_FAILURE() << block << warning.text();
        }
    }
}

}  // namespace
}  // namespace ration
