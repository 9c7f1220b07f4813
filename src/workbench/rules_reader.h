// Policies and directories of a test file: other files named by path, or written where they are
// used.
//
// A policy written in place is read from the test file's own lines, so its problems point there.
// Files that several cases name are loaded once. Thread rule: one thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "policy/yaml_source.h"
#include "workbench/rules_loader.h"

namespace ration {

class RulesReader {
public:
    // `text` is the whole test file and must outlive the reader.
    RulesReader(std::string path, std::string_view text, Problems& problems)
        : path_(std::move(path)), text_(text), problems_(problems) {}

    // nullptr when `problems` got an error.
    [[nodiscard]] std::shared_ptr<const Policy> policy(const YamlNode& node);
    [[nodiscard]] std::shared_ptr<const Directory> directory(const YamlNode& node);

    // The two belong together from here on: words of the policy that neither gives a meaning are
    // problems, once for each pair.
    void check_pair(const Rules& rules);

private:
    // Where `name` is, seen from the test file.
    [[nodiscard]] std::string beside(const std::string& name) const;
    // The whole file; a problem at `node`, which names it, when it can't be read.
    [[nodiscard]] bool read(const YamlNode& node, const std::string& file, std::string& text);
    // The lines of a block mapping, with as many empty lines before as it has in the file; empty
    // and a problem when it does not start on a line of its own.
    [[nodiscard]] std::string block_text(const YamlNode& node);

    std::string path_;
    std::string_view text_;
    Problems& problems_;
    std::map<std::string, std::shared_ptr<const Policy>> policies_;        // by path
    std::map<std::string, std::shared_ptr<const Directory>> directories_;  // by path
    std::set<std::pair<const Policy*, const Directory*>> checked_;
};

}  // namespace ration
