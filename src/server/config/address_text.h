// "127.0.0.1:8080", "[::1]:8443", "http://10.0.0.5:8090": where to listen and whom to ask.
//
// Pure. Errors: a reason for people, without the text's place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace ration {

struct Endpoint {
    std::string host;  // without brackets
    std::uint16_t port = 0;
};

// HOST:PORT, an IPv6 host in brackets; port 0 to 65535.
[[nodiscard]] absl::StatusOr<Endpoint> parse_endpoint(std::string_view text);

struct UpstreamUrl {
    Endpoint endpoint;
    bool tls = false;
};

// http://HOST[:PORT] or https://HOST[:PORT], ports 80 and 443 when left out. A path, a query or a
// user name is refused: requests go through with their own paths.
[[nodiscard]] absl::StatusOr<UpstreamUrl> parse_upstream_url(std::string_view text);

// True for 127.0.0.0/8, ::1, IPv4-mapped forms of them, and "localhost".
[[nodiscard]] bool is_loopback(std::string_view host);

// HOST:PORT with brackets where IPv6 needs them.
[[nodiscard]] std::string endpoint_text(std::string_view host, std::uint16_t port);

}  // namespace ration
