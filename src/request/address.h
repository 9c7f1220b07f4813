// Who is calling, by network address: RFC 7239 (`Forwarded`) and X-Forwarded-For read from the
// right through trusted hops only, then cut to what one caller is delegated.
//
// Pure; thread rule: const objects may be shared. Nothing allocates after the rules are made.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "request/header.h"

namespace ration {

// An IPv4 or IPv6 address; IPv4-mapped and NAT64 (64:ff9b::/96) spellings are unwrapped to IPv4.
struct IpAddress {
    std::array<std::uint8_t, 16> bytes{};  // IPv4 in the first four
    bool v4 = false;

    // nullopt for anything that is not exactly one address (short forms, leading zeros, hex, ports
    // and brackets are refused); an IPv6 zone id is dropped.
    [[nodiscard]] static std::optional<IpAddress> parse(std::string_view text);
    friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

struct Cidr {
    IpAddress network;
    std::uint8_t prefix = 0;

    // "10.0.0.0/8", "::1/128", "::ffff:10.0.0.0/104" (= 10.0.0.0/8), or a bare address.
    [[nodiscard]] static std::optional<Cidr> parse(std::string_view text);
    [[nodiscard]] bool contains(const IpAddress& address) const;
};

enum class ForwardingHeader : std::uint8_t { none, x_forwarded_for, forwarded, single };

struct AddressRules {
    ForwardingHeader header = ForwardingHeader::none;
    std::string header_name;  // for `single` (X-Real-IP, CF-Connecting-IP): one address, no list
    std::vector<Cidr> trusted;
    std::uint8_t ipv4_prefix = 32;
    std::uint8_t ipv6_prefix = 64;
    bool trust_unix = false;  // a Unix-socket peer counts as a trusted hop
};

inline constexpr std::size_t max_hops = 32;  // entries looked at before the walk stops

// The direct peer of the connection; no address for a Unix socket.
struct Peer {
    std::optional<IpAddress> address;
};

// A caller's address, cut to the rules' prefix: the key, and its text ("203.0.113.7",
// "2001:db8:1:2::/64"; "unix" when there is none).
struct CallerAddress {
    IpAddress address;   // cut
    std::uint8_t prefix = 0;
    bool known = false;  // false: a Unix-socket peer without a forwarding header

    // Writes the text into `out` and returns the used part; 64 bytes are always enough.
    [[nodiscard]] std::string_view text(std::span<char, 64> out) const;
};

// Never fails: an unreadable header ends at the last verified hop.
[[nodiscard]] CallerAddress caller_address(const AddressRules& rules, const Peer& peer,
                                           std::span<const Header> headers);

}  // namespace ration
