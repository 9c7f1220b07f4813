#include "server/process/store_watch.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace ration {

namespace {

constexpr unsigned calm_again = 60;  // looks

}  // namespace

StoreWatch::StoreWatch(Log& log) : log_(log), calm_looks_(calm_again) {}

void StoreWatch::look(const StoreLook& found) {
    const std::uint64_t failed = found.failed - std::exchange(failed_, found.failed);
    const std::uint64_t judged = found.judged - std::exchange(judged_, found.judged);
    if (!found.answers) {
        if (!down_.exchange(true)) {
            warn("the counters give no answer", found.trouble);
        }
    } else if (down_ && (failed == 0 || failed < judged)) {
        down_ = false;
        log_.info("the counters answer again");
    } else if (!down_ && failed != 0 && calm_looks_ >= calm_again) {
        warn(cat("the counters gave no answer to ", failed, " of ", failed + judged, " requests"),
             found.trouble);
    }
    calm_looks_ = failed != 0 || down_ ? 0 : std::min(calm_looks_ + 1, calm_again);
}

void StoreWatch::warn(std::string_view what, const std::string& trouble) {
    log_.warning(cat(what, "; each limit does what its store_down says until they do",
                     trouble.empty() ? "" : ": ", trouble));
}

}  // namespace ration
