#include "counters/redis/alarm.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

#include "base/errno_status.h"

namespace ration {

absl::Status Alarm::open() {
    fd_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    if (!fd_.valid()) {
        return errno_status(errno, "timer");
    }
    return loop_.add(fd_.get(), *this);
}

void Alarm::set(Mono at) {
    if (at >= set_for_) {
        return;
    }
    set_for_ = at;
    const std::int64_t left = std::max<std::int64_t>(1, (at - loop_.now().mono).count());
    itimerspec timer{};
    timer.it_value.tv_sec = left / 1'000'000'000;
    timer.it_value.tv_nsec = left % 1'000'000'000;
    ::timerfd_settime(fd_.get(), 0, &timer, nullptr);
}

void Alarm::on_ready(std::uint32_t /*events*/) {
    std::uint64_t rung = 0;
    if (::read(fd_.get(), &rung, sizeof rung) == sizeof rung) {
        set_for_ = Mono::max();
        ring_();
    }
}

}  // namespace ration
