// A strict JSON reader that knows where it stands and hands numbers over as they are written.
//
// Replay needs both: columns for messages, and instants whose decimal digits no double could keep.
// RFC 8259, nothing more lenient; text must be UTF-8. Nesting is the reader's own (it asks for each
// value), so the depth is bounded by the shape that is asked for. Thread rule: one thread. The text
// must outlive the cursor. Every member answers false after the first failure; `reason` and
// `column` then say what is wrong.
//
//   JsonCursor cursor(line);
//   bool good = cursor.object([&](const std::string& name) {
//       return name == "at" ? cursor.number(raw) : cursor.fail("unknown field");
//   }) && cursor.end();
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"

namespace ration {

class JsonCursor {
public:
    enum class Kind : unsigned char { object, array, string, number, literal, none };

    explicit JsonCursor(std::string_view text) : text_(text) {}

    // What stands next; `none` at the end or where no value can start.
    [[nodiscard]] Kind peek();

    // Calls `member` with each name, standing before its value, which it must read. A name that
    // stands twice is an error.
    bool object(absl::FunctionRef<bool(const std::string& name)> member);
    bool array(absl::FunctionRef<bool()> item);
    bool string(std::string& out);
    bool number(std::string_view& raw);
    // A string, number, true, false or null as it is written.
    bool scalar(std::string_view& raw);
    // Nothing but blanks is left.
    bool end();

    // Records the first failure, at the token read or peeked last.
    bool fail(std::string reason);

    [[nodiscard]] bool failed() const { return !reason_.empty(); }
    [[nodiscard]] const std::string& reason() const { return reason_; }
    // Where the token read or peeked last began; and where the failure is.
    [[nodiscard]] int token_column() const { return static_cast<int>(token_) + 1; }
    [[nodiscard]] int column() const { return static_cast<int>(failed_at_) + 1; }  // bytes, from 1

private:
    void skip_blanks();
    bool take(char expected);
    bool fail_at(std::size_t offset, std::string reason);
    bool escape(std::string& out);
    bool hex4(unsigned& out);
    bool plain_bytes(std::string& out);

    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t token_ = 0;  // where the token read last began
    std::size_t failed_at_ = 0;
    std::string reason_;
};

// The length of the UTF-8 character at the front of `text`; 0 when there is none.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

// `text` as a JSON string with its quotes; what is not UTF-8 becomes U+FFFD.
[[nodiscard]] std::string json_quoted(std::string_view text);

}  // namespace ration
