// The only file that reads a clock. The wall reading is clamped to the largest one seen in this
// process, so a backward step of the system time makes it stand still, never return.
#include <atomic>
#include <chrono>

#include "ration/time.h"

namespace ration {

namespace {

std::int64_t wall_without_steps_back(std::int64_t reading) {
    static std::atomic<std::int64_t> latest{0};
    std::int64_t seen = latest.load(std::memory_order_relaxed);
    while (seen < reading) {
        if (latest.compare_exchange_weak(seen, reading, std::memory_order_relaxed)) {
            return reading;
        }
    }
    return seen;
}

}  // namespace

Now SystemClock::now() const {
    const auto mono = std::chrono::steady_clock::now().time_since_epoch();
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    return {Mono(std::chrono::duration_cast<Nanos>(mono)),
            Wall(Nanos(wall_without_steps_back(std::chrono::duration_cast<Nanos>(wall).count())))};
}

}  // namespace ration
