#include "server/process/store_watch.h"

#include <utility>

namespace ration {

void StoreWatch::look(std::uint64_t answers, std::uint64_t failures) {
    const bool failed = std::exchange(failures_, failures) != failures;
    const bool answered = std::exchange(answers_, answers) != answers;
    if (failed && !down_) {
        down_ = true;
        log_.warning(
            "the counters give no answer; each limit does what its store_down says until they do");
    } else if (!failed && answered && down_) {
        down_ = false;
        log_.info("the counters answer again");
    }
}

}  // namespace ration
