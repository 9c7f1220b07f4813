// How the ledger's keys and numbers read in the admin API's JSON.
//
// Keys are bytes: rule and parts joined, an address as four or sixteen of them. Here they are the
// rule's name and one text for each part, named as the policy names it. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "policy/policy.h"
#include "ration/ledger.h"
#include "server/metrics/ledger_meter.h"

namespace ration {

// {"rule": name, "of": {"workspace": "ws_1", "address": "203.0.113.7"}}; parts of a rule that the
// policy no longer has are a list.
[[nodiscard]] nlohmann::ordered_json key_json(const Policy& policy, std::string_view key);

// With "key": the rule, whose it is, the credential's kind and the key itself; null without one.
[[nodiscard]] nlohmann::ordered_json doubt_json(const Policy& policy, const DoubtfulAttempt& doubt);

[[nodiscard]] nlohmann::ordered_json stats_json(const LedgerTotals& totals);
[[nodiscard]] nlohmann::ordered_json rows_json(const LedgerRows& rows);

}  // namespace ration
