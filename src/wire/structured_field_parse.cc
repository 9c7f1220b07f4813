// The parsing algorithms of RFC 9651 section 4.2, step by step. A function that fails says so once,
// through `fail`, and returns false; everything above it returns false too.
#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "base/text.h"
#include "base/utf8.h"
#include "wire/structured_field.h"
#include "wire/token.h"

namespace ration {
namespace {

bool is_digit(char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
}
bool is_alpha(char c) {
    return absl::ascii_isalpha(static_cast<unsigned char>(c));
}

// RFC 9651 3.3.4: more than elsewhere in HTTP.
bool goes_on_token(char c) {
    return is_token_char(c) || c == ':' || c == '/';
}

bool is_key_start(char c) {
    return (c >= 'a' && c <= 'z') || c == '*';
}
bool is_key_char(char c) {
    return is_key_start(c) || is_digit(c) || c == '_' || c == '-' || c == '.';
}

// The entry of that key, made when there is none; nullptr when there are `most` of them.
template <typename Value>
Value* slot(std::vector<std::pair<std::string, Value>>& entries, std::string key,
            std::size_t most) {
    for (auto& [name, value] : entries) {
        if (name == key) {
            return &value;
        }
    }
    if (entries.size() == most) {
        return nullptr;
    }
    return &entries.emplace_back(std::move(key), Value{}).second;
}

class Parser {
public:
    explicit Parser(std::string_view text) : text_(text) {}

    // Runs `body` between the blanks that may stand around a field value.
    template <typename Value, typename Body>
    absl::StatusOr<Value> whole(Body body) {
        Value value;
        if (text_.size() > max_sf_bytes) {
            return absl::InvalidArgumentError("a structured field that is too long");
        }
        skip(" ");
        if (body(value)) {
            skip(" ");
            if (at_end()) {
                return value;
            }
            fail("the end was expected");
        }
        return absl::InvalidArgumentError(cat("structured field, character ", at_ + 1, ": ", why_));
    }

    bool list(SfList& out) {
        while (!at_end()) {
            if (out.size() == max_sf_members) {
                return fail("too many members");
            }
            if (!member(out.emplace_back())) {
                return false;
            }
            if (bool more = false; !separator(more) || !more) {
                return why_.empty();
            }
        }
        return true;
    }

    bool dictionary(SfDictionary& out) {
        while (!at_end()) {
            std::string name;
            if (!key(name)) {
                return false;
            }
            SfMember* value = slot(out, std::move(name), max_sf_members);
            if (value == nullptr) {
                return fail("too many members");
            }
            if (take('=')) {
                if (!member(*value)) {
                    return false;
                }
            } else {
                *value = SfItem{true, {}};
                if (!parameters(std::get<SfItem>(*value).parameters)) {
                    return false;
                }
            }
            if (bool more = false; !separator(more) || !more) {
                return why_.empty();
            }
        }
        return true;
    }

    bool item(SfItem& out) {
        out.parameters.clear();
        return bare_item(out.value) && parameters(out.parameters);
    }

private:
    // The comma between members; `more` is false at the end of the text.
    bool separator(bool& more) {
        skip(" \t");
        if (at_end()) {
            more = false;
            return true;
        }
        if (!take(',')) {
            return fail("a comma was expected");
        }
        skip(" \t");
        more = !at_end();
        return more || fail("nothing follows the comma");
    }

    bool member(SfMember& out) {
        if (!at_end() && peek() == '(') {
            return inner_list(out.emplace<SfInnerList>());
        }
        return item(out.emplace<SfItem>());
    }

    bool inner_list(SfInnerList& out) {
        take('(');
        while (!at_end()) {
            skip(" ");
            if (take(')')) {
                return parameters(out.parameters);
            }
            if (out.items.size() == max_sf_parameters) {
                return fail("too many items in an inner list");
            }
            if (!item(out.items.emplace_back())) {
                return false;
            }
            if (at_end() || (peek() != ' ' && peek() != ')')) {
                return fail("a blank or ')' was expected");
            }
        }
        return fail("an inner list is not closed");
    }

    bool parameters(SfParameters& out) {
        while (take(';')) {
            skip(" ");
            std::string name;
            if (!key(name)) {
                return false;
            }
            SfBareItem* value = slot(out, std::move(name), max_sf_parameters);
            if (value == nullptr) {
                return fail("too many parameters");
            }
            *value = true;
            if (take('=') && !bare_item(*value)) {
                return false;
            }
        }
        return true;
    }

    bool key(std::string& out) {
        if (at_end() || !is_key_start(peek())) {
            return fail("a key was expected");
        }
        while (!at_end() && is_key_char(peek())) {
            out += next();
        }
        return true;
    }

    bool bare_item(SfBareItem& out) {
        if (at_end()) {
            return fail("a value was expected");
        }
        const char c = peek();
        if (c == '-' || is_digit(c)) {
            return number(out);
        }
        if (is_alpha(c) || c == '*') {
            std::string& token = out.emplace<SfToken>().text;
            while (!at_end() && goes_on_token(peek())) {
                token += next();
            }
            return true;
        }
        switch (c) {
            case '"':
                return string(out.emplace<std::string>());
            case ':':
                return bytes(out.emplace<SfBytes>().bytes);
            case '?':
                return boolean(out.emplace<bool>());
            case '@':
                next();
                return (number(out) && std::holds_alternative<std::int64_t>(out))
                           ? (out = SfDate{std::get<std::int64_t>(out)}, true)
                           : fail("a date is whole seconds");
            case '%':
                return display_string(out.emplace<SfDisplayString>().utf8);
            default:
                return fail("no value begins like this");
        }
    }

