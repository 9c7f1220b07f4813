#include <array>

#include "absl/strings/ascii.h"
#include "base/text.h"
#include "policy/policy_reader.h"

namespace ration {
namespace {

// Networks wider than these are hardly one's own proxies.
constexpr int widest_v4 = 8;
constexpr int widest_v6 = 16;

// Any header may hold the one address, so a slip in a known name would pass, and nobody's proxy
// sets that.
std::string_view header_slip(std::string_view name) {
    constexpr std::array<std::string_view, 4> known{"X-Forwarded-For", "Forwarded", "X-Real-IP",
                                                    "none"};
    for (const std::string_view one : known) {
        const std::string lower = absl::AsciiStrToLower(std::string(one));
        if (!equal_ignoring_case(name, one) && !slip_of(name, {lower}).empty()) {
            return one;
        }
    }
    return {};
}

}  // namespace

void PolicyReader::read_address(const YamlNode& node) {
    if (!reader_.mapping(node, address_keys)) {
        return;
    }
    AddressRules& rules = policy_.address;
    if (const YamlNode* header = node.find("header")) {
        if (const auto name = reader_.text(*header, "the forwarding header")) {
            if (*name == "none") {
                rules.header = ForwardingHeader::none;
            } else if (equal_ignoring_case(*name, "X-Forwarded-For")) {
                rules.header = ForwardingHeader::x_forwarded_for;
            } else if (equal_ignoring_case(*name, "Forwarded")) {
                rules.header = ForwardingHeader::forwarded;
            } else if (const auto meant = header_slip(*name); !meant.empty()) {
                reader_.error(header->at, cat("unknown forwarding header '", *name,
                                              "'; did you mean '", meant, "'?"));
            } else if (is_short_token(*name)) {
                rules.header = ForwardingHeader::single;
                rules.header_name = *name;
            } else {
                reader_.error(header->at, "not a header name");
            }
        }
    }
    if (const YamlNode* trusted = node.find("trusted")) {
        read_trusted(*trusted);
    }
    read_prefix(node.find("ipv6_prefix"), "ipv6_prefix", rules.ipv6_prefix);
    read_prefix(node.find("ipv4_prefix"), "ipv4_prefix", rules.ipv4_prefix);
    if (const YamlNode* trust = node.find("trust_unix")) {
        rules.trust_unix = reader_.boolean(*trust, "trust_unix").value_or(false);
    }
    check_address(node);
}

void PolicyReader::read_trusted(const YamlNode& node) {
    const auto networks = reader_.words(node, "a network");
    if (networks.size() > max_list_items) {
        reader_.error(node.at, cat("more than ", max_list_items, " networks"));
        return;
    }
    for (const YamlNode* network : networks) {
        const auto cidr = Cidr::parse(network->scalar);
        if (!cidr.has_value()) {
            reader_.error(network->at, "not a network: 10.0.0.0/8, ::1/128, or one address");
            continue;
        }
        check_trust(network->at, *cidr);
        policy_.address.trusted.push_back(*cidr);
    }
}

void PolicyReader::check_trust(Position at, const Cidr& network) {
    const int widest = network.network.v4 ? widest_v4 : widest_v6;
    if (network.prefix == 0) {
        reader_.warning(at, "every peer is trusted: anybody can claim any address in the header");
    } else if (network.prefix < widest) {
        reader_.warning(at, cat("wider than a network of proxies (/", widest,
                                "): whoever calls from inside it chooses the address that counts"));
    }
}

void PolicyReader::read_prefix(const YamlNode* node, std::string_view what, std::uint8_t& prefix) {
    if (node == nullptr) {
        return;
    }
    const std::uint64_t high = what == "ipv6_prefix" ? 128 : 32;
    if (const auto bits = reader_.whole(*node, what, 1, high)) {
        prefix = static_cast<std::uint8_t>(*bits);
    }
}

void PolicyReader::check_address(const YamlNode& node) {
    const AddressRules& rules = policy_.address;
    const bool trusts = !rules.trusted.empty() || rules.trust_unix;
    const YamlNode* header = node.find("header");
    if (rules.header == ForwardingHeader::none && trusts) {
        reader_.warning(node.at, "trusted peers have no effect without a forwarding header");
    }
    if (rules.header != ForwardingHeader::none && !trusts) {
        reader_.warning(header->at, "the header is never obeyed: no peer is trusted to set it");
    }
}

}  // namespace ration
