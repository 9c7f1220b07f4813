#include "engine/match.h"

#include "request/header.h"

namespace ration {

std::optional<BuiltIn> read_target(Exchange& exchange) {
    const auto target = normal_target(exchange.request.target, exchange.path_buffer);
    // The asterisk form is for OPTIONS alone (RFC 9112 3.2.4).
    if (!target.ok() || (target->path == "*" && exchange.request.method != "OPTIONS")) {
        exchange.target = {};
        return absl::IsOutOfRange(target.status()) ? BuiltIn::uri_too_long : BuiltIn::bad_request;
    }
    exchange.target = *target;
    return std::nullopt;
}

bool is_preflight(const Exchange& exchange) {
    const Policy& policy = exchange.policy();
    return exchange.request.method == "OPTIONS" && !exchange.origin.empty() &&
           find_header(exchange.request.headers, "Access-Control-Request-Method") != nullptr &&
           (policy.forward_unmatched || policy.table.path_exists(exchange.target.path));
}

std::string_view asked_method(const Exchange& exchange) {
    return find_header(exchange.request.headers, "Access-Control-Request-Method")->value;
}

void match(Exchange& exchange) {
    exchange.route = exchange.policy().table.match(exchange.method, exchange.target.path);
}

Standing standing(const Exchange& exchange) {
    const Policy& policy = exchange.policy();
    if (exchange.preflight) {
        return Standing::welcome;
    }
    const RouteIndex route = exchange.route.route;
    if (route == no_route && !policy.forward_unmatched) {
        return Standing::not_found;
    }
    const KindSet accepts =
        route == no_route ? policy.accepts_unmatched : policy.routes[route].accepts;
    if ((accepts & kind_bit(exchange.kind)) != 0) {
        return Standing::welcome;
    }
    return exchange.credential != nullptr ? Standing::forbidden : Standing::unauthorized;
}

}  // namespace ration
