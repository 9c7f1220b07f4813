// Heads of HTTP/1.1 messages: where they end, what is in them, and whether they are unambiguous.
//
// `HeadScanner` finds the end of a head in bytes that arrive piecemeal and refuses bare line feeds
// and folded lines on the way. A complete head then goes through the parser once, and through the
// checks the parser does not make (RFC 9112 sections 3.2, 5, 6). What is accepted has exactly one
// reading. Thread rule: one thread per object. Ownership: heads are views into the text given.
// Errors: a sentence without the caller's bytes, fit for an answer and a log.
//
//   http::RequestHead head;
//   if (const char* reason = http::parse_request(text, limits, head)) answer_400(reason);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "request/header.h"
#include "server/http/fields.h"

namespace ration::http {

// How the body's end is known.
enum class Framing : std::uint8_t { none, length, chunked, until_close };

struct FieldList {
    std::vector<Header> fields;
    std::vector<FieldId> ids;  // in the order of `fields`

    void clear() {
        fields.clear();
        ids.clear();
    }
    void add(FieldId id, Header field) {
        fields.push_back(field);
        ids.push_back(id);
    }
    [[nodiscard]] const Header* find(FieldId id) const;
};

struct RequestHead {
    std::string_view method;
    std::string_view target;
    std::string_view authority;  // of an absolute-form target, else empty
    int minor_version = 1;       // HTTP/1.x
    FieldList fields;
    Framing framing = Framing::none;
    std::uint64_t length = 0;  // when framing is `length`
    bool keep_alive = true;
    bool expects_continue = false;
    bool other_expectation = false;
    bool wants_upgrade = false;  // to something else than h2c, which may be ignored
    bool accepts_trailers = false;
    bool drops_named_fields = false;  // Connection lists fields to be removed
};

struct ResponseHead {
    int status = 0;
    std::string_view reason;
    int minor_version = 1;
    FieldList fields;
    Framing framing = Framing::none;
    std::uint64_t length = 0;  // stated length, also when framing is `none` (HEAD, 304)
    bool has_length = false;
    bool keep_alive = true;
    bool drops_named_fields = false;
};

struct HeadLimits {
    std::size_t bytes = 32 * 1024;
    std::size_t fields = 100;
};

inline constexpr std::size_t max_leading_empty_lines = 4;  // before a request line

// Looks for the empty line that ends a head. Call `scan` with all bytes of the message so far.
class HeadScanner {
public:
    enum class Result : std::uint8_t { more, complete, bare_line_feed, folded };
    [[nodiscard]] Result scan(std::string_view bytes);
    [[nodiscard]] std::size_t head_bytes() const { return at_; }  // when complete
    void reset() { *this = HeadScanner(); }

private:
    std::size_t at_ = 0;          // bytes looked at
    std::size_t line_start_ = 0;  // of the line that `at_` is in
};

// Whether a head that is longer than `most` bytes is so by its request line (414) and not by its
// fields (431). `bytes`: what has come of it.
[[nodiscard]] bool target_too_long(std::string_view bytes, std::size_t most);

// nullptr when the head is good, else what is wrong. `too_many` tells a 431 from a 400.
struct ParseProblem {
    const char* reason = nullptr;
    bool too_large = false;
    explicit operator bool() const { return reason != nullptr; }
};

// `text` is a complete head with its final empty line.
[[nodiscard]] ParseProblem parse_request(std::string_view text, const HeadLimits& limits,
                                         RequestHead& head);
// `to_head`: the answer to a HEAD request, which has no body whatever it says.
[[nodiscard]] ParseProblem parse_response(std::string_view text, const HeadLimits& limits,
                                          bool to_head, ResponseHead& head);

// True when the message's Connection fields name `name`, and it is a field they may take away.
[[nodiscard]] bool named_by_connection(const FieldList& fields, std::string_view name);

}  // namespace ration::http
