#include "server/process/ledger_watch.h"

#include <utility>

#include "base/text.h"

namespace ration {

void LedgerWatch::look(const LedgerTotals& totals) {
    const bool failed = std::exchange(failures_, totals.failures) != totals.failures;
    if (failed && !down_) {
        down_ = true;
        log_.warning(cat("the ledger cannot be written: ", totals.last_error,
                         "; requests that need it are answered 503, and what was under way is in "
                         "doubt"));
    }
    if (down_ && totals.healthy) {
        down_ = false;
        log_.info(
            cat("the ledger is written again; ", totals.stats.doubtful, " attempts are in doubt"));
    }
}

}  // namespace ration
