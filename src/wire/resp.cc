#include "wire/resp.h"

#include <array>
#include <charconv>
#include <system_error>

namespace ration {
namespace {

// A place in the bytes; every step says whether it found what it wanted.
class Cursor {
public:
    explicit Cursor(std::string_view bytes) : bytes_(bytes) {}
    [[nodiscard]] std::size_t at() const { return at_; }

    // The line up to CR LF, which is passed.
    RespRead line(std::string_view& text) {
        const std::size_t end = bytes_.find('\r', at_);
        if (end == std::string_view::npos || end + 1 == bytes_.size()) {
            return bytes_.size() - at_ > max_resp_line ? RespRead::malformed : RespRead::more;
        }
        if (bytes_[end + 1] != '\n' || end - at_ > max_resp_line) {
            return RespRead::malformed;
        }
        text = bytes_.substr(at_, end - at_);
        at_ = end + 2;
        return RespRead::complete;
    }

    RespRead block(std::size_t size, std::string_view& text) {
        if (bytes_.size() - at_ < size + 2) {
            return RespRead::more;
        }
        if (bytes_.substr(at_ + size, 2) != "\r\n") {
            return RespRead::malformed;
        }
        text = bytes_.substr(at_, size);
        at_ += size + 2;
        return RespRead::complete;
    }

private:
    std::string_view bytes_;
    std::size_t at_ = 0;
};

bool read_number(std::string_view text, std::int64_t& number) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    return read.ec == std::errc{} && read.ptr == text.data() + text.size();
}

RespRead read_bulk(Cursor& cursor, std::int64_t size, RespValue& value) {
    if (size == -1) {
        value.kind = RespValue::Kind::null;
        return RespRead::complete;
    }
    if (size < 0 || size > max_resp_bulk) {
        return RespRead::malformed;
    }
    value.kind = RespValue::Kind::bulk;
    return cursor.block(static_cast<std::size_t>(size), value.text);
}

// The value that `line` begins; for an array `value.integer` is its length and `array` is set.
RespRead read_value(Cursor& cursor, RespValue& value, bool& array) {
    std::string_view line;
    if (const RespRead read = cursor.line(line); read != RespRead::complete) {
        return read;
    }
    if (line.empty()) {
        return RespRead::malformed;
    }
    const char sign = line.front();
    line.remove_prefix(1);
    array = sign == '*';
    if (sign == '+' || sign == '-') {
        value.kind = sign == '+' ? RespValue::Kind::status : RespValue::Kind::error;
        value.text = line;
        return RespRead::complete;
    }
    if ((sign != ':' && sign != '$' && sign != '*') || !read_number(line, value.integer)) {
        return RespRead::malformed;
    }
    value.kind = RespValue::Kind::integer;
    return sign == '$' ? read_bulk(cursor, value.integer, value) : RespRead::complete;
}

RespRead read_elements(Cursor& cursor, std::int64_t count, RespReply& reply) {
    if (count == -1) {
        reply.array = false;
        reply.values.assign(1, RespValue{});
        return RespRead::complete;
    }
    if (count < 0 || count > max_resp_elements) {
        return RespRead::malformed;
    }
    for (std::int64_t i = 0; i < count; ++i) {
        bool nested = false;
        const RespRead read = read_value(cursor, reply.values.emplace_back(), nested);
        if (read != RespRead::complete) {
            return read;
        }
        if (nested) {
            return RespRead::malformed;
        }
    }
    return RespRead::complete;
}

void append_number(std::string& out, std::size_t number) {
    std::array<char, 20> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    out.append(digits.data(), end);
}

}  // namespace

RespRead parse_resp(std::string_view bytes, RespReply& reply, std::size_t& used) {
    used = 0;
    reply.array = false;
    reply.values.clear();
    Cursor cursor(bytes);
    RespValue first;
    RespRead read = read_value(cursor, first, reply.array);
    if (read == RespRead::complete && reply.array) {
        read = read_elements(cursor, first.integer, reply);
    } else if (read == RespRead::complete) {
        reply.values.push_back(first);
    }
    if (read == RespRead::complete) {
        used = cursor.at();
    }
    return read;
}

void append_resp_count(std::string& out, std::size_t words) {
    out += '*';
    append_number(out, words);
    out += "\r\n";
}

void append_resp_word(std::string& out, std::string_view word) {
    out += '$';
    append_number(out, word.size());
    out += "\r\n";
    out += word;
    out += "\r\n";
}

void append_resp_command(std::string& out, std::initializer_list<std::string_view> words) {
    append_resp_count(out, words.size());
    for (const std::string_view word : words) {
        append_resp_word(out, word);
    }
}

}  // namespace ration
