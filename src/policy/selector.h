// Words that name a part of a request or of who sent it: route, address, workspace, account.plan,
// path.id, query.q, header.X-App.
#pragma once

#include <optional>
#include <string_view>

#include "policy/policy.h"
#include "policy/rate.h"

namespace ration {

inline constexpr std::size_t max_attribute_steps = 4;  // account.plan.calendars has three

// nullopt: all well. The position is left to the caller.
[[nodiscard]] std::optional<TextProblem> parse_selector(std::string_view text, Selector& selector);

}  // namespace ration
