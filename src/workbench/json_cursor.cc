#include "workbench/json_cursor.h"

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "base/text.h"

namespace ration {

namespace {

void append_utf8(std::string& out, std::uint32_t code) {
    const auto byte = [&out](std::uint32_t value) { out.push_back(static_cast<char>(value)); };
    if (code < 0x80) {
        byte(code);
    } else if (code < 0x800) {
        byte(0xC0 | code >> 6);
        byte(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        byte(0xE0 | code >> 12);
        byte(0x80 | (code >> 6 & 0x3F));
        byte(0x80 | (code & 0x3F));
    } else {
        byte(0xF0 | code >> 18);
        byte(0x80 | (code >> 12 & 0x3F));
        byte(0x80 | (code >> 6 & 0x3F));
        byte(0x80 | (code & 0x3F));
    }
}

std::size_t digits_at(std::string_view text, std::size_t at) {
    std::size_t count = 0;
    while (at + count < text.size() &&
           absl::ascii_isdigit(static_cast<unsigned char>(text[at + count]))) {
        ++count;
    }
    return count;
}

// The length of the JSON number at the front of `text`; 0 when there is none.
std::size_t number_length(std::string_view text) {
    std::size_t at = !text.empty() && text[0] == '-' ? 1 : 0;
    const std::size_t whole = digits_at(text, at);
    if (whole == 0 || (whole > 1 && text[at] == '0')) {
        return 0;
    }
    at += whole;
    if (at < text.size() && text[at] == '.') {
        const std::size_t fraction = digits_at(text, at + 1);
        if (fraction == 0) {
            return 0;
        }
        at += 1 + fraction;
    }
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        const std::size_t sign =
            at + 1 < text.size() && (text[at + 1] == '+' || text[at + 1] == '-') ? 1 : 0;
        const std::size_t exponent = digits_at(text, at + 1 + sign);
        if (exponent == 0) {
            return 0;
        }
        at += 1 + sign + exponent;
    }
    return at;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
    if (text.empty()) {
        return 0;
    }
    const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) {
        return 1;
    }
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || text.size() < length) {
        return 0;
    }
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) {
            return 0;
        }
    }
    const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
    const bool surrogate = first == 0xED && byte(1) >= 0xA0;
    const bool too_large = first == 0xF4 && byte(1) >= 0x90;
    return overlong || surrogate || too_large ? 0 : length;
}

std::string json_quoted(std::string_view text) {
    std::string out = "\"";
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const char c = text[0];
        if (length == 0) {
            out += "\xEF\xBF\xBD";
        } else if (c == '"' || c == '\\') {
            out.push_back('\\');
            out.push_back(c);
        } else if (c == '\n') {
            out += "\\n";
        } else if (length == 1 && static_cast<unsigned char>(c) < 0x20) {
            absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned char>(c));
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    out.push_back('"');
    return out;
}

bool JsonCursor::fail_at(std::size_t offset, std::string reason) {
    if (reason_.empty()) {
        failed_at_ = offset;
        reason_ = std::move(reason);
    }
    return false;
}

bool JsonCursor::fail(std::string reason) {
    return fail_at(token_, std::move(reason));
}

void JsonCursor::skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
        ++at_;
    }
    token_ = at_;
}

JsonCursor::Kind JsonCursor::peek() {
    skip_blanks();
    if (at_ >= text_.size()) {
        return Kind::none;
    }
    switch (text_[at_]) {
        case '{':
            return Kind::object;
        case '[':
            return Kind::array;
        case '"':
            return Kind::string;
        case 't':
        case 'f':
        case 'n':
            return Kind::literal;
        default:
            return text_[at_] == '-' || absl::ascii_isdigit(static_cast<unsigned char>(text_[at_]))
                       ? Kind::number
                       : Kind::none;
    }
}

bool JsonCursor::take(char expected) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != expected) {
        return false;
    }
    ++at_;
    return true;
}

bool JsonCursor::object(absl::FunctionRef<bool(const std::string& name)> member) {
    if (failed() || !take('{')) {
        return fail_at(at_, "expected a JSON object");
    }
    if (take('}')) {
        return true;
    }
    absl::flat_hash_set<std::string> seen;
    do {
        std::string name;
        if (peek() != Kind::string || !string(name)) {
            return fail_at(at_, "expected the name of a member, in double quotes");
        }
        const std::size_t name_at = token_;
        if (!seen.insert(name).second) {
            return fail_at(name_at, cat(json_quoted(name), " stands twice"));
        }
        if (!take(':')) {
            return fail_at(at_, "expected \":\"");
        }
        token_ = name_at;
        if (!member(name)) {
            return fail_at(token_, "cannot be read");
        }
    } while (take(','));
    return take('}') || fail_at(at_, "expected \",\" or \"}\"");
}

