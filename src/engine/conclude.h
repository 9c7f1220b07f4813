// Step 5: the decision, from what identity, route and limits said. Pure.
#pragma once

#include "engine/exchange.h"
#include "engine/match.h"

namespace ration {

// Fills in `decision`. A limit that refuses comes before 401 and 404. Of several refusing limits
// one that can never clear outranks any wait, else the longest wait, else policy order.
void conclude(Exchange& exchange, Standing standing);

// Refused by one of ration's own answers, no limit involved.
void refuse(Exchange& exchange, BuiltIn which);

}  // namespace ration
