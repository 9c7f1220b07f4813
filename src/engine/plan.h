// Step 3: which limits apply, under which key, at which cost: the charges of the request.
#pragma once

#include "engine/exchange.h"

namespace ration {

// Fills in `charges`, `rule_of`, `enforced_count` and `to_settle`. False when the request would
// meet more than `max_charges` limits, or numbers that cannot be represented: it must not go on.
[[nodiscard]] bool plan(Exchange& exchange);

// A cost as a header states it: digits only, at most what a charge can hold; else `otherwise`.
[[nodiscard]] std::uint32_t stated_cost(std::span<const Header> headers, std::string_view name,
                                        std::uint32_t otherwise);

}  // namespace ration
