// Rare steps of a request that ask shared counters several times in a row, each answer leading to
// the next question: they run on a thread of their own, so that no event loop waits.
//
// Thread rule: `submit` and `stop` from any thread; a step runs on the runner's thread and then
// posts itself where its waiter is. Bound: as many waiting steps as it is made for; more are
// refused.
//
//   StepRunner runner(options.waiting_steps);
//   if (!runner.submit([this] { engine.answered(...); mailbox->post([this] { go_on(); }); })) ...
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace ration {

class StepRunner {
public:
    explicit StepRunner(std::size_t most) : most_(most), thread_([this] { run(); }) {}
    ~StepRunner() { stop(); }
    StepRunner(const StepRunner&) = delete;
    StepRunner& operator=(const StepRunner&) = delete;

    [[nodiscard]] bool submit(std::function<void()> step);
    // Finishes the step that runs; those that wait are dropped.
    void stop();

private:
    void run();

    const std::size_t most_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::function<void()>> steps_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace ration
