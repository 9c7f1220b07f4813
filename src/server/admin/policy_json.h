// /v1/policy: the rules in force, for people and tools. Holds no secret: credentials are counted,
// not listed, and no attribute of the directory is shown.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "ration/time.h"
#include "server/reload/reloader.h"

namespace ration {

[[nodiscard]] nlohmann::ordered_json policy_json(const InForce& in_force);

// Shared with the other pages of rules: names of routes and kinds, "any" for all; a key's parts.
[[nodiscard]] nlohmann::ordered_json route_names_json(const Policy& policy,
                                                      const std::vector<bool>& routes);
[[nodiscard]] nlohmann::ordered_json kinds_json(const Policy& policy, KindSet kinds);
[[nodiscard]] nlohmann::ordered_json selectors_json(const std::vector<Selector>& key);

// A part of a key as the policy writes it: "workspace", "account.plan", "path.id".
[[nodiscard]] std::string selector_text(const Selector& selector);

// "2026-03-01T12:00:00.000Z", as in the access log.
[[nodiscard]] std::string log_time(Wall at);

}  // namespace ration
