// Forwarding headers of any bytes. The input: one byte that picks the header, then field values,
// one a line. The peer is trusted, so all of it is read.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "request/address.h"

namespace {

using ration::Header;

void expect(bool holds) {
    if (!holds) {
        std::abort();
    }
}

std::vector<Header> fields(std::string_view text, std::string_view name) {
    std::vector<Header> headers;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        headers.push_back({name, text.substr(0, end)});
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return headers;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    if (text.empty()) {
        return 0;
    }
    ration::AddressRules rules;
    const std::string_view names[] = {"X-Forwarded-For", "Forwarded", "X-Real-IP"};
    const std::size_t which = static_cast<unsigned char>(text.front()) % 3;
    rules.header = which == 0   ? ration::ForwardingHeader::x_forwarded_for
                   : which == 1 ? ration::ForwardingHeader::forwarded
                                : ration::ForwardingHeader::single;
    rules.header_name = names[2];
    rules.trusted.push_back(*ration::Cidr::parse("10.0.0.0/8"));
    const std::vector<Header> headers = fields(text.substr(1), names[which]);

    const ration::Peer proxy{ration::IpAddress::parse("10.0.0.1")};
    const auto caller = ration::caller_address(rules, proxy, headers);
    expect(caller.known);
    // What is told of an address is read as the same address.
    const auto hop = ration::caller_hop(rules, proxy, headers);
    expect(hop.has_value());
    std::array<char, 48> buffer;
    expect(ration::IpAddress::parse(hop->text(buffer)) == hop);
    expect(hop->cut(caller.prefix) == caller.address);

    // Nothing in a header moves a peer that is not trusted.
    const ration::Peer stranger{ration::IpAddress::parse("203.0.113.7")};
    expect(ration::caller_hop(rules, stranger, headers) == stranger.address);

    const auto network = ration::Cidr::parse(text);
    expect(!network || network->contains(network->network));
    return 0;
}
