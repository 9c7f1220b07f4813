#include "workbench/wire_reader.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "base/errno_status.h"
#include "base/text.h"
#include "request/header.h"
#include "server/http/fields.h"

namespace ration {

namespace {

absl::Status trouble(std::string_view what) {
    return absl::UnavailableError(cat(what, ": ", errno_text(errno)));
}

// A size in decimal (Content-Length) or hexadecimal (chunks); the whole text but chunk extensions.
absl::StatusOr<std::size_t> size_of(std::string_view text, int base) {
    std::size_t size = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, size, base);
    if (error != std::errc() || (stop != end && *stop != ';') || size > max_wire_message_bytes) {
        return absl::UnavailableError(cat("not a size within bounds: ", text.substr(0, 40)));
    }
    return size;
}

}  // namespace

const std::string* WireMessage::find(std::string_view name) const {
    for (const auto& [field, value] : headers) {
        if (equal_ignoring_case(field, name)) {
            return &value;
        }
    }
    return nullptr;
}

void set_wire_patience(int fd) {
    const timeval patience{.tv_sec = wire_patience_seconds, .tv_usec = 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

absl::Status write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return trouble("cannot write");
        }
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return absl::OkStatus();
}

absl::Status WireReader::more() {
    std::array<char, 16384> chunk;
    ssize_t got = 0;
    do {
        got = ::recv(fd_, chunk.data(), chunk.size(), 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return trouble("cannot read");
    }
    if (got == 0) {
        return absl::UnavailableError("the connection was closed");
    }
    buffer_.append(chunk.data(), static_cast<std::size_t>(got));
    return buffer_.size() > max_wire_message_bytes
               ? absl::UnavailableError("the message is too large")
               : absl::OkStatus();
}

absl::StatusOr<std::string> WireReader::line() {
    std::size_t end = buffer_.find("\r\n");
    while (end == std::string::npos) {
        if (const absl::Status got = more(); !got.ok()) {
            return got;
        }
        end = buffer_.find("\r\n");
    }
    std::string text = buffer_.substr(0, end);
    buffer_.erase(0, end + 2);
    return text;
}

absl::StatusOr<std::string> WireReader::bytes(std::size_t count) {
    while (buffer_.size() < count) {
        if (const absl::Status got = more(); !got.ok()) {
            return got;
        }
    }
    std::string text = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return text;
}

absl::StatusOr<std::string> WireReader::chunks() {
    std::string whole;
    for (;;) {
        const auto head = line();
        const auto size = head.ok() ? size_of(*head, 16) : head.status();
        if (!size.ok()) {
            return size.status();
        }
        auto part = bytes(*size);
        const auto end = part.ok() ? line() : part.status();
        if (!end.ok()) {
            return end.status();
        }
        if (*size == 0) {
            return whole;
        }
        whole += *part;
    }
}

absl::StatusOr<std::string> WireReader::body(const WireMessage& message) {
    const std::string* coding = message.find("Transfer-Encoding");
    if (coding != nullptr && http::list_has(*coding, "chunked")) {
        return chunks();
    }
    const std::string* length = message.find("Content-Length");
    if (length == nullptr) {
        return std::string();
    }
    const auto size = size_of(*length, 10);
    return size.ok() ? bytes(*size) : size.status();
}

absl::StatusOr<WireMessage> WireReader::next(bool bodiless) {
    WireMessage message;
    auto start = line();
    if (!start.ok()) {
        return start.status();
    }
    message.start_line = *std::move(start);
    for (;;) {
        const auto field = line();
        if (!field.ok()) {
            return field.status();
        }
        if (field->empty()) {
            break;
        }
        const std::size_t colon = field->find(':');
        if (colon == std::string::npos) {
            return absl::UnavailableError(cat("not a header field: ", field->substr(0, 60)));
        }
        message.headers.emplace_back(field->substr(0, colon),
                                     http::trimmed(std::string_view(*field).substr(colon + 1)));
    }
    if (!bodiless) {
        auto content = body(message);
        if (!content.ok()) {
            return content.status();
        }
        message.body = *std::move(content);
    }
    return message;
}

}  // namespace ration
