// One warning when the ledger cannot be written, one line when it can be again.
//
// Looked at every second or so; an outage that began and ended in between has both lines. Thread
// rule: one thread.
#pragma once

#include <cstdint>

#include "server/metrics/ledger_meter.h"
#include "server/process/log.h"

namespace ration {

class LedgerWatch {
public:
    explicit LedgerWatch(Log& log) : log_(log) {}

    void look(const LedgerTotals& totals);

private:
    Log& log_;
    std::uint64_t failures_ = 0;
    bool down_ = false;
};

}  // namespace ration
