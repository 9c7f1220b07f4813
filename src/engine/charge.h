// Step 4: all limits of the request in one indivisible step.
#pragma once

#include "engine/exchange.h"
#include "ration/counters.h"

namespace ration {

class BlockWatcher;

// Where charges go.
struct Stores {
    Counters& counters;
    Counters* local = nullptr;        // stands in for limits with `store_down: local`
    unsigned replicas = 1;            // how many processes share what `local` gives out alone
    BlockWatcher* watcher = nullptr;  // is told of blocks that begin
};

// Applies the planned charges and fills in `outcome`, `taken`, `local`, `judged` and
// `decision.store_down`. Nothing planned: admitted. When the counters give no answer, limits that
// are closed then refuse (nothing is charged), local ones are judged by the stand-in, open ones
// stay without numbers.
void charge(Exchange& exchange, const Stores& stores, Now now);

}  // namespace ration
