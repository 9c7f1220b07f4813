#include "policy/reader.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "wire/token.h"

namespace ration {
namespace {

constexpr std::size_t max_name_bytes = 64;
constexpr std::size_t max_shown_bytes = 40;

// A value as it is shown in a message: short, and without control characters.
std::string shown(std::string_view text) {
    std::string out;
    for (const char c : text.substr(0, max_shown_bytes)) {
        out.push_back(absl::ascii_iscntrl(static_cast<unsigned char>(c)) ? '?' : c);
    }
    return cat("'", out, text.size() > max_shown_bytes ? "..." : "", "'");
}

}  // namespace

void Reader::error_in(const YamlNode& node, std::size_t offset, std::string reason) {
    const int shift = static_cast<int>(std::min(offset, max_yaml_bytes)) + (node.quoted ? 1 : 0);
    error({node.at.line, node.at.column + shift}, std::move(reason));
}

void Reader::unknown(Position at, std::string_view what, std::string_view word,
                     const std::vector<std::string_view>& known) {
    const std::string_view meant =
        problems_.full() ? std::string_view{} : nearest_word(word, known);
    error(at, cat("unknown ", what, " ", shown(word),
                  meant.empty() ? "" : cat("; did you mean '", meant, "'?")));
}

bool Reader::mapping(const YamlNode& node, const KeyTable& table) {
    if (!any_mapping(node, table.what)) {
        return false;
    }
    std::vector<std::string_view> known;
    for (const Key& key : table.keys) {
        if (key.refused.empty()) {
            known.push_back(key.name);
        }
        if (key.required && node.find(key.name) == nullptr) {
            error(node.at, cat(table.what, " needs '", key.name, "'"));
        }
    }
    for (const YamlNode::Entry& entry : node.entries) {
        const auto key = std::find_if(table.keys.begin(), table.keys.end(),
                                      [&](const Key& k) { return k.name == entry.key->scalar; });
        if (key == table.keys.end()) {
            unknown(entry.key->at, cat("key of ", table.what), entry.key->scalar, known);
        } else if (!key->refused.empty()) {
            error(entry.key->at, cat("'", key->name, "' ", key->refused));
        }
    }
    return true;
}

bool Reader::any_mapping(const YamlNode& node, std::string_view what) {
    if (!node.is_mapping()) {
        error(node.at, cat(what, " is a mapping, not ", node.kind_name()));
    }
    return node.is_mapping();
}

std::optional<std::string> Reader::text(const YamlNode& node, std::string_view what) {
    if (!node.is_scalar()) {
        error(node.at, cat(what, " is text, not ", node.kind_name()));
        return std::nullopt;
    }
    return node.scalar;
}

std::optional<std::uint64_t> Reader::whole(const YamlNode& node, std::string_view what,
                                           std::uint64_t low, std::uint64_t high) {
    const std::optional<std::uint64_t> number =
        node.is_scalar() ? parse_whole(node.scalar) : std::nullopt;
    if (!number.has_value() || *number < low || *number > high) {
        error(node.at, cat(what, " is a whole number from ", low, " to ", high, ", not ",
                           node.is_scalar() ? shown(node.scalar) : std::string(node.kind_name())));
        return std::nullopt;
    }
    return number;
}

std::optional<bool> Reader::boolean(const YamlNode& node, std::string_view what) {
    if (node.is_scalar() && (node.scalar == "true" || node.scalar == "false")) {
        return node.scalar == "true";
    }
    error(node.at, cat(what, " is true or false, not ",
                       node.is_scalar() ? shown(node.scalar) : std::string(node.kind_name())));
    return std::nullopt;
}

std::optional<std::size_t> Reader::word(const YamlNode& node, std::string_view what,
                                        const WordList& list) {
    const auto text_value = text(node, what);
    if (!text_value.has_value()) {
        return std::nullopt;
    }
    const auto found = std::find(list.words.begin(), list.words.end(), *text_value);
    if (found == list.words.end()) {
        const std::vector<std::string_view> known(list.words.begin(), list.words.end());
        if (problems_.full() || !nearest_word(*text_value, known).empty()) {
            unknown(node.at, what, *text_value, known);
        } else {
            error(node.at, cat("unknown ", what, " ", shown(*text_value), "; there are ",
                               absl::StrJoin(known, ", ", [](std::string* out, std::string_view w) {
                                   out->append(w);
                               })));
        }
        return std::nullopt;
    }
    return static_cast<std::size_t>(found - list.words.begin());
}

std::vector<const YamlNode*> Reader::items(const YamlNode& node) {
    return node.is_sequence() ? node.items : std::vector<const YamlNode*>{&node};
}

std::vector<const YamlNode*> Reader::words(const YamlNode& node, std::string_view what) {
    std::vector<const YamlNode*> found;
    for (const YamlNode* item : items(node)) {
        if (item->is_scalar()) {
            found.push_back(item);
        } else {
            error(item->at, cat(what, " is text, not ", item->kind_name()));
        }
    }
    return found;
}

bool is_identifier(std::string_view text) {
    if (text.empty() || text.size() > max_name_bytes ||
        !(absl::ascii_isalpha(static_cast<unsigned char>(text[0])) || text[0] == '_')) {
        return false;
    }
    return std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
    });
}

bool is_short_token(std::string_view text) {
    return text.size() <= max_name_bytes && is_token(text);
}

std::vector<std::string_view> split_text(std::string_view text, char separator) {
    std::vector<std::string_view> pieces;
    for (std::size_t end = text.find(separator); end != std::string_view::npos;
         end = text.find(separator)) {
        pieces.push_back(text.substr(0, end));
        text.remove_prefix(end + 1);
    }
    pieces.push_back(text);
    return pieces;
}

std::string_view trim(std::string_view text) {
    const std::size_t start = text.find_first_not_of(" \t");
    if (start == std::string_view::npos) {
        return {};
    }
    return text.substr(start, text.find_last_not_of(" \t") - start + 1);
}

std::optional<std::uint64_t> parse_whole(std::string_view text) {
    if (text.empty() || text.size() > 20) {
        return std::nullopt;
    }
    std::uint64_t value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') {
            return std::nullopt;
        }
        const auto digit = static_cast<std::uint64_t>(c - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return std::nullopt;
        }
        value = value * 10 + digit;
    }
    return value;
}

}  // namespace ration
