// Edge-triggered epoll with one registration per descriptor. The wake-up descriptor (eventfd) is
// the only one registered without a watch. Timers are looked at once per round; the wait never
// exceeds one tick, so a clock that is moved by hand is noticed too.
#include "net/loop.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "base/errno_status.h"

namespace ration::net {

Loop::Loop(const Clock& clock) : clock_(clock), now_(clock.now()), timers_(now_.mono) {}

Loop::~Loop() = default;

absl::Status Loop::open() {
    epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    wake_fd_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!epoll_.valid() || !wake_fd_.valid()) {
        return errno_status(errno, "event loop");
    }
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = nullptr;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_fd_.get(), &event) != 0) {
        return errno_status(errno, "event loop");
    }
    return absl::OkStatus();
}

absl::Status Loop::add(int fd, Watch& watch) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.ptr = &watch;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
        return errno_status(errno, "cannot watch a connection");
    }
    return absl::OkStatus();
}

absl::Status Loop::add_listener(int fd, Watch& watch) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLEXCLUSIVE;
    event.data.ptr = &watch;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
        return errno_status(errno, "cannot watch a listener");
    }
    return absl::OkStatus();
}

void Loop::forget(Watch& watch) {
    for (int i = event_at_; i < event_count_; ++i) {
        epoll_event& event = events_[static_cast<std::size_t>(i)];
        if (event.data.ptr == &watch) {
            event.data.ptr = nullptr;
        }
    }
    std::replace(again_.begin(), again_.end(), &watch, static_cast<Watch*>(nullptr));
    std::replace(again_now_.begin(), again_now_.end(), &watch, static_cast<Watch*>(nullptr));
}

void Loop::retire(std::unique_ptr<Watch> watch) {
    forget(*watch);
    retired_.push_back(std::move(watch));
}

void Loop::run() {
    while (!stopping_.load(std::memory_order_acquire)) {
        round();
    }
    run_posted();
    retired_.clear();
}

void Loop::round() {
    const int wait_ms =
        again_.empty()
            ? static_cast<int>(
                  std::chrono::duration_cast<std::chrono::milliseconds>(timer_tick).count())
            : 0;
    event_at_ = 0;
    event_count_ =
        ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), wait_ms);
    event_count_ = std::max(event_count_, 0);
    now_ = clock_.now();
    bool woken = false;
    again_now_.swap(again_);
    while (event_at_ < event_count_) {
        const epoll_event event = events_[static_cast<std::size_t>(event_at_++)];
        if (event.data.ptr != nullptr) {
            static_cast<Watch*>(event.data.ptr)->on_ready(event.events);
        } else {
            woken = true;  // or the watch was forgotten: then looking at the queue costs little
        }
    }
    for (std::size_t i = 0; i < again_now_.size(); ++i) {
        if (again_now_[i] != nullptr) {
            again_now_[i]->on_ready(0);
        }
    }
    again_now_.clear();
    if (woken) {
        run_posted();
    }
    timers_.advance(now_.mono);
    retired_.clear();
}

void Loop::run_posted() {
    std::uint64_t ignored = 0;
    while (::read(wake_fd_.get(), &ignored, sizeof ignored) > 0) {
    }
    std::vector<std::function<void()>> tasks;
    {
        const std::lock_guard lock(mutex_);
        tasks.swap(posted_);
    }
    for (const auto& task : tasks) {
        task();
    }
}

void Loop::wake() {
    const std::uint64_t one = 1;
    // A full counter already wakes the loop, so a failed write loses nothing.
    [[maybe_unused]] const auto written = ::write(wake_fd_.get(), &one, sizeof one);
}

void Loop::post(std::function<void()> task) {
    bool first = false;
    {
        const std::lock_guard lock(mutex_);
        first = posted_.empty();
        posted_.push_back(std::move(task));
    }
    if (first) {  // what lies there already has woken the loop, which takes all of it
        wake();
    }
}

void Loop::stop() {
    stopping_.store(true, std::memory_order_release);
    wake();
}

}  // namespace ration::net
