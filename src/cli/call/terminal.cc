#include "cli/call/terminal.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <csignal>

#include <cstdlib>
#include <iostream>

#include "base/text.h"
#include "cli/call/ending.h"

namespace ration {
namespace {

constexpr int tick_milliseconds = 100;

std::size_t columns() {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1U : 79U;
}

}  // namespace

Terminal::Terminal() : is_terminal_(isatty(STDERR_FILENO) == 1) {
    std::cerr.tie(nullptr);  // who reads stdout slowly holds up nothing else
}

void Terminal::line(std::string_view text) {
    const std::lock_guard lock(mutex_);
    std::cerr << (shown_ ? "\r\x1b[K" : "") << text << '\n';
    shown_ = false;
}

void Terminal::beside(const std::function<void()>& write) {
    const std::lock_guard lock(mutex_);
    std::cerr << (shown_ ? "\r\x1b[K" : "") << std::flush;
    shown_ = false;
    write();
}

void Terminal::live(std::string_view text) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
        return;  // somebody writes, maybe for long: whoever shows this looks after signals too
    }
    if (!is_terminal_ || (text.empty() && !shown_)) {
        return;
    }
    std::cerr << "\r\x1b[K" << text.substr(0, columns()) << std::flush;
    shown_ = !text.empty();
}

Interrupts::Interrupts(Cancellation cancellation, std::function<void()> tick)
    : cancellation_(std::move(cancellation)), tick_(std::move(tick)) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    signals_ = signalfd(-1, &set, SFD_CLOEXEC);
    stop_ = eventfd(0, EFD_CLOEXEC);
    thread_ = std::thread([this] { run(); });
}

Interrupts::~Interrupts() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(stop_, &one, sizeof one);
    thread_.join();
    close(signals_);
    close(stop_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Interrupts::run() const {
    pollfd ready[] = {{signals_, POLLIN, 0}, {stop_, POLLIN, 0}};
    while (true) {
        const int events = poll(ready, 2, tick_milliseconds);
        if (events > 0 && (ready[1].revents & POLLIN)) {
            return;
        }
        signalfd_siginfo signal;
        if (events > 0 && read(signals_, &signal, sizeof signal) > 0) {
            if (cancellation_.cancelled()) {
                std::_Exit(exit_interrupted);
            }
            cancellation_.cancel("interrupted");
        }
        tick_();
    }
}

}  // namespace ration
