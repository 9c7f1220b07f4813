// Who is calling, by network address: RFC 7239 (`Forwarded`) and X-Forwarded-For read from the
// right through trusted hops only, then cut to what one caller is delegated.
//
// Pure; thread rule: const objects may be shared. Nothing allocates after the rules are made.
//
//   AddressRules rules{.header = ForwardingHeader::x_forwarded_for,
//                      .trusted = {*Cidr::parse("10.0.0.0/8")}};
//   std::array<char, 64> buffer;
//   caller_address(rules, peer, headers).text(buffer);  // "203.0.113.7", "2001:db8:1:2::/64"
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
    // The same for an address in network byte order; mapped and NAT64 forms are unwrapped.
    [[nodiscard]] static IpAddress from_v4(std::span<const std::uint8_t, 4> bytes);
    [[nodiscard]] static IpAddress from_v6(std::span<const std::uint8_t, 16> bytes);
    // The address with all but the first `prefix` bits cleared.
    [[nodiscard]] IpAddress cut(std::uint8_t prefix) const;
    // "203.0.113.7", or RFC 5952 text; 48 bytes are always enough.
    [[nodiscard]] std::string_view text(std::span<char, 48> out) const;
    friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

struct Cidr {
    IpAddress network;
    std::uint8_t prefix = 0;

    // "10.0.0.0/8", "::1/128", "::ffff:10.0.0.0/104" (= 10.0.0.0/8), or a bare address. Bits behind
    // the prefix are cleared. A mapped or NAT64 address with a prefix below 96 is refused: it would
    // be neither an IPv4 nor an IPv6 network.
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

inline constexpr std::size_t max_hops = 32;       // entries looked at before the walk stops
inline constexpr std::size_t max_trusted = 1024;  // networks; longer lists are refused at load

// The direct peer of the connection; no address for a Unix socket.
struct Peer {
    std::optional<IpAddress> address;
};

// A caller's address, cut to the rules' prefix: the key, and its text ("203.0.113.7",
// "2001:db8:1:2::/64"; "unix" when there is none). A whole address is written without its prefix.
struct CallerAddress {
    IpAddress address;  // cut
    std::uint8_t prefix = 0;
    bool known = false;  // false: a Unix-socket peer without a forwarding header

    // Writes the text into `out` and returns the used part; 64 bytes are always enough.
    [[nodiscard]] std::string_view text(std::span<char, 64> out) const;
};

// Never fails: an unreadable header ends at the last verified hop. Field lines are read one by one,
// the last (nearest) first, so that an open quote in a line that a client sent swallows nothing of
// what a proxy added. `single`: the field must be there once and hold one address.
[[nodiscard]] CallerAddress caller_address(const AddressRules& rules, const Peer& peer,
                                           std::span<const Header> headers);

// The hop before the cut: for logs and blocks. nullopt where `caller_address` is not `known`.
[[nodiscard]] std::optional<IpAddress> caller_hop(const AddressRules& rules, const Peer& peer,
                                                  std::span<const Header> headers);

}  // namespace ration
