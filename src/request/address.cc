// Only what a trusted hop appended is evidence. The walk starts at the peer of the connection,
// whose address nobody can forge, and takes one step to the left for each hop that is trusted: that
// hop vouches for the entry before it. The first untrusted address is the caller, whatever it
// claims about others; where an entry cannot be read the walk ends at the hop that was verified
// last, and never steps over it.
#include "request/address.h"

#include <algorithm>
#include <charconv>

#include "request/forwarded.h"

namespace ration {
namespace {

bool is_trusted(const AddressRules& rules, const IpAddress& address) {
    return std::any_of(rules.trusted.begin(), rules.trusted.end(),
                       [&address](const Cidr& cidr) { return cidr.contains(address); });
}

// IPv4, IPv4:port, bare IPv6, [IPv6], [IPv6]:port. "2001:db8::1:443" is an address.
std::optional<IpAddress> parse_member(std::string_view member) {
    if (member.starts_with('[')) {
        const std::size_t close = member.find(']');
        const std::string_view inside = member.substr(1, close - 1);
        if (close == std::string_view::npos || inside.find(':') == std::string_view::npos) {
            return std::nullopt;
        }
        const std::string_view after = member.substr(close + 1);
        if (!after.empty() && (after.front() != ':' || !is_port(after.substr(1)))) {
            return std::nullopt;
        }
        return IpAddress::parse(inside);
    }
    const std::size_t colon = member.find(':');
    if (colon != std::string_view::npos && colon == member.rfind(':')) {
        if (!is_port(member.substr(colon + 1))) {
            return std::nullopt;
        }
        member = member.substr(0, colon);
    }
    return IpAddress::parse(member);
}

// From the peer to the left, one hop at a time.
class Walk {
public:
    Walk(const AddressRules& rules, const Peer& peer) : rules_(rules), verified_(peer.address) {
        ended_ = peer.address ? !is_trusted(rules, *peer.address) : !rules.trust_unix;
    }

    [[nodiscard]] bool ended() const { return ended_ || hops_ == max_hops; }
    void end() { ended_ = true; }

    // The next entry; nullopt: it is unreadable.
    void step(const std::optional<IpAddress>& entry) {
        ++hops_;
        if (entry) {
            verified_ = entry;
        }
        ended_ = !entry || !is_trusted(rules_, *entry);
    }

    [[nodiscard]] const std::optional<IpAddress>& verified() const { return verified_; }

private:
    const AddressRules& rules_;
    std::optional<IpAddress> verified_;
    std::size_t hops_ = 0;
    bool ended_ = false;
};

void walk_x_forwarded_for(Walk& walk, std::string_view line) {
    while (!walk.ended()) {
        const std::size_t comma = line.rfind(',');
        const std::string_view member =
            without_blanks(comma == std::string_view::npos ? line : line.substr(comma + 1));
        if (!member.empty()) {
            walk.step(parse_member(member));
        }
        if (comma == std::string_view::npos) {
            return;
        }
        line = line.substr(0, comma);
    }
}

void walk_forwarded(Walk& walk, std::string_view text) {
    const auto line = parse_forwarded(text);
    if (!line) {
        walk.end();
        return;
    }
    for (std::size_t i = 0; i < line->count && !walk.ended(); ++i) {
        walk.step(line->hops[i]);
    }
}

void walk_single(Walk& walk, std::string_view name, std::span<const Header> headers) {
    const Header* field = nullptr;
    for (const Header& header : headers) {
        if (equal_ignoring_case(header.name, name)) {
            if (field != nullptr) {
                return;  // two fields name two callers
            }
            field = &header;
        }
    }
    if (field != nullptr) {
        walk.step(parse_member(without_blanks(field->value)));
    }
}

}  // namespace

std::optional<IpAddress> caller_hop(const AddressRules& rules, const Peer& peer,
                                    std::span<const Header> headers) {
    Walk walk(rules, peer);
    if (rules.header == ForwardingHeader::none || walk.ended()) {
        return walk.verified();
    }
    if (rules.header == ForwardingHeader::single) {
        walk_single(walk, rules.header_name, headers);
        return walk.verified();
    }
    const bool forwarded = rules.header == ForwardingHeader::forwarded;
    const std::string_view name = forwarded ? "Forwarded" : "X-Forwarded-For";
    for (auto header = headers.rbegin(); header != headers.rend() && !walk.ended(); ++header) {
        if (!equal_ignoring_case(header->name, name)) {
            continue;
        }
        if (forwarded) {
            walk_forwarded(walk, header->value);
        } else {
            walk_x_forwarded_for(walk, header->value);
        }
    }
    return walk.verified();
}

CallerAddress caller_address(const AddressRules& rules, const Peer& peer,
                             std::span<const Header> headers) {
    const std::optional<IpAddress> hop = caller_hop(rules, peer, headers);
    if (!hop) {
        return {};
    }
    CallerAddress caller;
    caller.known = true;
    caller.prefix = hop->v4 ? rules.ipv4_prefix : rules.ipv6_prefix;
    caller.address = hop->cut(caller.prefix);
    return caller;
}

std::string_view CallerAddress::text(std::span<char, 64> out) const {
    if (!known) {
        constexpr std::string_view unix_peer = "unix";
        std::copy(unix_peer.begin(), unix_peer.end(), out.begin());
        return {out.data(), unix_peer.size()};
    }
    const std::string_view whole = address.text(out.first<48>());
    if (prefix >= (address.v4 ? 32 : 128)) {
        return whole;
    }
    char* at = out.data() + whole.size();
    *at++ = '/';
    at = std::to_chars(at, out.data() + out.size(), unsigned{prefix}).ptr;
    return {out.data(), static_cast<std::size_t>(at - out.data())};
}

}  // namespace ration
