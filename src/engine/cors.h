// The policy's CORS headers (Fetch standard), on every answer and on pre-checks.
//
// Pure, no allocation. `origin` is the request's, empty when it has none.
#pragma once

#include <span>
#include <string_view>

#include "engine/answer.h"
#include "engine/snapshot.h"
#include "policy/policy.h"
#include "request/header.h"

namespace ration {

void cors_fields(const Cors& cors, const CorsText& text, std::string_view origin, FieldSink sink);

// What a pre-check is told on top of that; lists the policy leaves open repeat what was asked for.
void preflight_fields(const Cors& cors, const CorsText& text, std::span<const Header> headers,
                      FieldSink sink);

// True for Access-Control-*: an upstream's are replaced, never added to.
[[nodiscard]] bool is_cors_field(std::string_view name);

}  // namespace ration
