// Problem: messages must carry line and column, a hostile file must cost bounded work, and yaml-cpp
// keeps the first of two equal keys in silence and follows aliases without end. Idea: take its
// events and build a tree of our own; each bound is checked while the tree grows, by leaving
// yaml-cpp with an exception that is caught here.
#include "policy/yaml_source.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/ascii.h"
#include "base/text.h"
#include "policy/reader.h"

namespace ration {
namespace {

struct Refused {
    Position at;
    std::string reason;
};

Position position_of(const YAML::Mark& mark) {
    return mark.is_null() ? Position{} : Position{mark.line + 1, mark.column + 1};
}

// Length of the UTF-8 sequence at the start of `text`, 0 when it is none (RFC 3629 section 4).
std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) {
        return first == 0 ? 0 : 1;
    }
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < length) {
        return 0;
    }
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) {
            return 0;
        }
    }
    const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
    const bool outside = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
    return overlong || outside ? 0 : length;
}

std::optional<Refused> check_bytes(std::string_view text) {
    if (text.size() > max_yaml_bytes) {
        return Refused{{}, cat("the file is larger than ", max_yaml_bytes >> 20, " MiB")};
    }
    Position at{1, 1};
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t length = utf8_length(text.substr(i));
        if (length == 0) {
            return Refused{at, text[i] == '\0' ? "a NUL byte" : "the text is not UTF-8"};
        }
        at = text[i] == '\n' ? Position{at.line + 1, 1} : Position{at.line, at.column + 1};
        i += length;
    }
    return std::nullopt;
}

}  // namespace

class YamlTreeBuilder final : public YAML::EventHandler {
public:
    YamlTreeBuilder(YamlDocument& document, std::string_view text)
        : document_(document), text_(text) {}

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (document_.root_ != nullptr) {
            throw Refused{position_of(mark), "a second document; one file holds one"};
        }
    }
    void OnDocumentEnd() override {}

    // yaml-cpp finds out that there is nothing where the next token stands, lines below perhaps.
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        YamlNode& node = make(YamlNode::Kind::null, mark, "", anchor);
        if (!open_.empty() && !is_written_null(node.at)) {
            const Open& parent = open_.back();
            if (parent.key != nullptr) {
                node.at = parent.key_at;
            } else if (parent.node->is_sequence()) {
                node.at = last_dash_before(node.at);
            }
        }
        put(node);
    }

    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto found = anchors_.find(anchor);
        if (found == anchors_.end() || !found->second.closed) {
            throw Refused{position_of(mark), "an alias inside the node that it stands for"};
        }
        put(*found->second.node, position_of(mark));
    }

    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        YamlNode& node = make(YamlNode::Kind::scalar, mark, tag == "!" ? "" : tag, anchor);
        node.scalar = value;
        node.quoted = tag == "!";
        put(node);
    }

    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value /*style*/) override {
        open(make(YamlNode::Kind::sequence, mark, tag, anchor), anchor);
    }
    void OnSequenceEnd() override { close(); }

    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value /*style*/) override {
        open(make(YamlNode::Kind::mapping, mark, tag, anchor), anchor);
    }
    void OnMapEnd() override { close(); }

    // The keys that their mapping has already, in the file's order.
    [[nodiscard]] const std::vector<Refused>& repeated() const { return repeated_; }

