// A clock that moves only when told: for replay, tests and a server under test.
#pragma once

#include <mutex>

#include "ration/time.h"

namespace ration {

// Thread rule: any thread may read and move it.
class ManualClock final : public Clock {
public:
    explicit ManualClock(Now start) : now_(start) {}

    [[nodiscard]] Now now() const override {
        const std::lock_guard lock(mutex_);
        return now_;
    }
    void set(Now now) {
        const std::lock_guard lock(mutex_);
        now_ = now;
    }
    void advance(Nanos by) {
        const std::lock_guard lock(mutex_);
        now_ = later(now_, by);
    }

private:
    mutable std::mutex mutex_;
    Now now_;
};

}  // namespace ration
