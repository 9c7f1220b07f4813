// Counters that are only told: what settles a request is sent, and nobody waits for the outcome.
//
// Thread rule: the link's loop. Every outcome is kUnavailable, which is what settling needs to
// know.
#pragma once

#include "counters/redis/link.h"
#include "ration/counters.h"

namespace ration {

class ToldCounters final : public Counters {
public:
    explicit ToldCounters(RedisLink& link) : link_(link) {}

    void apply(std::span<const Transaction> transactions, Now now,
               std::span<Outcome> outcomes) override {
        for (std::size_t i = 0; i < transactions.size(); ++i) {
            link_.tell(transactions[i], now);
            outcomes[i].status = absl::StatusCode::kUnavailable;
            outcomes[i].admitted = false;
            outcomes[i].count = 0;
        }
    }
    void sweep(Now /*now*/, std::size_t /*budget*/) override {}
    [[nodiscard]] CounterStats stats() const override { return {}; }

private:
    RedisLink& link_;
};

}  // namespace ration