private:
    struct FirstKey {
        Position at;
        std::size_t entry = 0;
    };
    struct Open {
        YamlNode* node = nullptr;
        YAML::anchor_t anchor = 0;
        const YamlNode* key = nullptr;  // of a mapping: read, its value not yet
        Position key_at;
        std::optional<std::size_t> again;  // the key's first entry, when it was there before
        std::unordered_map<std::string_view, FirstKey> keys;
    };
    // The values of a repeated key in one node, and the names in it.
    struct Joined {
        YamlNode* node = nullptr;
        std::unordered_set<std::string_view> names;
    };
    struct Anchor {
        YamlNode* node = nullptr;
        bool closed = false;
    };

    YamlNode& make(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
                   YAML::anchor_t anchor) {
        if (!tag.empty() && tag != "?") {
            throw Refused{position_of(mark), "YAML tags have no meaning in this file"};
        }
        if (document_.nodes_.size() >= max_yaml_nodes) {
            throw Refused{position_of(mark), too_many()};
        }
        YamlNode& node = document_.nodes_.emplace_back();
        node.kind = kind;
        node.at = position_of(mark);
        if (anchor != 0) {
            anchors_[anchor] = {&node,
                                kind == YamlNode::Kind::null || kind == YamlNode::Kind::scalar};
        }
        return node;
    }

    void open(YamlNode& node, YAML::anchor_t anchor) {
        if (open_.size() >= max_yaml_depth) {
            throw Refused{node.at, cat("nested deeper than ", max_yaml_depth, " levels")};
        }
        if (!open_.empty() && open_.back().node->is_mapping() && open_.back().key == nullptr) {
            throw Refused{node.at, "a key must be plain text"};
        }
        open_.push_back({&node, anchor, nullptr, {}, {}, {}});
    }

    void close() {
        YamlNode& node = *open_.back().node;
        if (const YAML::anchor_t anchor = open_.back().anchor; anchor != 0) {
            anchors_[anchor].closed = true;
        }
        open_.pop_back();
        put(node);
    }

    void put(const YamlNode& node) { put(node, node.at); }

    // Hangs a finished node below the one that is open; `at` is where it is used.
    void put(const YamlNode& node, Position at) {
        if (open_.empty()) {
            document_.root_ = &node;
            return;
        }
        Open& parent = open_.back();
        parent.node->expanded += node.expanded;
        if (parent.node->expanded > max_yaml_nodes) {
            throw Refused{at, too_many()};
        }
        if (parent.node->is_sequence()) {
            parent.node->items.push_back(&node);
        } else if (parent.key == nullptr) {
            put_key(parent, node, at);
        } else {
            put_value(parent, node);
        }
    }

    void put_value(Open& parent, const YamlNode& value) {
        if (parent.again.has_value()) {
            join(parent.node->entries[*parent.again], value);
        } else {
            parent.node->entries.push_back({parent.key, &value});
        }
        parent.key = nullptr;
        parent.again.reset();
    }

    // Puts what another value of the same key has behind what the first one has, so that reading
    // misses none of the names in them. A joined node has no anchor: no cycle can come of it, and
    // it can grow where it is.
    void join(YamlNode::Entry& first, const YamlNode& more) {
        const YamlNode& before = *first.value;
        if (before.kind != more.kind || before.is_scalar()) {
            return;
        }
        auto found = joined_.find(&before);
        if (found == joined_.end()) {
            YamlNode& copy = document_.nodes_.emplace_back(before);
            found = joined_.emplace(&copy, Joined{&copy, {}}).first;
            for (const YamlNode::Entry& entry : copy.entries) {
                found->second.names.insert(entry.key->scalar);
            }
            first.value = &copy;
        }
        Joined& both = found->second;
        both.node->items.insert(both.node->items.end(), more.items.begin(), more.items.end());
        for (const YamlNode::Entry& entry : more.entries) {
            if (both.names.insert(entry.key->scalar).second) {
                both.node->entries.push_back(entry);
            }
        }
    }

    void put_key(Open& parent, const YamlNode& key, Position at) {
        if (!key.is_scalar()) {
            throw Refused{at, "a key must be plain text"};
        }
        const auto [first, added] =
            parent.keys.emplace(key.scalar, FirstKey{at, parent.node->entries.size()});
        if (!added) {
            repeated_.push_back(
                {at, cat("this key is there already, on line ", first->second.at.line)});
            parent.again = first->second.entry;
        }
        parent.key = &key;
        parent.key_at = at;
    }

    // A line of the file, from 1, without its end.
    std::string_view line(int number) {
        if (lines_.empty()) {
            lines_ = split_text(text_, '\n');
        }
        const auto index = static_cast<std::size_t>(number - 1);
        std::string_view found =
            number > 0 && index < lines_.size() ? lines_[index] : std::string_view{};
        found.remove_suffix(found.ends_with('\r') ? 1 : 0);
        return found;
    }

    // Whether "~" or "null" stands there.
    bool is_written_null(Position at) {
        std::string_view rest = line(at.line);
        rest.remove_prefix(std::min(rest.size(), static_cast<std::size_t>(at.column - 1)));
        return rest.starts_with('~') ||
               absl::AsciiStrToLower(std::string(rest.substr(0, 4))) == "null";
    }

    // The "-" of a list's item that has nothing: the last thing above `at`, comments aside.
    Position last_dash_before(Position at) {
        for (int number = at.line - 1; number > 0; --number) {
            const std::string_view above = trim(line(number).substr(0, line(number).find('#')));
            if (above.ends_with('-')) {
                return {number,
                        static_cast<int>(above.data() + above.size() - line(number).data())};
            }
            if (!above.empty()) {
                break;
            }
        }
        return at;
    }

    static std::string too_many() {
        return cat("more than ", max_yaml_nodes, " values (aliases count in full)");
    }

    YamlDocument& document_;
    std::string_view text_;
    std::vector<std::string_view> lines_;  // of the text, once one was asked for
    std::vector<Open> open_;
    std::vector<Refused> repeated_;
    std::unordered_map<const YamlNode*, Joined> joined_;  // by their node
    std::unordered_map<YAML::anchor_t, Anchor> anchors_;
};

