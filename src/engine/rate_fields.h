// The rate-limit header families: what an answer says about the limit it shows.
//
// Limits in flight have no reset: nobody knows when the others will be done. Every number comes
// from the level the decision was made on, at the instant it was made, so headers and decision
// cannot disagree. Rounding is against the caller: remaining down, times up. Pure, no allocation.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "engine/answer.h"
#include "engine/exchange.h"
#include "wire/decimal.h"

namespace ration {

// Whole seconds, rounded up; never negative.
[[nodiscard]] std::uint64_t ceil_seconds(Nanos span);
// Epoch seconds of the moment `after` from `now`, rounded up: the same for all of a window.
[[nodiscard]] std::uint64_t epoch_seconds(Wall now, Nanos after);

// The fields of the shown limit's family; `refusal` is true when that very limit refuses.
void rate_limit_fields(const Exchange& exchange, bool refusal, FieldSink sink);

// True for the names that the shown limit's family writes as single values: an upstream's field of
// that name would make two answers of one. (draft-10 fields are lists and may stand beside others.)
[[nodiscard]] bool is_own_rate_limit_field(const Exchange& exchange, std::string_view name);

}  // namespace ration
