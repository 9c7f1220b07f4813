// The last step, once on every exit: in-flight slots are freed, costs corrected to the true ones.
#pragma once

#include "engine/charge.h"
#include "engine/engine.h"
#include "engine/exchange.h"

namespace ration {

void settle(Exchange& exchange, const Ending& ending, const Stores& stores, Now now);

}  // namespace ration
