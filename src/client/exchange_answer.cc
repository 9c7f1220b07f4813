// What libcurl calls while a transfer runs: the answer comes in, the body goes out.
#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "client/access.h"
#include "client/exchange.h"
#include "client/hints.h"

namespace ration::client {
namespace {

constexpr std::size_t usual_headers = 16;
constexpr std::size_t most_skipped = 64 * 1024;  // of a redirect's body, to keep its connection

// The caller's functions are called out of libcurl, which no exception may cross.
template <typename Value, typename Function>
Value guarded(Value otherwise, Function function) {
    try {
        return function();
    } catch (...) {
        return otherwise;
    }
}

// "HTTP/1.1 429 Too Many Requests": 0 when it is no status line.
int status_of(std::string_view line) {
    const std::size_t blank = line.find(' ');
    if (!line.starts_with("HTTP/") || blank == std::string_view::npos || line.size() < blank + 4) {
        return 0;
    }
    int status = 0;
    std::from_chars(line.data() + blank + 1, line.data() + blank + 4, status);
    return status;
}

}  // namespace

std::size_t Exchange::on_header(char* data, std::size_t size, std::size_t count, void* self) {
    Exchange& exchange = *static_cast<Exchange*>(self);
    Answer& answer = exchange.answer_;
    std::string_view line(data, size * count);
    answer.header_bytes += line.size();
    if (answer.header_bytes > max_answer_header_bytes && exchange.refused()) {
        return 0;  // in a trailer: why it was refused is known well enough
    }
    if (answer.header_bytes > max_answer_header_bytes) {
        exchange.fail(AttemptError::protocol_error, "the answer's header is too long");
        return 0;
    }
    while (line.ends_with('\n') || line.ends_with('\r')) {
        line.remove_suffix(1);
    }
    if (const int status = status_of(line); status != 0 && !answer.head_complete) {
        exchange.announcement_refused_ = exchange.announcement_refused_ || status == 417;
        answer.status = status;  // an informational answer's fields are not the final one's
        answer.headers.clear();
        answer.headers.reserve(usual_headers);
    } else if (line.empty()) {
        if (answer.status >= 200 && !answer.head_complete) {
            answer.head_complete = true;
            exchange.head_ended();
        } else if (answer.status == 101) {
            // What follows is another protocol's (RFC 9110 7.8), and no answer will ever come.
            exchange.fail(AttemptError::protocol_error, "the server switched protocols (101)");
            return 0;
        }
    } else if (const std::size_t colon = line.find(':');
               colon != std::string_view::npos && !answer.head_complete) {
        answer.headers.emplace_back(line.substr(0, colon), trim_blanks(line.substr(colon + 1)));
    }
    return size * count;
}

void Exchange::head_ended() {
    if (answer_.status >= 400) {
        until_ = std::min(until_, setup_.clock->now().mono + setup_.options->error_body_time);
        return;
    }
    if (!is_redirect(answer_.status)) {
        return;
    }
    const std::string* location = find_header(answer_.headers, "location");
    Redirection redirection = decide_redirect(
        *setup_.policy,
        {method_, answer_.status, url_,
         location ? std::optional<std::string_view>(*location) : std::nullopt, followed_});
    const bool body_gone = body_kind_ == BodyKind::stream_once_consumed && !drop_body_;
    if (redirection.stop) {
        redirect_stop_ = redirection.stop;
    } else if (body_gone && !redirection.drop_body) {
        redirect_stop_ = StopReason::body_not_replayable;
    } else {
        redirection_ = std::move(redirection);
    }
}

std::size_t Exchange::on_data(char* data, std::size_t size, std::size_t count, void* self) {
    return static_cast<Exchange*>(self)->take_body({data, size * count}) ? size * count : 0;
}

bool Exchange::take_body(std::string_view bytes) {
    if (redirection_) {
        answer_.skipped += bytes.size();
        return answer_.skipped <= most_skipped;
    }
    const bool refused = answer_.status >= 400;
    if (!refused && setup_.request->on_body) {
        delivered_ = true;
        if (!guarded(false, [&] { return setup_.request->on_body(bytes); })) {
            stopped_by_reader_ = true;
            fail(AttemptError::bad_request, "the answer's reader wants no more");
            return false;
        }
        return true;
    }
    const std::size_t most =
        refused ? setup_.options->max_error_bytes : setup_.options->max_answer_bytes;
    if (answer_.body.size() + bytes.size() > most) {
        if (!refused) {
            fail(AttemptError::protocol_error, "the answer is larger than allowed");
        }
        answer_.body.append(bytes.substr(0, most - answer_.body.size()));
        return false;
    }
    answer_.body.append(bytes);
    return true;
}

std::size_t Exchange::on_read(char* data, std::size_t size, std::size_t count, void* self) {
    Exchange& exchange = *static_cast<Exchange*>(self);
    if (!BodyAccess::is_read(exchange.setup_.request->body)) {
        return 0;
    }
    exchange.body_touched_ = true;
    BodyAccess::begin(exchange.setup_.request->body);
    if (exchange.body_kind_ == BodyKind::stream_once) {
        exchange.body_kind_ = BodyKind::stream_once_consumed;
    }
    const std::ptrdiff_t got = exchange.read_body(std::span<char>(data, size * count));
    if (got < 0 || static_cast<std::size_t>(got) > size * count) {
        exchange.fail(AttemptError::bad_request, "the body could not be read");
        return CURL_READFUNC_ABORT;
    }
    return exchange.as_announced(static_cast<std::size_t>(got)) ? static_cast<std::size_t>(got)
                                                                : CURL_READFUNC_ABORT;
}

// -1 when it cannot be read.
std::ptrdiff_t Exchange::read_body(std::span<char> into) const {
    const RequestBody& body = setup_.request->body;
    return guarded(std::ptrdiff_t{-1}, [&] {
        return BodyAccess::read_at(body) ? BodyAccess::read_at(body)(into, body_read_)
                                         : BodyAccess::read(body)(into);
    });
}

// A shorter body would leave the server waiting, a longer one would be cut, and neither be known.
bool Exchange::as_announced(std::size_t got) {
    const auto size = BodyAccess::size(setup_.request->body);
    body_read_ += got;
    if (!size || (got > 0 && body_read_ < *size)) {
        return true;
    }
    char more = 0;  // libcurl asks no more when it has all
    if (body_read_ == *size) {
        body_read_ += read_body(std::span<char>(&more, 1)) > 0 ? 1U : 0U;
    }
    if (body_read_ == *size) {
        return true;
    }
    fail(AttemptError::bad_request, cat("the body is ", body_read_ < *size ? "shorter" : "longer",
                                        " than the ", *size, " bytes that were announced"));
    return false;
}

int Exchange::on_seek(void* self, curl_off_t offset, int origin) {
    Exchange& exchange = *static_cast<Exchange*>(self);
    const auto& rewind = BodyAccess::rewind(exchange.setup_.request->body);
    const bool to_the_beginning = offset == 0 && origin == SEEK_SET;
    const bool by_offset = static_cast<bool>(BodyAccess::read_at(exchange.setup_.request->body));
    if (!to_the_beginning || (!by_offset && (!rewind || !guarded(false, rewind)))) {
        return CURL_SEEKFUNC_FAIL;
    }
    exchange.body_read_ = 0;
    return CURL_SEEKFUNC_OK;
}

// Before libcurl writes the request. A second time on the same transfer means that it wants to
// repeat it: because a kept connection turned out dead after the request went into it, or a stream
// was refused. When, and how often, is not libcurl's to say; but a body whose announcement was
// refused is asked for without one, and nothing of it was sent (RFC 9110 15.5.18).
// NOLINTNEXTLINE(readability-function-size): libcurl's signature
int Exchange::on_request(void* self, char* /*remote*/, char* /*local*/, int /*remote_port*/,
                         int /*local_port*/) {
    Exchange& exchange = *static_cast<Exchange*>(self);
    if (exchange.requests_begun_++ > 0 && exchange.answer_.status != 417) {
        exchange.fail(AttemptError::connection_lost, "the connection was lost before the answer");
        return CURL_PREREQFUNC_ABORT;
    }
    exchange.answer_ = {};
    exchange.sent_ = true;
    return CURL_PREREQFUNC_OK;
}

}  // namespace ration::client
