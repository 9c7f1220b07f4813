#include "engine/settle.h"

#include "engine/plan.h"

namespace ration {
namespace {

// What is left to do for one charge that was taken; false: nothing.
bool correction(const Exchange& exchange, std::size_t at, const Ending& ending, Charge& charge) {
    charge = exchange.charges[at];
    charge.taken = (exchange.local >> at & 1) != 0 ? exchange.arrived : exchange.charged_at;
    if (charge.limit->kind == LimitKind::concurrency) {
        charge.op = ChargeOp::give_back;
        return true;
    }
    // Only a complete answer states a cost; otherwise the estimate is the best that is known.
    if (ending.kind != Ending::Kind::answered) {
        return false;
    }
    const std::uint32_t cost = stated_cost(ending.response_headers,
                                           exchange.rule_at(at).cost.response_header, charge.cost);
    if (cost == charge.cost) {
        return false;
    }
    charge.op = cost < charge.cost ? ChargeOp::give_back : ChargeOp::force;
    charge.cost = cost < charge.cost ? charge.cost - cost : cost - charge.cost;
    return true;
}

// Where charges were made, and when they are put right.
struct Place {
    Counters& counters;
    Now now;
};

// Corrects the charges of `which` in one step.
void correct(const Exchange& exchange, std::uint32_t which, const Ending& ending,
             const Place& place) {
    std::array<Charge, max_charges> charges;
    std::size_t count = 0;
    for (std::size_t i = 0; i < exchange.charge_count; ++i) {
        if ((which >> i & 1) != 0 && correction(exchange, i, ending, charges[count])) {
            ++count;
        }
    }
    if (count != 0) {
        // Without an answer the charge stays as it was taken; the store undoes what it does late.
        static_cast<void>(place.counters.apply_one(
            {.charges = std::span(charges).first(count), .lease = exchange.lease}, place.now));
    }
}

}  // namespace

void settle(Exchange& exchange, const Ending& ending, const Stores& stores, Now now) {
    const std::uint32_t due = exchange.taken & exchange.to_settle;
    exchange.taken = 0;
    if ((due & ~exchange.local) != 0) {
        correct(exchange, due & ~exchange.local, ending, {stores.counters, now});
    }
    if ((due & exchange.local) != 0) {
        correct(exchange, due & exchange.local, ending, {*stores.local, now});
    }
}

}  // namespace ration
