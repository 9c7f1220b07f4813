#include "workbench/forwarding.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "server/gateway.h"
#include "workbench/message_check.h"

namespace ration {

namespace {

// True when the Connection field of `fields` names `name` (RFC 9110 7.6.1).
template <typename FieldList>
bool connection_names(const FieldList& fields, std::string_view name) {
    for (const auto& [field, value] : fields) {
        if (!equal_ignoring_case(field, "connection")) {
            continue;
        }
        std::string_view rest = value;
        while (!rest.empty()) {
            const std::size_t comma = std::min(rest.find(','), rest.size());
            if (equal_ignoring_case(trimmed(rest.substr(0, comma)), name)) {
                return true;
            }
            rest.remove_prefix(std::min(comma + 1, rest.size()));
        }
    }
    return false;
}

std::size_t head_bytes(const RequestView& request) {
    std::size_t bytes =
        request.method.size() + request.target.size() + sizeof("  HTTP/1.1\r\n\r\n");
    for (const Header& header : request.headers) {
        bytes += header.name.size() + header.value.size() + sizeof(": \r\n") - 1;
    }
    return bytes;
}

}  // namespace

bool is_hop_by_hop(std::string_view name) {
    static constexpr std::array<std::string_view, 9> names = {"connection",
                                                              "keep-alive",
                                                              "proxy-authenticate",
                                                              "proxy-authorization",
                                                              "proxy-connection",
                                                              "te",
                                                              "trailer",
                                                              "transfer-encoding",
                                                              "upgrade"};
    for (const std::string_view hop : names) {
        if (equal_ignoring_case(name, hop)) {
            return true;
        }
    }
    return false;
}

std::optional<Answer> gateway_refusal(const Policy& policy, const RequestView& request,
                                      std::size_t body_bytes) {
    static const GatewayOptions limits;
    if (request.headers.size() > limits.max_headers ||
        head_bytes(request) > limits.max_header_bytes) {
        return Engine::failure(policy, BuiltIn::headers_too_large, request.id,
                               "the request's head is too large");
    }
    if (body_bytes > limits.max_body_bytes) {
        return Engine::failure(policy, BuiltIn::payload_too_large, request.id,
                               "the request's body is too large");
    }
    if (find_header(request.headers, "upgrade") != nullptr &&
        connection_names(request.headers, "upgrade")) {
        return Engine::failure(policy, BuiltIn::upgrade_refused, request.id,
                               "upgrades are not supported");
    }
    const Header* expect = find_header(request.headers, "expect");
    if (expect != nullptr && !equal_ignoring_case(expect->value, "100-continue")) {
        return Engine::failure(policy, BuiltIn::expectation_failed, request.id,
                               "only 100-continue can be expected");
    }
    return std::nullopt;
}

void put_answer(Answer made, std::string_view method, ServiceAnswer& out) {
    out.status = made.status;
    out.headers = std::move(made.headers);
    out.body = method == "HEAD" ? std::string() : std::move(made.body);
}

void put_upstream_answer(const Engine& engine, const Exchange& exchange,
                         const ScriptedAnswer& upstream, ServiceAnswer& out) {
    out.status = upstream.status;
    out.headers.clear();
    for (const auto& [name, value] : upstream.headers) {
        if (!is_hop_by_hop(name) && !connection_names(upstream.headers, name) &&
            !engine.drops_response_field(exchange, name)) {
            out.headers.emplace_back(name, value);
        }
    }
    engine.response_fields(exchange, [&out](std::string_view name, std::string_view value) {
        out.headers.emplace_back(name, value);
    });
    const bool bodiless =
        exchange.request.method == "HEAD" || upstream.status == 204 || upstream.status == 304;
    out.body = bodiless ? std::string() : upstream.body;
}

ForwardedRequest forwarded_request(const Engine& engine, const Exchange& exchange) {
    ForwardedRequest forwarded;
    forwarded.method = exchange.request.method;
    forwarded.target = std::string(exchange.target.path);
    if (exchange.target.has_query) {
        forwarded.target += cat("?", exchange.target.query);
    }
    for (const Header& header : exchange.request.headers) {
        if (!is_hop_by_hop(header.name) &&
            !connection_names(exchange.request.headers, header.name) &&
            !Engine::drops_request_field(header.name)) {
            forwarded.headers.emplace_back(header.name, header.value);
        }
    }
    engine.request_fields(exchange, [&forwarded](std::string_view name, std::string_view value) {
        forwarded.headers.emplace_back(name, value);
    });
    return forwarded;
}

}  // namespace ration
