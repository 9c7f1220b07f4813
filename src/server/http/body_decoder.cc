#include "server/http/body_decoder.h"

#include <algorithm>

namespace ration::http {

namespace {

constexpr std::uint64_t max_chunk_bytes = 1ULL << 60;

// Where the line that starts at 0 ends: the index of its CR; npos while it is incomplete.
struct Line {
    std::size_t length = std::string_view::npos;
    bool bad = false;
};

Line find_line(std::string_view input) {
    const std::size_t feed = input.find('\n');
    const std::size_t carriage = input.find('\r');
    if (carriage != std::string_view::npos && carriage + 1 < input.size() &&
        input[carriage + 1] != '\n') {
        return {.bad = true};
    }
    if (feed == std::string_view::npos) {
        return {};
    }
    if (feed == 0 || carriage != feed - 1) {
        return {.bad = true};
    }
    return {.length = carriage};
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

// chunk-size with whatever follows it; false when it is not a number or too large.
bool parse_size(std::string_view line, std::uint64_t& size, std::string_view& rest) {
    std::size_t digits = 0;
    size = 0;
    while (digits < line.size() && hex_digit(line[digits]) >= 0) {
        if (size >= max_chunk_bytes / 16) {
            return false;
        }
        size = size * 16 + static_cast<std::uint64_t>(hex_digit(line[digits]));
        ++digits;
    }
    rest = line.substr(digits);
    return digits > 0;
}

}  // namespace

void BodyDecoder::start(Framing framing, std::uint64_t length) {
    framing_ = framing;
    left_ = length;
    content_bytes_ = 0;
    trailer_bytes_ = trailer_fields_ = 0;
    trailers_.clear();
    reason_ = nullptr;
    at_first_chunk_ = framing == Framing::chunked;
    switch (framing) {
        case Framing::none:
            phase_ = Phase::done;
            break;
        case Framing::length:
            phase_ = length == 0 ? Phase::done : Phase::content;
            break;
        case Framing::chunked:
            phase_ = Phase::chunk_line;
            break;
        case Framing::until_close:
            phase_ = Phase::content;
            break;
    }
}

BodyDecoder::Step BodyDecoder::next(std::string_view input) {
    switch (phase_) {
        case Phase::content:
            return content(input);
        case Phase::chunk_line:
            return chunk_line(input);
        case Phase::chunk_end:
            return chunk_end(input);
        case Phase::trailer:
            return trailer(input);
        case Phase::done:
            return {.state = State::done};
        case Phase::failed:
            break;
    }
    return {.state = State::error};
}

bool BodyDecoder::end_of_input() {
    if (phase_ == Phase::content && framing_ == Framing::until_close) {
        phase_ = Phase::done;
    }
    return phase_ == Phase::done;
}

BodyDecoder::Step BodyDecoder::fail(const char* reason) {
    phase_ = Phase::failed;
    reason_ = reason;
    return {.state = State::error};
}

BodyDecoder::Step BodyDecoder::content(std::string_view input) {
    if (input.empty()) {
        return {};
    }
    std::size_t count = input.size();
    if (framing_ != Framing::until_close) {
        count = static_cast<std::size_t>(std::min<std::uint64_t>(count, left_));
        left_ -= count;
    }
    content_bytes_ += count;
    Step step{.state = State::piece, .used = count, .content = input.substr(0, count)};
    if (framing_ == Framing::length && left_ == 0) {
        phase_ = Phase::done;
        step.state = State::done;
    } else if (framing_ == Framing::chunked && left_ == 0) {
        phase_ = Phase::chunk_end;
    } else if (count == input.size()) {
        step.state = State::more;
    }
    return step;
}

BodyDecoder::Step BodyDecoder::chunk_line(std::string_view input) {
    const Line line = find_line(input.substr(0, max_chunk_line));
    if (line.bad) {
        return fail("malformed line end in a chunk header");
    }
    if (line.length == std::string_view::npos) {
        return input.size() >= max_chunk_line ? fail("chunk header too long") : Step{};
    }
    std::uint64_t size = 0;
    std::string_view rest;
    if (!parse_size(input.substr(0, line.length), size, rest)) {
        return fail("malformed or too large chunk size");
    }
    // Blanks before an extension are "bad whitespace" that must still be read (RFC 9112 7.1.1).
    if (const std::string_view extension = trimmed(rest); !extension.empty()) {
        if (extension.front() != ';' || !is_field_value(extension)) {
            return fail("malformed chunk extension");
        }
    } else if (!rest.empty()) {
        return fail("blanks after a chunk size");
    }
    at_first_chunk_ = false;
    left_ = size;
    phase_ = size == 0 ? Phase::trailer : Phase::content;
    return {.state = State::piece, .used = line.length + 2};
}

BodyDecoder::Step BodyDecoder::chunk_end(std::string_view input) {
    if (!std::string_view("\r\n").starts_with(input.substr(0, 2))) {
        return fail("chunk longer than its size");
    }
    if (input.size() < 2) {
        return {};
    }
    phase_ = Phase::chunk_line;
    return {.state = State::piece, .used = 2};
}

BodyDecoder::Step BodyDecoder::trailer(std::string_view input) {
    const std::size_t room = max_trailer_bytes - trailer_bytes_;
    const Line line = find_line(input.substr(0, room));
    if (line.bad) {
        return fail("malformed line end in a trailer");
    }
    if (line.length == std::string_view::npos) {
        return input.size() >= room ? fail("trailer section too large") : Step{};
    }
    const std::size_t used = line.length + 2;
    trailer_bytes_ += used;
    if (line.length == 0) {
        phase_ = Phase::done;
        return {.state = State::done, .used = used};
    }
    if (const char* reason = take_trailer(input.substr(0, line.length))) {
        return fail(reason);
    }
    return {.state = State::piece, .used = used};
}

const char* BodyDecoder::take_trailer(std::string_view line) {
    if (++trailer_fields_ > max_trailer_fields) {
        return "too many trailer fields";
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) ||
        !is_field_value(line.substr(colon + 1))) {
        return "malformed trailer field";
    }
    if (!is_forbidden_in_trailer(line.substr(0, colon))) {
        trailers_.append(line).append("\r\n");
    }
    return nullptr;
}

}  // namespace ration::http