    bool number(SfBareItem& out) {
        const bool negative = take('-');
        std::string digits;
        int fraction = -1;  // digits after the point; -1: no point
        if (at_end() || !is_digit(peek())) {
            return fail("a digit was expected");
        }
        while (!at_end() && (is_digit(peek()) || (peek() == '.' && fraction < 0))) {
            if (peek() == '.') {
                fraction = 0;
                next();
            } else {
                digits += next();
                fraction += fraction < 0 ? 0 : 1;
            }
            if (digits.size() > 15 ||
                (fraction >= 0 && digits.size() > 12 + static_cast<std::size_t>(fraction))) {
                return fail("too many digits");
            }
        }
        if (fraction == 0 || fraction > 3) {
            return fail("a decimal has one to three digits after its point");
        }
        std::int64_t value = 0;
        for (const char digit : digits) {
            value = value * 10 + (digit - '0');
        }
        for (int i = std::max(fraction, 0); fraction >= 0 && i < 3; ++i) {
            value *= 10;
        }
        value = negative ? -value : value;
        out = fraction < 0 ? SfBareItem(value) : SfBareItem(SfDecimal{value});
        return true;
    }

    bool string(std::string& out) {
        next();
        while (!at_end()) {
            char c = next();
            if (c == '"') {
                return true;
            }
            if (c == '\\') {
                if (at_end() || (peek() != '"' && peek() != '\\')) {
                    return fail("only '\"' and '\\' may be escaped");
                }
                c = next();
            }
            if (c < 0x20 || c > 0x7e) {
                return fail("a string is printable ASCII");
            }
            out += c;
        }
        return fail("a string is not closed");
    }

    bool bytes(std::string& out) {
        next();
        const std::size_t end = text_.find(':', at_);
        if (end == std::string_view::npos) {
            return fail("a byte sequence is not closed");
        }
        std::string_view base64 = text_.substr(at_, end - at_);
        const std::size_t padding = std::min(base64.find('='), base64.size());
        if (base64.size() - padding > 2 ||
            base64.find_first_not_of('=', padding) != std::string_view::npos) {
            return fail("'=' ends base64");
        }
        base64 = base64.substr(0, padding);
        const bool alphabet = std::all_of(base64.begin(), base64.end(), [](char c) {
            return is_alpha(c) || is_digit(c) || c == '+' || c == '/';
        });
        if (!alphabet || base64.size() % 4 == 1 ||
            !absl::Base64Unescape({base64.data(), base64.size()}, &out)) {
            return fail("not base64");
        }
        at_ = end + 1;
        return true;
    }

    bool boolean(bool& out) {
        next();
        out = !at_end() && peek() == '1';
        return take('1') || take('0') || fail("a boolean is ?0 or ?1");
    }

    bool display_string(std::string& out) {
        next();
        if (!take('"')) {
            return fail("a display string begins with %\"");
        }
        while (!at_end()) {
            const char c = next();
            if (c == '"') {
                return is_utf8(out) || fail("a display string is UTF-8");
            }
            if (c < 0x20 || c > 0x7e) {
                return fail("a display string is printable ASCII");
            }
            if (c != '%') {
                out += c;
                continue;
            }
            int byte = 0;
            for (int i = 0; i < 2; ++i) {
                constexpr std::string_view digits = "0123456789abcdef";
                const std::size_t digit = at_end() ? std::string_view::npos : digits.find(peek());
                if (digit == std::string_view::npos) {
                    return fail("two lower-case hexadecimal digits follow '%'");
                }
                byte = byte * 16 + static_cast<int>(digit);
                next();
            }
            out += static_cast<char>(byte);
        }
        return fail("a display string is not closed");
    }

    [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
    [[nodiscard]] char peek() const { return text_[at_]; }
    char next() { return text_[at_++]; }
    bool take(char c) {
        if (at_end() || peek() != c) {
            return false;
        }
        ++at_;
        return true;
    }
    void skip(std::string_view blanks) {
        at_ = std::min(text_.find_first_not_of(blanks, at_), text_.size());
    }
    bool fail(std::string_view why) {
        if (why_.empty()) {
            why_ = why;
        }
        return false;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::string_view why_;
};

}  // namespace

absl::StatusOr<SfItem> parse_sf_item(std::string_view text) {
    Parser parser(text);
    return parser.whole<SfItem>([&parser](SfItem& out) { return parser.item(out); });
}

absl::StatusOr<SfList> parse_sf_list(std::string_view text) {
    Parser parser(text);
    return parser.whole<SfList>([&parser](SfList& out) { return parser.list(out); });
}

absl::StatusOr<SfDictionary> parse_sf_dictionary(std::string_view text) {
    Parser parser(text);
    return parser.whole<SfDictionary>(
        [&parser](SfDictionary& out) { return parser.dictionary(out); });
}

bool is_sf_token(std::string_view text) {
    return !text.empty() && (is_alpha(text.front()) || text.front() == '*') &&
           std::all_of(text.begin(), text.end(), goes_on_token);
}

bool is_sf_key(std::string_view text) {
    return !text.empty() && is_key_start(text.front()) &&
           std::all_of(text.begin(), text.end(), is_key_char);
}

}  // namespace ration
