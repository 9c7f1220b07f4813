// One thread's event loop: epoll, edge-triggered, each descriptor registered once for good.
//
// What it saves against a general loop: a connection is never re-registered and never read "just in
// case". Its owner remembers whether the last read or write ran dry and waits for the next edge.
// Time is read once per round (all events that were ready together) through the Clock given.
//
// Thread rule: `post` and `stop` from any thread; everything else on the loop's thread (or before
// `run`). Ownership: watches are not owned; `forget` one before it dies, or hand it to `retire`,
// which destroys it after the round. Errors: `open` says what the system refused.
//
//   net::Loop loop(clock);
//   if (absl::Status s = loop.open(); !s.ok()) return s;
//   loop.run();
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "net/fd.h"
#include "net/timer_wheel.h"
#include "ration/time.h"

namespace ration::net {

inline constexpr std::size_t max_events = 256;  // of one round

// Something that waits for a descriptor. `events` are EPOLL* bits.
class Watch {
public:
    Watch() = default;
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    virtual ~Watch() = default;
    virtual void on_ready(std::uint32_t events) = 0;
};

class Loop {
public:
    explicit Loop(const Clock& clock);
    ~Loop();
    [[nodiscard]] absl::Status open();

    // Edge-triggered, both directions, for the life of the descriptor.
    [[nodiscard]] absl::Status add(int fd, Watch& watch);
    // Level-triggered, input only: for listeners.
    [[nodiscard]] absl::Status add_listener(int fd, Watch& watch);
    // No event reaches the watch any more, not even one of this round.
    void forget(Watch& watch);
    // Calls `on_ready(0)` in the next round: for a watch that stopped in mid-work to be fair.
    void again(Watch& watch) { again_.push_back(&watch); }
    // Destroys it when the round is over.
    void retire(std::unique_ptr<Watch> watch);

    void run();
    void stop();
    void post(std::function<void()> task);

    // The reading of this round.
    [[nodiscard]] Now now() const { return now_; }
    [[nodiscard]] TimerWheel& timers() { return timers_; }

private:
    void round();
    void run_posted();
    void wake();

    const Clock& clock_;
    Now now_;
    TimerWheel timers_;
    Fd epoll_;
    Fd wake_fd_;
    std::array<epoll_event, max_events> events_;
    int event_count_ = 0;
    int event_at_ = 0;
    std::vector<Watch*> again_;
    std::vector<Watch*> again_now_;
    std::vector<std::unique_ptr<Watch>> retired_;

    std::mutex mutex_;
    std::vector<std::function<void()>> posted_;
    std::atomic<bool> stopping_{false};
};

}  // namespace ration::net
