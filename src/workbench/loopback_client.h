// The client of a gateway under test: one request at a time over a kept-alive loopback connection.
//
// Thread rule: one thread. Errors: Unavailable with what the socket said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "net/fd.h"
#include "workbench/message.h"
#include "workbench/wire_reader.h"

namespace ration {

class LoopbackClient {
public:
    // Speaks to 127.0.0.1:`port`.
    explicit LoopbackClient(std::uint16_t port) : port_(port) {}

    // Sends the request from 127.0.0.1, with the client's own Host and Content-Length, and reads
    // the whole answer.
    [[nodiscard]] absl::StatusOr<WireMessage> ask(const ServiceRequest& request);

    // The next request opens a new connection.
    void reconnect();

private:
    [[nodiscard]] absl::Status connect();

    std::uint16_t port_;
    net::Fd fd_;
    std::optional<WireReader> reader_;
};

}  // namespace ration
