// Reading values out of YAML nodes, each refusal with its position.
//
// Every function reports what is wrong and returns nothing then, so that reading goes on and all
// problems of a file come out at once. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/keys.h"
#include "policy/problems.h"
#include "policy/yaml_source.h"

namespace ration {

class Reader {
public:
    Reader(std::string_view file, Problems& problems)
        : file_(file), problems_(problems), before_(problems.errors().size()) {}

    void error(Position at, std::string reason) { problems_.error(file_, at, std::move(reason)); }
    // At byte `offset` of a scalar's text.
    void error_in(const YamlNode& node, std::size_t offset, std::string reason);
    void warning(Position at, std::string reason) {
        problems_.warning(file_, at, std::move(reason));
    }
    [[nodiscard]] bool full() const { return problems_.full(); }
    // Of the file so far.
    [[nodiscard]] std::size_t error_count() const { return problems_.errors().size() - before_; }
    // "unknown WHAT 'word'; did you mean 'x'?"
    void unknown(Position at, std::string_view what, std::string_view word,
                 const std::vector<std::string_view>& known);

    // True for a mapping; reports keys that `table` does not have, and those it misses.
    bool mapping(const YamlNode& node, const KeyTable& table);
    // True for any mapping; `what` names it in the message.
    bool any_mapping(const YamlNode& node, std::string_view what);

    // A scalar's text; `what` names the value in the message.
    std::optional<std::string> text(const YamlNode& node, std::string_view what);
    std::optional<std::uint64_t> whole(const YamlNode& node, std::string_view what,
                                       std::uint64_t low, std::uint64_t high);
    std::optional<bool> boolean(const YamlNode& node, std::string_view what);
    // Index of the word in the list. A word that is near none of the list gets the list told.
    std::optional<std::size_t> word(const YamlNode& node, std::string_view what,
                                    const WordList& list);
    // The scalars of a list, or the one scalar that stands alone.
    std::vector<const YamlNode*> words(const YamlNode& node, std::string_view what);
    // A list's items whatever they are, or the one value that stands alone.
    static std::vector<const YamlNode*> items(const YamlNode& node);

private:
    std::string_view file_;
    Problems& problems_;
    std::size_t before_;  // errors of other files
};

// Letters, digits, '_' and '-', starting with a letter or '_'; at most 64.
[[nodiscard]] bool is_identifier(std::string_view text);
// A header or cookie name, or a method: RFC 9110 5.6.2 token, at most 64.
[[nodiscard]] bool is_short_token(std::string_view text);
// The pieces between separators, at least one.
[[nodiscard]] std::vector<std::string_view> split_text(std::string_view text, char separator);
// Without blanks around it.
[[nodiscard]] std::string_view trim(std::string_view text);
// Only digits, and not beyond 2^64 - 1.
[[nodiscard]] std::optional<std::uint64_t> parse_whole(std::string_view text);

}  // namespace ration
