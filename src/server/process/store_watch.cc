#include "server/process/store_watch.h"

#include <utility>

#include "base/text.h"

namespace ration {

void StoreWatch::look(std::uint64_t answers, std::uint64_t failures, const std::string& trouble) {
    const bool failed = std::exchange(failures_, failures) != failures;
    const bool answered = std::exchange(answers_, answers) != answers;
    if (failed && !down_) {
        down_ = true;
        log_.warning(cat(
            "the counters give no answer; each limit does what its store_down says until they do",
            trouble.empty() ? "" : ": ", trouble));
    } else if (!failed && answered && down_) {
        down_ = false;
        log_.info("the counters answer again");
    }
}

}  // namespace ration
