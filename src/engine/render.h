// Decision -> answer: the refusal's templates, the shown limit's headers, CORS, caching.
//
// Text is made only here, at the edge. Pure; a refusal allocates, an admitted request does not.
#pragma once

#include <string_view>

#include "engine/answer.h"
#include "engine/exchange.h"

namespace ration {

// The decided answer: a refusal, a replay or a pre-check's 204.
[[nodiscard]] Answer render_decision(const Exchange& exchange);

// One of ration's own answers to a request that the engine has seen.
[[nodiscard]] Answer render_failure(const Exchange& exchange, BuiltIn which);

// The same for bytes that never became a request.
[[nodiscard]] Answer render_failure(const Policy& policy, BuiltIn which,
                                    std::string_view request_id, std::string_view detail);

// Of the upstream's answer, or of a kept one: what must not reach the client.
[[nodiscard]] bool is_dropped_response_field(const Exchange& exchange, std::string_view name,
                                             std::string_view value);

// Fields added to the upstream's answer.
void render_response_fields(const Exchange& exchange, FieldSink sink);

// A field of a client's request that must not reach the upstream: one that ration itself writes
// (Ration-*), or one by which frameworks run another method or path than the request line's, which
// is the one that was judged.
[[nodiscard]] bool is_kept_from_upstream(std::string_view name);

// Fields added to the request for the upstream.
void render_request_fields(const Exchange& exchange, FieldSink sink);

}  // namespace ration
