// The rules that the ledger keeps, for /v1/policy: ceilings, quotas, idempotency. As policy_json.h,
// they hold no attribute of the directory: what differs by plan or account is named, not told.
#pragma once

#include <nlohmann/json.hpp>

#include "policy/policy.h"

namespace ration {

[[nodiscard]] nlohmann::ordered_json ceilings_json(const Policy& policy);
[[nodiscard]] nlohmann::ordered_json quotas_json(const Policy& policy);
[[nodiscard]] nlohmann::ordered_json idempotency_json(const Policy& policy);

}  // namespace ration