bool JsonCursor::array(absl::FunctionRef<bool()> item) {
    if (failed() || !take('[')) {
        return fail_at(at_, "expected a JSON list");
    }
    if (take(']')) {
        return true;
    }
    do {
        if (!item()) {
            return fail_at(token_, "cannot be read");
        }
    } while (take(','));
    return take(']') || fail_at(at_, "expected \",\" or \"]\"");
}

bool JsonCursor::number(std::string_view& raw) {
    if (failed() || peek() != Kind::number) {
        return fail_at(at_, "expected a number");
    }
    const std::size_t length = number_length(text_.substr(at_));
    if (length == 0) {
        return fail_at(at_, "is not a JSON number");
    }
    raw = text_.substr(at_, length);
    at_ += length;
    return true;
}

bool JsonCursor::scalar(std::string_view& raw) {
    const Kind kind = peek();
    const std::size_t begin = at_;
    if (kind == Kind::string) {
        std::string ignored;
        if (!string(ignored)) {
            return false;
        }
    } else if (kind == Kind::number) {
        return number(raw);
    } else {
        for (const std::string_view word : {"true", "false", "null"}) {
            if (text_.substr(at_, word.size()) == word) {
                at_ += word.size();
                break;
            }
        }
    }
    raw = text_.substr(begin, at_ - begin);
    return !raw.empty() || fail_at(begin, "expected a string, a number, true, false or null");
}

bool JsonCursor::string(std::string& out) {
    if (failed() || peek() != Kind::string) {
        return fail_at(at_, "expected a string");
    }
    const std::size_t begin = at_++;
    out.clear();
    while (at_ < text_.size() && text_[at_] != '"') {
        if (!(text_[at_] == '\\' ? escape(out) : plain_bytes(out))) {
            return false;
        }
    }
    if (at_ >= text_.size()) {
        return fail_at(begin, "the string does not end");
    }
    ++at_;
    token_ = begin;
    return true;
}

bool JsonCursor::plain_bytes(std::string& out) {
    const std::size_t length = utf8_length(text_.substr(at_));
    if (length == 0) {
        return fail_at(at_, "is not UTF-8");
    }
    if (static_cast<unsigned char>(text_[at_]) < 0x20) {
        return fail_at(at_, "a control character in a string must be written as an escape");
    }
    out += text_.substr(at_, length);
    at_ += length;
    return true;
}

bool JsonCursor::hex4(unsigned& out) {
    out = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
        if (at_ >= text_.size() || !absl::ascii_isxdigit(static_cast<unsigned char>(text_[at_]))) {
            return fail_at(at_, "expected four hexadecimal digits");
        }
        const char c = absl::ascii_tolower(static_cast<unsigned char>(text_[at_]));
        out = out * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

bool JsonCursor::escape(std::string& out) {
    const std::size_t begin = at_++;
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    static constexpr std::string_view names = "\"\\/bfnrt";
    static constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    if (const std::size_t i = c == '\0' ? std::string_view::npos : names.find(c);
        i != std::string_view::npos) {
        out.push_back(meanings[i]);
        return true;
    }
    unsigned code = 0;
    if (c != 'u' || !hex4(code)) {
        return fail_at(begin, "is not an escape that JSON has");
    }
    std::uint32_t whole = code;
    if (code >= 0xD800 && code < 0xDC00) {
        unsigned low = 0;
        if (text_.substr(at_, 2) != "\\u") {
            return fail_at(begin, "is half of a surrogate pair");
        }
        at_ += 2;
        if (!hex4(low) || low < 0xDC00 || low > 0xDFFF) {
            return fail_at(begin, "is half of a surrogate pair");
        }
        whole = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
        return fail_at(begin, "is half of a surrogate pair");
    }
    append_utf8(out, whole);
    return true;
}

bool JsonCursor::end() {
    skip_blanks();
    return !failed() && (at_ == text_.size() || fail_at(at_, "nothing can stand after the object"));
}

}  // namespace ration
