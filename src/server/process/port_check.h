// Whether somebody already listens on an address.
//
// The listeners share their port among threads (SO_REUSEPORT), so the system would let a second
// process of the same user join in without a word and take half of the connections.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace ration {

// AlreadyExists naming address and port when they are taken; OK for port 0 and Unix paths.
[[nodiscard]] absl::Status check_port_free(const std::string& address, std::uint16_t port);

}  // namespace ration
