// One warning when the counters stop answering, one line when they answer again: requests are far
// too many to log each, and an outage must not pass unsaid.
//
// Whether there is an outage is what the server's own question found, so it begins and ends without
// any request, and whoever asks that question (the server every so often, /readyz when it is
// called) notes its answer here: the log, the metric and /readyz then say the same. It begins with
// one question without an answer and ends with two in a row that have one, so that a store at the
// edge of its deadline is not up and down with each question. A request that failed while the
// counters answer others (one caller's key is broken, a moment was missed) is no outage and makes
// none longer: it is warned of once, and again after a minute without one.
// Thread rule: one call at a time, in the order in which the questions were asked; `down` from any
// thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/process/log.h"

namespace ration {

// What one look found; requests are running totals, as in MetricsTotals.
struct StoreLook {
    bool answers = true;       // the server's own question
    std::uint64_t judged = 0;  // requests whose limits were judged
    std::uint64_t failed = 0;  // requests that got no answer
    std::string trouble = {};  // what the store last had to say for itself, for the warning
};

class StoreWatch {
public:
    explicit StoreWatch(Log& log);

    // Whether the store should be asked: it was out of reach, or requests failed since.
    [[nodiscard]] bool in_doubt(std::uint64_t failed) const { return down() || failed != failed_; }
    // Called every second or so.
    void look(const StoreLook& found);
    // What the question found between two looks. True: the counters are up.
    bool note(bool answers, const std::string& trouble);

    // As of the last question; any thread.
    [[nodiscard]] bool down() const { return down_.load(std::memory_order_relaxed); }

private:
    void warn(std::string_view what, const std::string& trouble);

    Log& log_;
    std::uint64_t judged_ = 0;
    std::uint64_t failed_ = 0;
    unsigned calm_looks_;    // without a failure
    unsigned answered_ = 0;  // questions in a row, while it is down
    std::atomic<bool> down_{false};
};

}  // namespace ration