const YamlNode* YamlNode::find(std::string_view key) const {
    for (const Entry& entry : entries) {
        if (entry.key->scalar == key) {
            return entry.value;
        }
    }
    return nullptr;
}

std::string_view YamlNode::kind_name() const {
    switch (kind) {
        case Kind::null:
            return "nothing";
        case Kind::scalar:
            return "text";
        case Kind::sequence:
            return "a list";
        case Kind::mapping:
            return "a mapping";
    }
    return "";
}

std::unique_ptr<const YamlDocument> YamlDocument::parse(std::string_view file,
                                                        std::string_view text, Problems& problems) {
    if (const auto refused = check_bytes(text)) {
        problems.error(file, refused->at, refused->reason);
        return nullptr;
    }
    auto document = std::make_unique<YamlDocument>();
    YamlTreeBuilder builder(*document, text);
    const Problems::Mark before = problems.mark();
    const auto tell_repeated = [&] {
        for (const Refused& key : builder.repeated()) {
            problems.error(file, key.at, key.reason);
        }
        problems.sort_from(before);
    };
    try {
        std::istringstream stream{std::string(text)};
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) {
        }
    } catch (const Refused& refused) {
        problems.error(file, refused.at, refused.reason);
        tell_repeated();
        return nullptr;
    } catch (const YAML::Exception& error) {
        problems.error(file, position_of(error.mark), cat("not YAML: ", error.msg));
        tell_repeated();
        return nullptr;
    } catch (const std::exception& error) {
        problems.error(file, {}, cat("not YAML: ", error.what()));
        return nullptr;
    }
    tell_repeated();
    if (document->root_ == nullptr || document->root_->kind == YamlNode::Kind::null) {
        problems.error(file, {1, 1}, "the file is empty");
        return nullptr;
    }
    return document;
}

namespace {

// What the process was handed open may be a pipe; elsewhere reading one would wait for a writer.
bool is_handed_in(std::string_view path) {
    return path == "/dev/stdin" || path.starts_with("/dev/fd/") ||
           path.starts_with("/proc/self/fd/");
}

}  // namespace

std::string why_not_a_file(const std::string& path) {
    std::error_code unknown;
    switch (std::filesystem::status(path, unknown).type()) {
        case std::filesystem::file_type::regular:
        case std::filesystem::file_type::not_found:
        case std::filesystem::file_type::none:
            return {};
        case std::filesystem::file_type::directory:
            return "is a directory, not a file";
        default:
            return is_handed_in(path) ? std::string()
                                      : "is a pipe, a socket or a device, not a file";
    }
}

bool read_file(const std::string& path, std::string& text, Problems& problems) {
    if (std::string why = why_not_a_file(path); !why.empty()) {
        problems.error(path, {}, std::move(why));
        return false;
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        problems.error(path, {}, "cannot be opened for reading");
        return false;
    }
    text.assign(max_yaml_bytes + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (file.bad()) {
        problems.error(path, {}, "cannot be read");
        return false;
    }
    text.resize(static_cast<std::size_t>(file.gcount()));
    return true;
}

}  // namespace ration
