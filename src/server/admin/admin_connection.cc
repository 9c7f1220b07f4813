// A request is read to its end before it is answered, and its answer is written to the end before
// the next is read, so a connection is always in exactly one phase and holds at most one request
// and one answer. Whatever can't be parsed gets 400 and the connection ends: what follows garbage
// is garbage.
#include "server/admin/admin_connection.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "wire/decimal.h"

namespace ration {

namespace {

constexpr std::size_t read_bytes = 4096;
constexpr Nanos linger = std::chrono::seconds(1);  // for the other side to close, too

// The value of Authorization; empty when it is absent or stands there twice.
std::string_view authorization(const http::RequestHead& head) {
    std::string_view value;
    int count = 0;
    for (const Header& field : head.fields.fields) {
        if (equal_ignoring_case(field.name, "Authorization")) {
            value = field.value;
            ++count;
        }
    }
    return count == 1 ? value : std::string_view();
}

}  // namespace

void AdminConnections::close(AdminConnection& connection) {
    const auto found = open.find(&connection);
    if (found != open.end()) {
        std::unique_ptr<AdminConnection> owned = std::move(found->second);
        open.erase(found);
        loop.retire(std::move(owned));
    }
}

AdminConnection::AdminConnection(AdminConnections& all, net::Fd fd)
    : all_(all),
      stream_(std::move(fd)),
      deadline_(
          [](void* self) {
              auto* connection = static_cast<AdminConnection*>(self);
              connection->all_.close(*connection);
          },
          this) {}

bool AdminConnection::start() {
    expect(all_.options.idle_timeout);
    return all_.loop.add(stream_.fd(), *this).ok();
}

void AdminConnection::expect(Nanos within) {
    all_.loop.timers().arm(deadline_, all_.loop.now().mono + within);
}

void AdminConnection::on_ready(std::uint32_t /*events*/) {
    blocked_ = false;
    while (step()) {
    }
}

// True when another step may get further without waiting.
bool AdminConnection::step() {
    switch (phase_) {
        case Phase::head:
            return head() || read_more();
        case Phase::body:
            return body() || read_more();
        case Phase::answer:
            return write_out();
        case Phase::closing:
            return swallow();
    }
    return false;
}

bool AdminConnection::read_more() {
    if (blocked_) {
        return false;
    }
    std::array<char, read_bytes> bytes;
    const net::IoResult got = stream_.read(bytes);
    if (got.status == net::Io::would_block) {
        blocked_ = true;
        return false;
    }
    if (got.status != net::Io::done) {
        all_.close(*this);
        return false;
    }
    if (in_.empty() && phase_ == Phase::head) {
        expect(all_.options.request_timeout);
    }
    in_.append(bytes.data(), got.bytes);
    return true;
}

bool AdminConnection::head() {
    const auto result = scanner_.scan(in_);
    if (result == http::HeadScanner::Result::more) {
        if (in_.size() > all_.options.max_header_bytes) {
            refuse_large_head();
            return true;
        }
        return false;
    }
    if (result != http::HeadScanner::Result::complete) {
        refuse(400, "The request can not be read.");
        return true;
    }
    const std::size_t size = scanner_.head_bytes();
    if (size > all_.options.max_header_bytes) {
        refuse_large_head();
        return true;
    }
    head_ = in_.substr(0, size);
    in_.erase(0, size);
    scanner_.reset();
    const http::HeadLimits limits{.bytes = all_.options.max_header_bytes};
    if (const auto problem = http::parse_request(head_, limits, request_)) {
        refuse(problem.too_large ? 431 : 400, problem.reason);
        return true;
    }
    if (request_.length > all_.options.max_body_bytes) {
        refuse(413, "The body is too large.");
        return true;
    }
    keep_alive_ = request_.keep_alive;
    body_.start(request_.framing, request_.length);
    content_.clear();
    phase_ = Phase::body;
    return true;
}

bool AdminConnection::body() {
    for (;;) {
        if (body_.done()) {
            answer_now();
            return true;
        }
        const auto step = body_.next(in_);
        content_.append(step.content);
        in_.erase(0, step.used);
        if (step.state == http::BodyDecoder::State::error) {
            refuse(400, "The body can not be read.");
            return true;
        }
        if (body_.content_bytes() > all_.options.max_body_bytes) {
            refuse(413, "The body is too large.");
            return true;
        }
        if (step.state == http::BodyDecoder::State::more) {
            return false;
        }
    }
}

void AdminConnection::answer_now() {
    const std::string_view target = request_.target;
    const std::size_t path_end = std::min(target.find('?'), target.size());
    const AdminResponse response =
        all_.handler({.method = request_.method,
                      .path = target.substr(0, path_end),
                      .authorization = authorization(request_),
                      .query = target.substr(std::min(path_end + 1, target.size())),
                      .body = content_});
    put(response, request_.method != "HEAD");
}

void AdminConnection::refuse_large_head() {
    if (http::target_too_long(in_, all_.options.max_header_bytes)) {
        refuse(414, "The request target is too long.");
    } else {
        refuse(431, "The header section is too large.");
    }
}

void AdminConnection::refuse(int status, std::string_view message) {
    keep_alive_ = false;
    put(admin_error(status, status == 400 ? "bad_request" : "too_large", message), true);
}

void AdminConnection::put(const AdminResponse& response, bool with_body) {
    std::array<char, max_decimal_bytes> date{};
    out_ = cat("HTTP/1.1 ", response.status, " ", http::reason_phrase(response.status),
               "\r\nDate: ", http_date(all_.loop.now().wall, date),
               "\r\nContent-Type: ", response.content_type,
               "\r\nContent-Length: ", response.body.size(), "\r\nCache-Control: no-store\r\n");
    for (const auto& [name, value] : response.headers) {
        out_ += cat(name, ": ", value, "\r\n");
    }
    out_ += keep_alive_ ? "\r\n" : "Connection: close\r\n\r\n";
    if (with_body) {
        out_ += response.body;
    }
    out_at_ = 0;
    phase_ = Phase::answer;
    expect(all_.options.request_timeout);
}

bool AdminConnection::write_out() {
    while (out_at_ < out_.size()) {
        const net::IoResult put = stream_.write(std::string_view(out_).substr(out_at_));
        if (put.status == net::Io::would_block) {
            return false;
        }
        if (put.status != net::Io::done) {
            all_.close(*this);
            return false;
        }
        out_at_ += put.bytes;
    }
    if (!keep_alive_) {
        stream_.finish_writing();
        phase_ = Phase::closing;
        expect(linger);
        return true;
    }
    phase_ = Phase::head;
    expect(in_.empty() ? all_.options.idle_timeout : all_.options.request_timeout);
    return true;
}

// Closing while bytes are unread would reset the connection and could take the answer with it.
bool AdminConnection::swallow() {
    std::array<char, read_bytes> bytes;
    const net::IoResult got = stream_.read(bytes);
    if (got.status == net::Io::closed || got.status == net::Io::failed) {
        all_.close(*this);
        return false;
    }
    return got.status == net::Io::done;
}

}  // namespace ration
