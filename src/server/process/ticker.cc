#include "server/process/ticker.h"

#include <utility>

namespace ration {

Ticker::Ticker(Nanos every, std::function<void()> task)
    : every_(every), task_(std::move(task)), thread_([this] { run(); }) {}

Ticker::~Ticker() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

void Ticker::run() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, every_, [this] { return stop_; })) {
        lock.unlock();
        task_();
        lock.lock();
    }
}

}  // namespace ration
