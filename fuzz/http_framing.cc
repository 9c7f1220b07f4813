// Fuzzes the gateway's reading of messages: head scanner, head parser, body decoder.
//
// The first byte chooses the piece size. What must hold for every input: no crash, the same result
// in any pieces, nothing read past the end, and an accepted request is unambiguous by a plain
// second reading of its bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/http/body_decoder.h"
#include "server/http/head_parser.h"

namespace {

using ration::equal_ignoring_case;
using ration::Header;
using namespace ration::http;

void require(bool truth) {
    if (!truth) {
        std::abort();
    }
}

struct Scan {
    HeadScanner::Result result = HeadScanner::Result::more;
    std::size_t bytes = 0;
};

Scan scan(std::string_view input, std::size_t step) {
    HeadScanner scanner;
    for (std::size_t end = std::min(step, input.size());;) {
        const HeadScanner::Result result = scanner.scan(input.substr(0, end));
        if (result != HeadScanner::Result::more || end == input.size()) {
            const bool complete = result == HeadScanner::Result::complete;
            return {result, complete ? scanner.head_bytes() : 0};
        }
        end = std::min(end + step, input.size());
    }
}

// A second, plain look at an accepted head: what the strict rules promise about its bytes.
void check_accepted(std::string_view text, const RequestHead& head) {
    require(text.ends_with("\r\n\r\n"));
    int lengths = 0;
    int codings = 0;
    int hosts = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        require(c >= 0x20 || c == '\t' || c == '\r' || c == '\n');
        require(c != '\n' || (i > 0 && text[i - 1] == '\r'));
        require(c != '\r' || (i + 1 < text.size() && text[i + 1] == '\n'));
        require(c != '\n' || i + 1 == text.size() || (text[i + 1] != ' ' && text[i + 1] != '\t'));
    }
    for (const Header& field : head.fields.fields) {
        require(is_token(field.name) && is_field_value(field.value));
        lengths += equal_ignoring_case(field.name, "content-length") ? 1 : 0;
        codings += equal_ignoring_case(field.name, "transfer-encoding") ? 1 : 0;
        hosts += equal_ignoring_case(field.name, "host") ? 1 : 0;
    }
    require(is_token(head.method));
    require(lengths + codings <= 1);
    require(hosts == 1 || (hosts == 0 && head.minor_version == 0));
    require((head.framing == Framing::chunked) == (codings == 1));
    require((head.framing == Framing::length) == (lengths == 1));
    require(codings == 0 || head.minor_version == 1);
}

struct Body {
    std::string content;
    std::string trailers;
    bool done = false;
    bool error = false;
    std::size_t used = 0;
};

Body decode(Framing framing, std::uint64_t length, std::string_view input, std::size_t step) {
    BodyDecoder decoder;
    decoder.start(framing, length);
    Body body;
    std::size_t end = std::min(step, input.size());
    for (;;) {
        const std::string_view window = input.substr(body.used, end - body.used);
        const BodyDecoder::Step got = decoder.next(window);
        require(got.used <= window.size() && got.content.size() <= got.used);
        body.content += got.content;
        body.used += got.used;
        if (got.state == BodyDecoder::State::error || decoder.done()) {
            break;
        }
        if (got.state == BodyDecoder::State::more &&
            body.used + (window.size() - got.used) == end) {
            if (end == input.size()) {
                break;
            }
            end = std::min(end + step, input.size());
        }
    }
    body.done = decoder.done();
    body.error = decoder.reason() != nullptr;
    body.trailers = decoder.trailers();
    return body;
}

void check_body(Framing framing, std::uint64_t length, std::string_view input, std::size_t step) {
    const Body whole = decode(framing, length, input, input.size() + 1);
    const Body pieces = decode(framing, length, input, step);
    require(whole.done == pieces.done && whole.error == pieces.error);
    require(whole.error || (whole.content == pieces.content && whole.used == pieces.used));
    require(whole.trailers.size() <= max_trailer_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return 0;
    }
    const std::size_t step = data[0] % 64 + 1;
    const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
    const Scan whole = scan(input, input.size() + 1);
    const Scan pieces = scan(input, step);
    require(whole.result == pieces.result && whole.bytes == pieces.bytes);
    check_body(Framing::chunked, 0, input, step);
    if (whole.result != HeadScanner::Result::complete) {
        return 0;
    }
    const std::string head_text(input.substr(0, whole.bytes));
    RequestHead request;
    if (!parse_request(head_text, {}, request)) {
        check_accepted(head_text, request);
        check_body(request.framing, request.length, input.substr(whole.bytes), step);
    }
    ResponseHead response;
    if (!parse_response(head_text, {}, data[0] % 2 == 0, response)) {
        require(response.status >= 100 && response.status <= 999);
        require(response.framing != Framing::chunked || response.minor_version == 1);
    }
    return 0;
}
