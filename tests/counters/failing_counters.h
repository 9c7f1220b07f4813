// Counters that give no answer on the n-th call, for tests of what depends on counters.
//
//   FailingCounters failing(*memory);
//   failing.fail_call(3);        // the third call from now on, then all is well again
//   failing.set_down(true);      // every call, until set_down(false)
//
// A failed call answers kUnavailable for each of its transactions and charges nothing.
// Thread rule: as the wrapped counters.
#pragma once

#include <atomic>
#include <cstdint>

#include "ration/counters.h"

namespace ration {

class FailingCounters final : public Counters {
public:
    // Does not own `inner`, which must outlive this.
    explicit FailingCounters(Counters& inner) : inner_(inner) {}

    void fail_call(std::uint64_t n) { failing_call_ = calls_ + n; }
    void set_down(bool down) { down_ = down; }
    [[nodiscard]] std::uint64_t calls() const { return calls_; }

    void apply(std::span<const Transaction> transactions, Now now,
               std::span<Outcome> outcomes) override {
        if (++calls_ != failing_call_ && !down_) {
            return inner_.apply(transactions, now, outcomes);
        }
        for (Outcome& outcome : outcomes.first(transactions.size())) {
            outcome.status = absl::StatusCode::kUnavailable;
            outcome.admitted = false;
            outcome.count = 0;
        }
    }
    void sweep(Now now, std::size_t budget) override { inner_.sweep(now, budget); }
    [[nodiscard]] CounterStats stats() const override { return inner_.stats(); }

private:
    Counters& inner_;
    std::atomic<std::uint64_t> calls_{0};
    std::atomic<std::uint64_t> failing_call_{0};
    std::atomic<bool> down_{false};
};

}  // namespace ration
