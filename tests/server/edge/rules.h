// A small policy and directory that the tests of this folder share.
#pragma once

#include <string_view>

namespace ration::testing {

// Ten calls an hour per address on /v1/ping, as many as one likes on /v1/free; one rule in shadow.
inline constexpr std::string_view ping_policy = R"(policy: ping
routes:
  ping: GET /v1/ping
  free: GET /v1/free/{id}
identify:
  address: {header: X-Forwarded-For, trusted: [127.0.0.0/8]}
  credentials:
    secret: {bearer: sk_*}
  accepts: {else: [any]}
limits:
  - name: pings
    routes: [ping]
    per: [address]
    token_bucket: 10/hour
    refuse: too_many
  - name: in shadow
    routes: [ping]
    per: [address]
    token_bucket: 1/hour
    refuse: too_many
    shadow: true
refusals:
  too_many:
    status: 429
    headers: {Retry-After: "{retry_after}"}
    body: {error: too_many}
)";

inline constexpr std::string_view ping_directory = R"(entities:
  workspace:
    ws_1: {timezone: UTC}
credentials:
  sk_live_s3cret: {kind: secret, workspace: ws_1}
)";

}  // namespace ration::testing
