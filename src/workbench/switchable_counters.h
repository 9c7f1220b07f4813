// Counters that can be made to give no answer, as a store out of reach would.
//
// While down, every transaction's outcome is kUnavailable and nothing is charged. What is given
// back meanwhile is applied on recovery, as a shared store lets go of a dead holder's slots by
// itself, so that being down leaks nothing. Thread rule: as the counters inside; `set_up` from any
// thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ration/counters.h"

namespace ration {

class SwitchableCounters final : public Counters {
public:
    explicit SwitchableCounters(std::unique_ptr<Counters> inner) : inner_(std::move(inner)) {}

    void set_up(bool up, Now now);

    void apply(std::span<const Transaction> transactions, Now now,
               std::span<Outcome> outcomes) override;
    void sweep(Now now, std::size_t budget) override { inner_->sweep(now, budget); }
    [[nodiscard]] CounterStats stats() const override { return inner_->stats(); }

private:
    struct Owed {
        std::string key;
        Charge charge;  // its key is put right when it is applied
        std::uint64_t lease = 0;
    };
    void remember(const Transaction& transaction);

    std::unique_ptr<Counters> inner_;
    std::mutex mutex_;
    bool up_ = true;
    std::vector<Owed> owed_;  // bounded by the requests in flight when the counters went down
};

}  // namespace ration
