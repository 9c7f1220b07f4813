// Step 4: all limits of the request in one indivisible step.
#pragma once

#include <array>
#include <cstddef>
#include <span>

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

// What the counters are asked about one request: the enforced limits in one transaction, those in
// shadow in another. Views the exchange's charges.
struct ChargeBatch {
    std::array<Transaction, 2> transactions;
    std::array<Outcome, 2> outcomes;
    std::size_t first = 0;  // of those in use
    std::size_t last = 0;   // one past them

    [[nodiscard]] std::span<const Transaction> asked() const {
        return std::span(transactions).subspan(first, last - first);
    }
    [[nodiscard]] std::span<Outcome> answers() {
        return std::span(outcomes).subspan(first, last - first);
    }
};

// `charge` in two steps, for counters that answer later: what to ask (false: nothing is planned),
// and what the answers mean.
[[nodiscard]] bool plan_batch(const Exchange& exchange, ChargeBatch& batch);
void take_answers(Exchange& exchange, const ChargeBatch& batch, const Stores& stores, Now now);

// Applies the planned charges and fills in `outcome`, `taken`, `local`, `judged` and
// `decision.store_down`. Nothing planned: admitted. When the counters give no answer, limits that
// are closed then refuse (nothing is charged), local ones are judged by the stand-in, open ones
// stay without numbers.
void charge(Exchange& exchange, const Stores& stores, Now now);

}  // namespace ration
