// A request target has many spellings, and every pair of programs in a row that reads one of them
// differently is a way around a limit. So there is one pass, before anything else looks at the
// path, that either gives the one normal form or refuses.
//
// The pass works segment by segment: the escapes of a segment are settled while it is copied to the
// buffer, so an encoded dot is a dot by the time the finished segment is looked at; then `.` is
// dropped, `..` takes the write position back to the segment before, and an empty segment (a run of
// slashes) leaves nothing. Escapes above 0x7F go through a UTF-8 automaton, since an overlong "/"
// (%C0%AF) is a slash to a careless decoder.
#include "request/path.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "base/text.h"
#include "base/utf8.h"
#include "request/header.h"

namespace ration {
namespace {

// What is done with a byte of a path.
enum class Kind : std::uint8_t {
    keep,    // unreserved: the same encoded or not
    raw,     // other characters a segment may hold: kept as spelled
    encode,  // no URI character, harmless: escaped
    refuse,
};

constexpr std::array<Kind, 256> kinds = [] {
    std::array<Kind, 256> table{};
    table.fill(Kind::refuse);
    const auto set = [&table](std::string_view characters, Kind kind) {
        for (const char c : characters) {
            table[static_cast<unsigned char>(c)] = kind;
        }
    };
    set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~", Kind::keep);
    set("!$&'()*+,=:@", Kind::raw);
    set("\"<>[]^`{|}", Kind::encode);
    return table;
}();

Kind kind_of(unsigned char c) {
    return kinds[c];
}

// The bytes at the front of `text` that go to the buffer as they are.
std::string_view plain_front(std::string_view text) {
    const auto end = std::find_if(text.begin(), text.end(), [](char c) {
        const Kind kind = kind_of(static_cast<unsigned char>(c));
        return kind != Kind::keep && kind != Kind::raw;
    });
    return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

absl::Status refused(std::string_view why) {
    return absl::InvalidArgumentError({why.data(), why.size()});
}

class PathWriter {
public:
    explicit PathWriter(std::span<char> out) : out_(out) {}

    // `path` starts with '/'.
    absl::Status write(std::string_view path) {
        std::size_t at = 0;
        while (at < path.size()) {
            const std::size_t start = at + 1;
            const std::size_t end = std::min(path.find('/', start), path.size());
            if (absl::Status status = segment(path.substr(start, end - start), end == path.size());
                !status.ok()) {
                return status;
            }
            at = end;
        }
        return absl::OkStatus();
    }

    [[nodiscard]] std::string_view written() const { return {out_.data(), size_}; }

private:
    bool put(char c) {
        if (size_ == out_.size()) {
            return false;
        }
        out_[size_++] = c;
        return true;
    }

    bool put_escape(unsigned char c) {
        constexpr std::string_view digits = "0123456789ABCDEF";
        return put('%') && put(digits[c >> 4]) && put(digits[c & 15]);
    }

    absl::Status segment(std::string_view text, bool last) {
        const std::size_t slash = size_;
        if (!put('/')) {
            return too_long();
        }
        if (absl::Status status = copy(text); !status.ok()) {
            return status;
        }
        const std::string_view done = written().substr(slash + 1);
        if (done == "..") {
            if (slash == 0) {
                return refused("'..' climbs above the root");
            }
            size_ = written().rfind('/', slash - 1);
        } else if (done.empty() || done == ".") {
            size_ = slash;
        } else {
            return absl::OkStatus();
        }
        // What was dropped at the end leaves its slash: /a/. and /a/b/.. name the folder /a/.
        if (last && !put('/')) {
            return too_long();
        }
        return absl::OkStatus();
    }

    absl::Status copy(std::string_view text) {
        const std::string_view plain = plain_front(text);
        if (plain.size() > out_.size() - size_) {
            return too_long();
        }
        std::copy(plain.begin(), plain.end(), out_.begin() + static_cast<std::ptrdiff_t>(size_));
        size_ += plain.size();
        Utf8Check utf8;
        for (std::size_t i = plain.size(); i < text.size(); ++i) {
            auto c = static_cast<unsigned char>(text[i]);
            const bool escaped = c == '%';
            if (escaped) {
                const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
                const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
                if (high < 0 || low < 0) {
                    return refused("a '%' that no two hexadecimal digits follow");
                }
                c = static_cast<unsigned char>(high * 16 + low);
                i += 2;
            }
            if (!utf8.take(c)) {
                return refused("escapes that do not spell UTF-8");
            }
            if (absl::Status status = escaped ? put_decoded(c) : put_plain(c); !status.ok()) {
                return status;
            }
        }
        return utf8.complete() ? absl::OkStatus() : refused("escapes that do not spell UTF-8");
    }

    absl::Status put_decoded(unsigned char c) {
        if (c == '/' || c == '\\') {
            return refused(cat("an encoded '", static_cast<char>(c), "'"));
        }
        if (absl::ascii_iscntrl(c)) {
            return refused("an encoded control character");
        }
        const bool fits = kind_of(c) == Kind::keep ? put(static_cast<char>(c)) : put_escape(c);
        return fits ? absl::OkStatus() : too_long();
    }

    absl::Status put_plain(unsigned char c) {
        const Kind kind = kind_of(c);
        if (kind == Kind::refuse) {
            if (absl::ascii_isgraph(c)) {
                return refused(cat("the character '", static_cast<char>(c), "'"));
            }
            return refused("a blank, control or non-ASCII byte");
        }
        const bool fits = kind == Kind::encode ? put_escape(c) : put(static_cast<char>(c));
        return fits ? absl::OkStatus() : too_long();
    }

    static absl::Status too_long() {
        return absl::OutOfRangeError("a path that is too long once escaped");
    }

    std::span<char> out_;
    std::size_t size_ = 0;
};

bool is_query(std::string_view text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return c > ' ' && c < 0x7f && c != '#'; });
}

// RFC 9110 4.2: host and port, no user information (which is a way to disguise a host).
bool authority_fits(std::string_view authority) {
    return !authority.empty() && std::all_of(authority.begin(), authority.end(), [](char c) {
        return kind_of(static_cast<unsigned char>(c)) == Kind::keep ||
               (c != '@' && std::string_view("!$&'()*+,;=:[]%").find(c) != std::string_view::npos);
    });
}

// Takes "http://host" or "https://host" off the front of an absolute-form target.
absl::Status take_authority(std::string_view& target, std::string_view& authority) {
    for (const std::string_view scheme : {"http://", "https://"}) {
        if (!equal_ignoring_case(target.substr(0, scheme.size()), scheme)) {
            continue;
        }
        target.remove_prefix(scheme.size());
        const std::size_t end = std::min(target.find_first_of("/?"), target.size());
        authority = target.substr(0, end);
        target.remove_prefix(end);
        return authority_fits(authority) ? absl::OkStatus() : refused("an unreadable authority");
    }
    return refused("a target that neither starts with '/' nor is an http or https URL");
}

}  // namespace

