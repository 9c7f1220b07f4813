// Step 2: which route the request asks for, and whether it may ask.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/exchange.h"

namespace ration {

// What identity and route say about a request, before its limits are judged.
enum class Standing : std::uint8_t {
    welcome,       // to be forwarded if its limits admit it
    unauthorized,  // 401 after its limits
    forbidden,     // 403 at once: a known credential of a kind that the route does not accept
    not_found,     // 404 after its limits
};

// Normalises the target into the exchange's buffer; or what it is refused as: malformed, too long.
[[nodiscard]] std::optional<BuiltIn> read_target(Exchange& exchange);

// A browser's pre-check (Fetch standard, "CORS-preflight request") of a path that is served: for
// ration to answer when the policy has `cors`, else for the upstream.
[[nodiscard]] bool is_preflight(const Exchange& exchange);
// The method that a pre-check is about.
[[nodiscard]] std::string_view asked_method(const Exchange& exchange);

// Fills in `route`. Method override headers are not looked at: what counts is what will run.
void match(Exchange& exchange);

[[nodiscard]] Standing standing(const Exchange& exchange);

}  // namespace ration
