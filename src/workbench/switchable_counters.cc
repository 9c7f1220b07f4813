#include "workbench/switchable_counters.h"

#include <utility>

namespace ration {

void SwitchableCounters::set_up(bool up, Now now) {
    std::vector<Owed> owed;
    {
        const std::lock_guard lock(mutex_);
        up_ = up;
        if (up) {
            owed.swap(owed_);
        }
    }
    for (Owed& item : owed) {
        item.charge.key = item.key;
        static_cast<void>(
            inner_->apply_one({.charges = {&item.charge, 1}, .lease = item.lease}, now));
    }
}

void SwitchableCounters::apply(std::span<const Transaction> transactions, Now now,
                               std::span<Outcome> outcomes) {
    {
        const std::lock_guard lock(mutex_);
        if (!up_) {
            for (std::size_t i = 0; i < transactions.size(); ++i) {
                remember(transactions[i]);
                outcomes[i] = Outcome{};
                outcomes[i].status = absl::StatusCode::kUnavailable;
            }
            return;
        }
    }
    inner_->apply(transactions, now, outcomes);
}

void SwitchableCounters::remember(const Transaction& transaction) {
    for (const Charge& charge : transaction.charges) {
        if (charge.op == ChargeOp::give_back || charge.op == ChargeOp::force) {
            owed_.push_back({std::string(charge.key), charge, transaction.lease});
        }
    }
}

}  // namespace ration
