// HTTP/1.1 messages off a blocking socket, for the two ends that a test run plays itself: the
// client and the upstream. It reads what the gateway under test writes, so it trusts framing but
// bounds sizes and waiting.
//
// Thread rule: one thread. Ownership: the socket is the caller's.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "workbench/message.h"

namespace ration {

inline constexpr std::size_t max_wire_message_bytes = 64 << 20;
inline constexpr int wire_patience_seconds = 20;  // for the next bytes, in real time

struct WireMessage {
    std::string start_line;
    Fields headers;
    std::string body;

    [[nodiscard]] const std::string* find(std::string_view name) const;
};

// Gives up reading and writing on `fd` after wire_patience_seconds without progress.
void set_wire_patience(int fd);

// Writes all of it; Unavailable with the system's reason.
[[nodiscard]] absl::Status write_all(int fd, std::string_view bytes);

class WireReader {
public:
    explicit WireReader(int fd) : fd_(fd) {}

    // The next message. `bodiless`: an answer to HEAD, whatever its length says. Unavailable when
    // the other side closed or fell silent before the message was complete.
    [[nodiscard]] absl::StatusOr<WireMessage> next(bool bodiless);

private:
    [[nodiscard]] absl::Status more();
    [[nodiscard]] absl::StatusOr<std::string> line();
    [[nodiscard]] absl::StatusOr<std::string> bytes(std::size_t count);
    [[nodiscard]] absl::StatusOr<std::string> chunks();
    [[nodiscard]] absl::StatusOr<std::string> body(const WireMessage& message);

    int fd_;
    std::string buffer_;
};

}  // namespace ration
