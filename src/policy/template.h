// Text with holes for numbers: a refusal's headers and body.
//
// In YAML a body is a mapping; it becomes compact JSON in the file's order, and a value that is
// exactly one hole for a number ("{retry_after}") becomes a JSON number, not a string. `{{` and
// `}}` stand for braces. A hole that has no value in a given answer makes its header, its JSON
// member or its array element disappear rather than show an invented number.
//
// What fills a hole is made safe for where it stands: escaped in JSON strings, and without control
// characters in text, so that no value can end a header line.
//
//   std::string error;
//   Template header = Template::text("{retry_after}", error);
//   std::string value;
//   if (header.append_to(value, {.retry_after = 12})) send("Retry-After", value);
//
// Thread rule: const, share freely. Ownership: a template owns its text; values are read during the
// call only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ration {

enum class Hole : std::uint8_t {
    limit,        // the binding limit's capacity
    remaining,    // whole units left
    count,        // units used, attempts included where they count
    retry_after,  // whole seconds, rounded up, at least 1; absent where waiting cannot help
    wait,         // the exact wait in decimal seconds
    reset_epoch,  // epoch seconds of the window's end, rounded up
    reset_after,  // the same as seconds from now
    rule,         // name of the binding rule
    type,         // the answer's machine-readable type
    message,      // its sentence for people
    request_id,
};

// A hole's value in one answer; an empty text is no value.
struct HoleValues {
    std::optional<std::uint64_t> limit, remaining, count, retry_after, reset_epoch, reset_after;
    std::string_view wait, rule, type, message, request_id;
};

inline constexpr std::size_t max_template_bytes = 16384;  // of one text in a policy file

class Template {
public:
    // "Wait {retry_after} s": one line, fit for a header's value. Empty `error` on success.
    static Template text(std::string_view source, std::string& error);
    // The same over several lines: a body that is plain text.
    static Template lines(std::string_view source, std::string& error);

    struct Piece {
        std::string literal;  // put out first
        std::optional<Hole> hole;
        bool json_string = false;  // the value stands inside a JSON string: escape it
    };
    // JSON built by the policy parser: pieces in order. A member whose hole is absent is left out
    // with its comma, so members are kept apart: each item is one `"name":value` of an object.
    struct Node {
        enum class Kind : std::uint8_t { text, object, array } kind = Kind::text;
        std::vector<Piece> pieces;       // text: the value, ready JSON
        std::vector<std::string> names;  // object: member names, ready JSON with colon
        std::vector<Node> children;      // object and array
    };
    static Template json(Node root);

    // Parts for `json`. A string of the file with its holes: a JSON number where it is exactly one
    // hole for a number, else a JSON string. Empty `error` on success.
    static Node json_scalar(std::string_view source, std::string& error);
    // A value without holes that is JSON already: a number, true, false, null.
    static Node json_literal(std::string_view ready);
    // `"name":` with the name escaped.
    static std::string json_member_name(std::string_view name);

    // False when a hole needed at the top level is absent (then nothing was appended).
    bool append_to(std::string& out, const HoleValues& values) const;
    [[nodiscard]] bool empty() const { return !is_json_ && root_.pieces.empty(); }

private:
    Node root_;
    bool is_json_ = false;
};

// `text` with what a JSON string may not hold escaped (RFC 8259 7); bytes that are not UTF-8 become
// U+FFFD. Without the quotes around.
void append_json_escaped(std::string& out, std::string_view text);

}  // namespace ration