int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string_view percent_decoded(std::string_view text, std::span<char> out, PlusSign plus) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < text.size() && size < out.size(); ++i) {
        char c = text[i];
        if (c == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 &&
            hex_value(text[i + 2]) >= 0) {
            c = static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
            i += 2;
        } else if (c == '+' && plus == PlusSign::blank) {
            c = ' ';
        }
        out[size++] = c;
    }
    return {out.data(), size};
}

absl::StatusOr<NormalTarget> normal_target(std::string_view target, std::span<char> buffer) {
    if (target.size() > max_target_bytes) {
        return absl::OutOfRangeError(cat("a target of more than ", max_target_bytes, " bytes"));
    }
    if (target.empty()) {
        return refused("an empty target");
    }
    NormalTarget result;
    if (target == "*") {
        buffer[0] = '*';
        result.path = {buffer.data(), 1};
        return result;
    }
    if (target.front() != '/') {
        if (absl::Status status = take_authority(target, result.authority); !status.ok()) {
            return status;
        }
    }
    const std::size_t mark = target.find('?');
    std::string_view path = target.substr(0, mark);
    if (mark != std::string_view::npos) {
        result.has_query = true;
        result.query = target.substr(mark + 1);
        if (!is_query(result.query)) {
            return refused("a blank, control or non-ASCII byte or '#' in the query");
        }
    }
    PathWriter writer(buffer);
    if (absl::Status status = writer.write(path.empty() ? "/" : path); !status.ok()) {
        return status;
    }
    result.path = writer.written();
    return result;
}

}  // namespace ration
