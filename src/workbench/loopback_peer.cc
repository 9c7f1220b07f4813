#include "workbench/loopback_peer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "request/header.h"
#include "workbench/forwarding.h"
#include "workbench/yaml_values.h"

namespace ration {

namespace {

bool is_trusted(const AddressRules& rules, const IpAddress& address) {
    return std::any_of(rules.trusted.begin(), rules.trusted.end(),
                       [&](const Cidr& network) { return network.contains(address); });
}

bool reads_forwarded_for(const AddressRules& rules) {
    static const IpAddress loopback = *IpAddress::parse("127.0.0.1");
    return rules.header == ForwardingHeader::x_forwarded_for && is_trusted(rules, loopback);
}

// The one address of all requests, when there is one.
std::optional<IpAddress> only_address(const TestCase& test) {
    std::optional<std::string> seen;
    for (const TestStep& step : test.steps) {
        if (step.kind != TestStep::Kind::request) {
            continue;
        }
        if (seen && *seen != step.request.address) {
            return std::nullopt;
        }
        seen = step.request.address;
    }
    return seen ? IpAddress::parse(*seen) : std::nullopt;
}

bool looks_at_the_address(const TestCase& test) {
    return std::any_of(test.steps.begin(), test.steps.end(), [](const TestStep& step) {
        return std::any_of(step.expect.values.begin(), step.expect.values.end(),
                           [](const ExpectedValue& value) {
                               return value.what == ExpectedValue::What::sent_header &&
                                      (equal_ignoring_case(value.name, "Ration-Address") ||
                                       equal_ignoring_case(value.name, "X-Forwarded-For"));
                           });
    });
}

bool any_address_will_do(const TestCase& test, const AddressRules& rules) {
    static const IpAddress loopback = *IpAddress::parse("127.0.0.1");
    const auto address = only_address(test);
    return address && !looks_at_the_address(test) &&
           is_trusted(rules, *address) == is_trusted(rules, loopback);
}

bool can_stand_in(const TestCase& test, const Policy& policy) {
    return reads_forwarded_for(policy.address) || any_address_will_do(test, policy.address);
}

}  // namespace

std::string why_not_over_loopback(const TestCase& test) {
    bool peers = can_stand_in(test, *test.rules.policy);
    for (const TestStep& step : test.steps) {
        if (step.kind == TestStep::Kind::request && step.request.upstream.takes != Nanos(0)) {
            return "its upstream takes time that passes on the virtual clock only";
        }
        if (step.kind == TestStep::Kind::reload) {
            peers = peers && can_stand_in(test, *step.rules.policy);
        }
    }
    return peers ? ""
                 : "its peers are not 127.0.0.1, and the policy does not read X-Forwarded-For "
                   "from there";
}

void stand_in_for_peer(const Policy& policy, ServiceRequest& request) {
    if (!reads_forwarded_for(policy.address) || !request.peer.address) {
        return;
    }
    std::string list;
    for (const auto& [name, value] : request.headers) {
        if (equal_ignoring_case(name, "X-Forwarded-For")) {
            list += cat(value, ", ");
        }
    }
    remove_field(request.headers, "X-Forwarded-For");
    list += peer_text(*request.peer.address);
    request.headers.emplace_back("X-Forwarded-For", std::move(list));
}

}  // namespace ration
