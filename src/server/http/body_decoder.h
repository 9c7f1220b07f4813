// The end of a message body: by length, by chunks (RFC 9112 section 7.1), or by the connection's
// end.
//
// Pull style: `next` looks at the bytes that are there, says how many it used and which of them are
// content. Bounds: one chunk line `max_chunk_line`, the trailer section `max_trailer_bytes` and
// `max_trailer_fields`. Strict: bare line feeds, signs, blanks before the size, sizes of 2^60 and
// more and broken extensions are errors. Thread rule: one thread.
//
//   for (auto piece = body.next(in.data());; ...) { out.append(piece.content);
//   in.consume(piece.used); }
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/http/head_parser.h"

namespace ration::http {

inline constexpr std::size_t max_chunk_line = 1024;  // size, extensions, line end
inline constexpr std::size_t max_trailer_bytes = 8 * 1024;
inline constexpr std::size_t max_trailer_fields = 32;

class BodyDecoder {
public:
    enum class State : std::uint8_t {
        more,   // all that can be used is used; the body goes on
        piece,  // call again: there may be more in the input
        done,   // the body is complete
        error,  // `reason()` says why
    };
    struct Step {
        State state = State::more;
        std::size_t used = 0;
        std::string_view content{};  // inside the used bytes
    };

    void start(Framing framing, std::uint64_t length);
    // `input` begins where the last step's used bytes ended.
    [[nodiscard]] Step next(std::string_view input);
    // The connection ended: true when that is a proper end of this body.
    [[nodiscard]] bool end_of_input();

    [[nodiscard]] bool done() const { return phase_ == Phase::done; }
    [[nodiscard]] Framing framing() const { return framing_; }
    [[nodiscard]] std::uint64_t content_bytes() const { return content_bytes_; }
    // Bytes still to come when the length is known, else 0.
    [[nodiscard]] std::uint64_t left() const { return framing_ == Framing::length ? left_ : 0; }
    // True until the first chunk line is read.
    [[nodiscard]] bool at_first_chunk() const { return at_first_chunk_; }
    // Trailer lines that may be passed on, each with its line end; complete when `done`.
    [[nodiscard]] const std::string& trailers() const { return trailers_; }
    [[nodiscard]] const char* reason() const { return reason_; }

private:
    enum class Phase : std::uint8_t { content, chunk_line, chunk_end, trailer, done, failed };

    Step fail(const char* reason);
    Step content(std::string_view input);
    Step chunk_line(std::string_view input);
    Step chunk_end(std::string_view input);
    Step trailer(std::string_view input);
    const char* take_trailer(std::string_view line);

    Framing framing_ = Framing::none;
    Phase phase_ = Phase::done;
    bool at_first_chunk_ = false;
    std::uint64_t left_ = 0;
    std::uint64_t content_bytes_ = 0;
    std::size_t trailer_bytes_ = 0;
    std::size_t trailer_fields_ = 0;
    std::string trailers_;
    const char* reason_ = nullptr;
};

}  // namespace ration::http
