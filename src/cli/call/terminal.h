// stderr as people see it: lines that stay, and on a terminal one live line below them.
//
// Thread rule: any thread. Where stderr is no terminal the live line is never written.
#pragma once

#include <csignal>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "ration/client.h"

namespace ration {

class Terminal {
public:
    Terminal();
    ~Terminal() { live(""); }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    [[nodiscard]] bool has_live_line() const { return is_terminal_; }
    void line(std::string_view text);
    // `write` writes lines elsewhere, maybe to the same screen: the live line is out of their way.
    void beside(const std::function<void()>& write);
    // Replaces the live line, cut to the terminal's width; empty takes it away. Never waits for
    // whoever writes just now.
    void live(std::string_view text);

private:
    bool is_terminal_;
    std::mutex mutex_;
    bool shown_ = false;
};

// Ctrl-C and SIGTERM cancel; `tick` is called about ten times a second. Made before any other
// thread, so that none of them gets the signals. A second signal ends the process. Afterwards the
// signals do again what they did before.
class Interrupts {
public:
    Interrupts(Cancellation cancellation, std::function<void()> tick);
    ~Interrupts();
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

private:
    void run() const;

    Cancellation cancellation_;
    std::function<void()> tick_;
    int signals_;
    int stop_;
    sigset_t before_;
    std::thread thread_;
};

}  // namespace ration
