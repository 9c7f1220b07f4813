#include "policy/template.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/json_ascii.h"
#include "base/text.h"
#include "base/utf8.h"
#include "policy/problems.h"

namespace ration {
namespace {

struct HoleName {
    std::string_view name;
    Hole hole;
    bool number;
};

constexpr std::array<HoleName, 11> hole_names = {{
    {"limit", Hole::limit, true},
    {"remaining", Hole::remaining, true},
    {"count", Hole::count, true},
    {"retry_after", Hole::retry_after, true},
    {"wait", Hole::wait, true},
    {"reset_epoch", Hole::reset_epoch, true},
    {"reset_after", Hole::reset_after, true},
    {"rule", Hole::rule, false},
    {"type", Hole::type, false},
    {"message", Hole::message, false},
    {"request_id", Hole::request_id, false},
}};

const HoleName* find_hole(std::string_view name) {
    const auto* found = std::find_if(hole_names.begin(), hole_names.end(),
                                     [name](const HoleName& entry) { return entry.name == name; });
    return found == hole_names.end() ? nullptr : found;
}

bool is_number(Hole hole) {
    return std::any_of(hole_names.begin(), hole_names.end(), [hole](const HoleName& entry) {
        return entry.hole == hole && entry.number;
    });
}

std::string unknown_hole(std::string_view name) {
    std::vector<std::string_view> known;
    std::string all;
    for (const HoleName& entry : hole_names) {
        known.push_back(entry.name);
        append(all, cat(all.empty() ? "" : ", ", entry.name));
    }
    std::string text = cat("unknown hole {", name, "}");
    if (const std::string_view near = nearest_word(name, known); !near.empty()) {
        return cat(text, "; did you mean {", near, "}?");
    }
    return cat(text, "; known are ", all, " (write {{ and }} for braces)");
}

// Splits "a {b} c" into pieces. `error` says what is wrong with it.
std::vector<Template::Piece> parse_pieces(std::string_view source, std::string& error) {
    error.clear();
    std::vector<Template::Piece> pieces;
    std::string literal;
    if (source.size() > max_template_bytes) {
        error = cat("a text of more than ", max_template_bytes, " bytes");
        return {};
    }
    for (std::size_t i = 0; i < source.size(); ++i) {
        const char c = source[i];
        if (c != '{' && c != '}') {
            literal += c;
            continue;
        }
        if (i + 1 < source.size() && source[i + 1] == c) {
            literal += c;
            ++i;
            continue;
        }
        const std::size_t end = c == '{' ? source.find_first_of("{}", i + 1) : i;
        if (c == '}' || end == std::string_view::npos || source[end] != '}') {
            error = cat("a '", c, "' without its partner (write {{ and }} for braces)");
            return {};
        }
        const std::string_view name = source.substr(i + 1, end - i - 1);
        const HoleName* hole = find_hole(name);
        if (hole == nullptr) {
            error = unknown_hole(name);
            return {};
        }
        pieces.push_back({std::exchange(literal, {}), hole->hole, false});
        i = end;
    }
    if (!literal.empty()) {
        pieces.push_back({std::move(literal), std::nullopt, false});
    }
    return pieces;
}

bool append_number(std::string& out, std::optional<std::uint64_t> value) {
    if (!value) {
        return false;
    }
    append(out, *value);
    return true;
}

bool append_words(std::string& out, std::string_view value, bool json_string) {
    if (value.empty()) {
        return false;
    }
    if (json_string) {
        append_json_escaped(out, value);
        return true;
    }
    for (const char c : value) {
        out += absl::ascii_iscntrl(static_cast<unsigned char>(c)) ? ' ' : c;
    }
    return true;
}

bool append_hole(std::string& out, Hole hole, bool json_string, const HoleValues& values) {
    switch (hole) {
        case Hole::limit:
            return append_number(out, values.limit);
        case Hole::remaining:
            return append_number(out, values.remaining);
        case Hole::count:
            return append_number(out, values.count);
        case Hole::retry_after:
            return append_number(out, values.retry_after);
        case Hole::reset_epoch:
            return append_number(out, values.reset_epoch);
        case Hole::reset_after:
            return append_number(out, values.reset_after);
        case Hole::wait:
            return append_words(out, values.wait, json_string);
        case Hole::rule:
            return append_words(out, values.rule, json_string);
        case Hole::type:
            return append_words(out, values.type, json_string);
        case Hole::message:
            return append_words(out, values.message, json_string);
        case Hole::request_id:
            return append_words(out, values.request_id, json_string);
    }
    return false;
}

// False, with `out` as it was, when the node has a hole that has no value.
bool append_node(std::string& out, const Template::Node& node, const HoleValues& values) {
    const std::size_t before = out.size();
    if (node.kind == Template::Node::Kind::text) {
        for (const Template::Piece& piece : node.pieces) {
            out += piece.literal;
            if (piece.hole && !append_hole(out, *piece.hole, piece.json_string, values)) {
                out.resize(before);
                return false;
            }
        }
        return true;
    }
    const bool object = node.kind == Template::Node::Kind::object;
    out += object ? '{' : '[';
    bool first = true;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
        const std::size_t member = out.size();
        out += first ? "" : ",";
        out += object ? std::string_view(node.names[i]) : std::string_view();
        if (append_node(out, node.children[i], values)) {
            first = false;
        } else {
            out.resize(member);
        }
    }
    out += object ? '}' : ']';
    return true;
}

}  // namespace

void append_json_escaped(std::string& out, std::string_view text) {
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        if (length == 0) {
            out += "\xEF\xBF\xBD";
        } else if (length == 1) {
            append_json_ascii(out, text.front());
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
}

Template Template::text(std::string_view source, std::string& error) {
    const bool control = std::any_of(source.begin(), source.end(), [](char c) {
        return c != '\t' && absl::ascii_iscntrl(static_cast<unsigned char>(c));
    });
    if (control) {
        error = "a line break or control character, which a header cannot hold";
        return {};
    }
    return lines(source, error);
}

Template Template::lines(std::string_view source, std::string& error) {
    Template result;
    result.root_.pieces = parse_pieces(source, error);
    return result;
}

Template Template::json(Node root) {
    Template result;
    result.root_ = std::move(root);
    result.is_json_ = true;
    return result;
}

Template::Node Template::json_scalar(std::string_view source, std::string& error) {
    Node node;
    node.pieces = parse_pieces(source, error);
    if (node.pieces.size() == 1 && node.pieces[0].literal.empty() && node.pieces[0].hole &&
        is_number(*node.pieces[0].hole)) {
        return node;
    }
    for (Piece& piece : node.pieces) {
        std::string escaped;
        append_json_escaped(escaped, std::exchange(piece.literal, {}));
        piece.literal = std::move(escaped);
        piece.json_string = true;
    }
    if (node.pieces.empty() || node.pieces.back().hole) {
        node.pieces.push_back({"", std::nullopt, false});
    }
    node.pieces.front().literal.insert(0, "\"");
    node.pieces.back().literal += '"';
    return node;
}

Template::Node Template::json_literal(std::string_view ready) {
    Node node;
    node.pieces.push_back({std::string(ready), std::nullopt, false});
    return node;
}

std::string Template::json_member_name(std::string_view name) {
    std::string text = "\"";
    append_json_escaped(text, name);
    return text += "\":";
}

bool Template::append_to(std::string& out, const HoleValues& values) const {
    return append_node(out, root_, values);
}

}  // namespace ration
