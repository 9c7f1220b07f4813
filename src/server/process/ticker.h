// Calls a task again and again on a thread of its own, `every` apart, until it is destroyed.
//
// Thread rule: the task runs on that thread only, never twice at once; the destructor waits for a
// running task. The pause is real time, whatever clock the service runs on.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "ration/time.h"

namespace ration {

class Ticker {
public:
    Ticker(Nanos every, std::function<void()> task);
    ~Ticker();
    Ticker(const Ticker&) = delete;
    Ticker& operator=(const Ticker&) = delete;

private:
    void run();

    const Nanos every_;
    const std::function<void()> task_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool stop_ = false;
    std::thread thread_;
};

}  // namespace ration
