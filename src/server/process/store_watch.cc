#include "server/process/store_watch.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace ration {

namespace {

constexpr unsigned calm_again = 60;  // looks
constexpr unsigned up_again = 2;     // questions

}  // namespace

StoreWatch::StoreWatch(Log& log) : log_(log), calm_looks_(calm_again) {}

void StoreWatch::look(const StoreLook& found) {
    const std::uint64_t failed = found.failed - std::exchange(failed_, found.failed);
    const std::uint64_t judged = found.judged - std::exchange(judged_, found.judged);
    const bool was_up = !down();
    if (note(found.answers, found.trouble) && was_up && failed != 0 && calm_looks_ >= calm_again) {
        warn(cat("the counters gave no answer to ", failed, " of ", failed + judged, " requests"),
             found.trouble);
    }
    calm_looks_ = failed != 0 || down() ? 0 : std::min(calm_looks_ + 1, calm_again);
}

bool StoreWatch::note(bool answers, const std::string& trouble) {
    answered_ = answers && down() ? answered_ + 1 : 0;
    if (!answers && !down_.exchange(true)) {
        calm_looks_ = 0;
        warn("the counters give no answer", trouble);
    } else if (answered_ >= up_again) {
        down_ = false;
        log_.info("the counters answer again");
    }
    return !down();
}

void StoreWatch::warn(std::string_view what, const std::string& trouble) {
    log_.warning(cat(what, "; each limit does what its store_down says until they do",
                     trouble.empty() ? "" : ": ", trouble));
}

}  // namespace ration
