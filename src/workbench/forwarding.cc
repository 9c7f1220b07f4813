#include "workbench/forwarding.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "request/path.h"
#include "server/gateway.h"
#include "server/http/fields.h"
#include "wire/decimal.h"

namespace ration {

namespace {

template <typename FieldList>
bool ends_by_connection_of(const FieldList& fields, std::string_view name) {
    for (const auto& [field, value] : fields) {
        if (http::field_id(field) == http::FieldId::connection && ends_by_connection(value, name)) {
            return true;
        }
    }
    return false;
}

// Fields that end at this hop, by themselves or because Connection says so.
template <typename FieldList>
bool ends_here(const FieldList& fields, std::string_view name) {
    const http::FieldId id = http::field_id(name);
    return http::is_hop_by_hop(id) || id == http::FieldId::content_length ||
           id == http::FieldId::trailer || ends_by_connection_of(fields, name);
}

bool has_field(const Fields& fields, std::string_view name) {
    return std::any_of(fields.begin(), fields.end(), [name](const auto& field) {
        return equal_ignoring_case(field.first, name);
    });
}

void put_date(Wall now, Fields& fields) {
    if (!has_field(fields, "Date")) {
        std::array<char, max_decimal_bytes> buffer;
        fields.emplace_back("Date", http_date(now, buffer));
    }
}

bool is_bodiless(std::string_view method, int status) {
    return method == "HEAD" || status == 204 || status == 304;
}

// The proxies the request came through, and its peer.
std::string forwarded_for(const Exchange& exchange) {
    std::string list;
    for (const Header& header : exchange.request.headers) {
        if (http::field_id(header.name) == http::FieldId::x_forwarded_for &&
            !header.value.empty()) {
            list += cat(list.empty() ? "" : ", ", header.value);
        }
    }
    if (const auto& peer = exchange.request.peer.address) {
        list += cat(list.empty() ? "" : ", ", peer_text(*peer));
    }
    return list;
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

std::string peer_text(const IpAddress& address) {
    const CallerAddress whole{.address = address,
                              .prefix = address.v4 ? std::uint8_t{32} : std::uint8_t{128},
                              .known = true};
    std::array<char, 64> buffer;
    const std::string_view text = whole.text(buffer);
    return std::string(text.substr(0, text.find('/')));
}

std::optional<Answer> gateway_refusal(const Policy& policy, const RequestView& request,
                                      std::size_t body_bytes) {
    static const GatewayOptions limits;
    if (request.target.size() > max_target_bytes) {
        return Engine::failure(policy, BuiltIn::uri_too_long, request.id,
                               "the request's target is too long");
    }
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
        ends_by_connection_of(request.headers, "upgrade")) {
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

void put_answer(Answer made, std::string_view method, Wall now, ServiceAnswer& out) {
    static const GatewayOptions options;
    out.status = made.status;
    out.headers = std::move(made.headers);
    out.headers.emplace_back("Server", options.server_name);
    put_date(now, out.headers);
    if (made.status != 204 && made.status != 304) {
        out.headers.emplace_back("Content-Length", cat(made.body.size()));
    }
    out.body = is_bodiless(method, made.status) ? std::string() : std::move(made.body);
}

void put_upstream_answer(const Engine& engine, const Exchange& exchange, const GivenAnswer& given,
                         ServiceAnswer& out) {
    const ScriptedAnswer& upstream = given.upstream;
    out.status = upstream.status;
    out.headers.clear();
    for (const auto& [name, value] : upstream.headers) {
        if (!ends_here(upstream.headers, name) &&
            !engine.drops_response_field(exchange, name, value)) {
            out.headers.emplace_back(name, value);
        }
    }
    engine.response_fields(exchange, [&out](std::string_view name, std::string_view value) {
        out.headers.emplace_back(name, value);
    });
    put_date(given.at, out.headers);
    if (is_bodiless(exchange.request.method, upstream.status)) {
        out.body.clear();
    } else {
        out.body = upstream.body;
        out.headers.emplace_back("Content-Length", cat(out.body.size()));
    }
}

ForwardedRequest forwarded_request(const Engine& engine, const Exchange& exchange) {
    ForwardedRequest forwarded;
    forwarded.method = exchange.request.method;
    forwarded.target = std::string(exchange.target.path);
    if (exchange.target.has_query) {
        forwarded.target += cat("?", exchange.target.query);
    }
    for (const Header& header : exchange.request.headers) {
        const http::FieldId id = http::field_id(header.name);
        const bool rewritten = id == http::FieldId::x_forwarded_for ||
                               id == http::FieldId::x_forwarded_proto ||
                               id == http::FieldId::expect;
        if (!rewritten && !ends_here(exchange.request.headers, header.name) &&
            !Engine::drops_request_field(header.name)) {
            forwarded.headers.emplace_back(header.name, header.value);
        }
    }
    if (std::string list = forwarded_for(exchange); !list.empty()) {
        forwarded.headers.emplace_back("X-Forwarded-For", std::move(list));
    }
    engine.request_fields(exchange, [&forwarded](std::string_view name, std::string_view value) {
        forwarded.headers.emplace_back(name, value);
    });
    return forwarded;
}

}  // namespace ration
