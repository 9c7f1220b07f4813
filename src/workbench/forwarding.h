// What a gateway does to a request and its answer around the engine, without sockets: limits on the
// request's head, fields for the upstream, fields of the final answer.
//
// Pure; thread rule: const arguments only. The sizes are the gateway's defaults.
#pragma once

#include <optional>
#include <string>

#include "engine/engine.h"
#include "workbench/message.h"

namespace ration {

// The answer to a request that the gateway turns away before the engine sees it (head or body too
// large, an upgrade, an unknown expectation); nullopt when it goes on.
[[nodiscard]] std::optional<Answer> gateway_refusal(const Policy& policy,
                                                    const RequestView& request,
                                                    std::size_t body_bytes);

// A whole answer made by ration becomes the final one; HEAD gets no body.
void put_answer(Answer made, std::string_view method, Wall now, ServiceAnswer& out);

struct GivenAnswer {
    const ScriptedAnswer& upstream;
    Wall at;
};
// The upstream's answer becomes the final one, with the engine's fields.
void put_upstream_answer(const Engine& engine, const Exchange& exchange, const GivenAnswer& given,
                         ServiceAnswer& out);

// The whole address: "203.0.113.7", "2001:db8::1".
[[nodiscard]] std::string peer_text(const IpAddress& address);

// What goes to the upstream: the normal path, the client's end-to-end fields, who the caller is.
[[nodiscard]] ForwardedRequest forwarded_request(const Engine& engine, const Exchange& exchange);

}  // namespace ration
