#include "server/proxy/step_runner.h"

#include <utility>

namespace ration {

bool StepRunner::submit(std::function<void()> step) {
    {
        const std::lock_guard lock(mutex_);
        if (stopping_ || steps_.size() >= most_) {
            return false;
        }
        steps_.push_back(std::move(step));
    }
    wake_.notify_one();
    return true;
}

void StepRunner::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void StepRunner::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        wake_.wait(lock, [this] { return stopping_ || !steps_.empty(); });
        if (stopping_) {
            return;
        }
        const std::function<void()> step = std::move(steps_.front());
        steps_.pop_front();
        lock.unlock();
        step();
        lock.lock();
    }
}

}  // namespace ration
