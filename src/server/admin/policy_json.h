// /v1/policy: the rules in force, for people and tools. Holds no secret: credentials are counted,
// not listed, and no attribute of the directory is shown.
#pragma once

#include <nlohmann/json.hpp>

#include "ration/time.h"
#include "server/reload/reloader.h"

namespace ration {

[[nodiscard]] nlohmann::ordered_json policy_json(const InForce& in_force);

// A part of a key as the policy writes it: "workspace", "account.plan", "path.id".
[[nodiscard]] std::string selector_text(const Selector& selector);

// "2026-03-01T12:00:00.000Z", as in the access log.
[[nodiscard]] std::string log_time(Wall at);

}  // namespace ration
