#include "workbench/rules_reader.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "policy/check_words.h"

namespace ration {

namespace {

std::string_view take_line(std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
}

// True for blank lines and comments, whatever their indentation.
bool says_nothing(std::string_view line) {
    const std::size_t first = line.find_first_not_of(" \r");
    return first == std::string_view::npos || line[first] == '#';
}

}  // namespace

std::string RulesReader::beside(const std::string& name) const {
    const std::filesystem::path given(name);
    return given.is_absolute()
               ? name
               : (std::filesystem::path(path_).parent_path() / given).lexically_normal().string();
}

bool RulesReader::read(const YamlNode& node, const std::string& file, std::string& text) {
    Problems unread;
    if (read_file(file, text, unread)) {
        return true;
    }
    problems_.error(path_, node.at, cat(file, " ", unread.errors().front().reason));
    return false;
}

std::string RulesReader::block_text(const YamlNode& node) {
    std::string_view rest = text_;
    std::string block;
    for (int line = 1; line < node.at.line; ++line) {
        take_line(rest);
        block += '\n';
    }
    const auto indent = static_cast<std::size_t>(node.at.column - 1);
    if (rest.find_first_not_of(' ') != indent || indent == 0) {
        problems_.error(path_, node.at, "write it as a block that starts on a line of its own");
        return {};
    }
    while (!rest.empty()) {
        const std::string_view line = take_line(rest);
        if (!says_nothing(line) && line.find_first_not_of(' ') < indent) {
            break;
        }
        block += cat(line, "\n");
    }
    return block;
}

std::shared_ptr<const Policy> RulesReader::policy(const YamlNode& node) {
    if (node.is_mapping()) {
        const std::string text = block_text(node);
        return text.empty() ? nullptr : Policy::parse(path_, text, process_environment, problems_);
    }
    if (!node.is_scalar()) {
        problems_.error(path_, node.at, "a policy is a path, or the policy itself");
        return nullptr;
    }
    const std::string file = beside(node.scalar);
    auto [found, added] = policies_.try_emplace(file);
    std::string text;
    if (added && read(node, file, text)) {
        found->second = Policy::parse(file, text, process_environment, problems_);
    }
    return found->second;
}

void RulesReader::check_pair(const Rules& rules) {
    const auto [policy, directory] = std::pair(rules.policy.get(), rules.directory.get());
    if (policy != nullptr && directory != nullptr && checked_.emplace(policy, directory).second) {
        check_words(*policy, *directory, problems_);
    }
}

std::shared_ptr<const Directory> RulesReader::directory(const YamlNode& node) {
    if (node.is_mapping()) {
        const std::string text = block_text(node);
        return text.empty() ? nullptr : Directory::parse(path_, text, problems_);
    }
    if (!node.is_scalar()) {
        problems_.error(path_, node.at, "a directory is a path, or the directory itself");
        return nullptr;
    }
    const std::string file = beside(node.scalar);
    auto [found, added] = directories_.try_emplace(file);
    std::string text;
    if (added && read(node, file, text)) {
        found->second = Directory::parse(file, text, problems_);
    }
    return found->second;
}

}  // namespace ration
