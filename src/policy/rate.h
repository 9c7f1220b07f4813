// Rates and periods as people write them: "60/min", "10 per 13s", "5 per 365 days".
//
//   rate   = amount ("/" | "per") [whole] unit        amount = whole | attribute
//   period = [whole] unit
//   unit   = ns us ms s second(s) min minute(s) h hour(s) day(s) d week(s)
//
// Whole numbers only, no rounding anywhere. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ration/time.h"

namespace ration {

struct Rate {
    std::uint64_t amount = 0;
    std::string attribute;  // "account.plan.rate" instead of a number, else empty
    Nanos period{0};
};

// What is wrong, and at which byte of the text.
struct TextProblem {
    std::size_t offset = 0;
    std::string reason;
};

// nullopt: all well.
[[nodiscard]] std::optional<TextProblem> parse_rate(std::string_view text, Rate& rate);
[[nodiscard]] std::optional<TextProblem> parse_period(std::string_view text, Nanos& period);

}  // namespace ration
