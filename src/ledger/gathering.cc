#include "ledger/gathering.h"

#include <algorithm>

namespace ration {

namespace {

constexpr int share = 8;  // of the last commit's time
constexpr Nanos longest = std::chrono::milliseconds(2);
constexpr unsigned max_skip = 63;

}  // namespace

void Gathering::committed(std::size_t batch, std::size_t queued, Nanos took) {
    wanted_ = std::min(batch + queued, max_batch_);
    at_most_ = std::min(took / share, longest);
}

bool Gathering::begin(std::size_t queued, Mono now) {
    if (queued == 0 || queued >= wanted_ || at_most_ < step) {
        return false;
    }
    if (skip_ > 0) {
        --skip_;
        return false;
    }
    first_ = queued;
    before_ = queued;
    until_ = now + at_most_;
    return true;
}

bool Gathering::more(std::size_t queued, Mono now) {
    const bool grows = queued > before_;
    before_ = queued;
    return grows && queued < wanted_ && now < until_;
}

void Gathering::end(std::size_t queued) {
    const bool worth_it = 2 * (queued - first_) >= wanted_ - first_;
    skip_next_ = worth_it ? 0 : std::min(2 * skip_next_ + 1, max_skip);
    skip_ = skip_next_;
}

}  // namespace ration
