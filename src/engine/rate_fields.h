// What an answer says about the limit it shows: its level in the words of its header family.
//
// Every number comes from the level the decision was made on, at the instant it was made, so
// headers and decision cannot disagree. Pure, no allocation.
#pragma once

#include <string_view>

#include "engine/answer.h"
#include "engine/exchange.h"

namespace ration {

// The fields of the shown limit's family; `refusal` is true when that very limit refuses.
void shown_limit_fields(const Exchange& exchange, bool refusal, FieldSink sink);

// Whether an admitted request's answer carries numbers of the shown limit.
[[nodiscard]] bool shows_numbers(const Exchange& exchange);

// True for the names that the shown limit's family writes as single values: an upstream's field of
// that name would make two answers of one. (draft-10 fields are lists and may stand beside others.)
[[nodiscard]] bool is_shown_limit_field(const Exchange& exchange, std::string_view name);

}  // namespace ration
