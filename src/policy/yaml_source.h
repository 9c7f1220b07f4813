// A YAML text as a tree of nodes that know where they stand.
//
// The only place that knows yaml-cpp. Duplicate keys, tags, several documents, bytes that are not
// UTF-8 and everything past the bounds below are errors with a position. Thread rule: a document is
// immutable after `parse`. Ownership: nodes live in their document.
//
//   ration::Problems problems;
//   auto document = ration::YamlDocument::parse("policy.yaml", text, problems);
//   if (document != nullptr) read(document->root());
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policy/problems.h"

namespace ration {

inline constexpr std::size_t max_yaml_bytes = std::size_t{4} << 20;
inline constexpr std::size_t max_yaml_depth = 32;
inline constexpr std::size_t max_yaml_nodes = std::size_t{1} << 20;  // aliases count in full

struct YamlNode {
    enum class Kind : std::uint8_t { null, scalar, sequence, mapping };
    struct Entry {
        const YamlNode* key = nullptr;  // always a scalar
        const YamlNode* value = nullptr;
    };

    Kind kind = Kind::null;
    bool quoted = false;  // a scalar in quotes or a block: text, whatever it looks like
    Position at;
    std::string scalar;
    std::vector<const YamlNode*> items;  // sequence
    std::vector<Entry> entries;          // mapping, in the file's order
    std::size_t expanded = 1;            // nodes below and itself, aliases in full

    [[nodiscard]] bool is_mapping() const { return kind == Kind::mapping; }
    [[nodiscard]] bool is_sequence() const { return kind == Kind::sequence; }
    [[nodiscard]] bool is_scalar() const { return kind == Kind::scalar; }
    [[nodiscard]] const YamlNode* find(std::string_view key) const;  // of a mapping, else nullptr
    // "a list", "a mapping", "nothing", "text": for messages.
    [[nodiscard]] std::string_view kind_name() const;
};

class YamlDocument {
public:
    // nullptr: not YAML, or past a bound. A document with repeated keys is an error in `problems`
    // and given all the same, with the values of such a key in one node, so that what else is wrong
    // can be told with it; nobody knows which value is meant, so nothing may be made of it.
    static std::unique_ptr<const YamlDocument> parse(std::string_view file, std::string_view text,
                                                     Problems& problems);

    [[nodiscard]] const YamlNode& root() const { return *root_; }

private:
    friend class YamlTreeBuilder;
    std::deque<YamlNode> nodes_;
    const YamlNode* root_ = nullptr;
};

// Empty, or why the path of something that is there cannot be read as a file: a directory, or what
// could keep the reader waiting. Pipes handed to the process (/dev/stdin, /dev/fd/N) are files.
[[nodiscard]] std::string why_not_a_file(const std::string& path);

// The whole file, at most `max_yaml_bytes`; a file that cannot be read is a problem without a line.
[[nodiscard]] bool read_file(const std::string& path, std::string& text, Problems& problems);

}  // namespace ration
