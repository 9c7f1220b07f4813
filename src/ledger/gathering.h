// When a commit waits a moment for more.
//
// A commit has a cost of its own beside that of what is in it, so two halves cost more than a
// whole. Callers that were just answered often ask again at once (a settlement, the next create);
// without a wait they and those that queued meanwhile take turns in half batches for ever. But what
// is waited for in vain delays everybody. So a commit waits only while the queue grows, for no
// longer than an eighth of the last commit's time or 2 ms; and where fewer than half of those came
// that were missing (their upstream takes its time), the next commits do not wait: one, then three,
// up to 63 of them.
//
// Thread rule: one thread at a time. Pure: times are arguments. Nothing fails.
//
//   if (gathering.begin(queue.size(), now)) {
//       do { pause(Gathering::step); } while (gathering.more(queue.size(), now()));
//       gathering.end(queue.size());
//   }
#pragma once

#include <cstddef>

#include "ration/time.h"

namespace ration {

class Gathering {
public:
    static constexpr Nanos step = std::chrono::microseconds(50);

    explicit Gathering(std::size_t max_batch) : max_batch_(max_batch) {}

    // A commit of `batch` requests took so long, and `queued` more came meanwhile.
    void committed(std::size_t batch, std::size_t queued, Nanos took);

    // Before the next commit: true when it should wait a step.
    [[nodiscard]] bool begin(std::size_t queued, Mono now);
    // After a step: true when it should wait another one.
    [[nodiscard]] bool more(std::size_t queued, Mono now);
    // After the wait: what came of it.
    void end(std::size_t queued);

private:
    std::size_t max_batch_;
    std::size_t wanted_ = 0;  // all that were in the ledger's hands at the last commit's end
    Nanos at_most_{0};
    std::size_t first_ = 0;
    std::size_t before_ = 0;
    Mono until_{};
    unsigned skip_ = 0;
    unsigned skip_next_ = 0;
};

}  // namespace ration
