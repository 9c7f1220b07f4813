#include "server/config/address_text.h"

#include <charconv>
#include <optional>

#include "absl/strings/ascii.h"
#include "base/text.h"
#include "request/address.h"

namespace ration {

namespace {

constexpr std::size_t max_host_bytes = 253;  // RFC 1035 2.3.4, as text

std::optional<std::uint16_t> parse_port(std::string_view text) {
    std::uint16_t port = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, port);
    return error == std::errc() && rest == end && !text.empty() ? std::optional(port)
                                                                : std::nullopt;
}

bool is_host(std::string_view text) {
    if (text.empty() || text.size() > max_host_bytes) {
        return false;
    }
    for (const char c : text) {
        if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' &&
            c != '_') {
            return false;
        }
    }
    return true;
}

absl::Status no_endpoint(std::string_view text) {
    return absl::InvalidArgumentError(
        cat("'", text, "' is not HOST:PORT ('127.0.0.1:8080', '[::1]:8080')"));
}

// Splits off the host; what follows it ("" or ":PORT") stays in `rest`.
std::optional<std::string> take_host(std::string_view& rest) {
    if (rest.starts_with("[")) {
        const std::size_t close = rest.find(']');
        if (close == std::string_view::npos) {
            return std::nullopt;
        }
        const std::string_view host = rest.substr(1, close - 1);
        rest.remove_prefix(close + 1);
        const auto address = IpAddress::parse(host);
        return address.has_value() && host.find(':') != std::string_view::npos
                   ? std::optional(std::string(host))
                   : std::nullopt;
    }
    const std::string_view host = rest.substr(0, rest.find(':'));
    rest.remove_prefix(host.size());
    return is_host(host) ? std::optional(std::string(host)) : std::nullopt;
}

}  // namespace

absl::StatusOr<Endpoint> parse_endpoint(std::string_view text) {
    std::string_view rest = text;
    const auto host = take_host(rest);
    if (!host.has_value() || !rest.starts_with(":")) {
        return no_endpoint(text);
    }
    const auto port = parse_port(rest.substr(1));
    if (!port.has_value()) {
        return no_endpoint(text);
    }
    return Endpoint{.host = *host, .port = *port};
}

absl::StatusOr<UpstreamUrl> parse_upstream_url(std::string_view text) {
    UpstreamUrl url;
    std::string_view rest = text;
    const std::size_t scheme = rest.find("://");
    if (scheme == std::string_view::npos ||
        (rest.substr(0, scheme) != "http" && rest.substr(0, scheme) != "https")) {
        return absl::InvalidArgumentError(
            cat("'", text, "' is not http://HOST:PORT or https://HOST:PORT"));
    }
    url.tls = scheme == 5;
    rest.remove_prefix(scheme + 3);
    if (rest.ends_with("/") && rest.find('/') == rest.size() - 1) {
        rest.remove_suffix(1);
    }
    if (rest.find_first_of("/?#@") != std::string_view::npos) {
        return absl::InvalidArgumentError(
            cat("'", text, "' has more than scheme, host and port; requests keep their own paths"));
    }
    const auto host = take_host(rest);
    const auto port = rest.empty() ? std::optional<std::uint16_t>(url.tls ? 443 : 80)
                                   : parse_port(rest.substr(1));
    if (!host.has_value() || !port.has_value() || *port == 0) {
        return absl::InvalidArgumentError(
            cat("'", text, "' is not http://HOST:PORT or https://HOST:PORT"));
    }
    url.endpoint = {.host = *host, .port = *port};
    return url;
}

bool is_loopback(std::string_view host) {
    if (equal_ignoring_case(host, "localhost")) {
        return true;
    }
    const auto address = IpAddress::parse(host);
    if (!address.has_value()) {
        return false;
    }
    static const auto v4 = Cidr::parse("127.0.0.0/8");
    static const auto v6 = Cidr::parse("::1/128");
    return v4->contains(*address) || v6->contains(*address);
}

std::string endpoint_text(std::string_view host, std::uint16_t port) {
    const bool v6 = host.find(':') != std::string_view::npos;
    return v6 ? cat("[", host, "]:", port) : cat(host, ":", port);
}

}  // namespace ration
