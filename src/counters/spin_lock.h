// A lock of four bytes for a few hundred nanoseconds of work, built on an atomic so that the
// sanitizers see it. After a short spin it yields: two threads may share one core.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace ration {

class SpinLock {
public:
    // True when somebody else held it.
    bool lock() {
        if (taken_.exchange(1, std::memory_order_acquire) == 0) {
            return false;
        }
        wait();
        return true;
    }
    void unlock() { taken_.store(0, std::memory_order_release); }

private:
    void wait() {
        do {
            for (int spins = 0; taken_.load(std::memory_order_relaxed) != 0; ++spins) {
                if (spins == max_spins) {
                    std::this_thread::yield();
                    spins = 0;
                }
            }
        } while (taken_.exchange(1, std::memory_order_acquire) != 0);
    }

    static constexpr int max_spins = 64;
    std::atomic<std::uint32_t> taken_{0};
};

}  // namespace ration
