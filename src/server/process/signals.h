// The signals a server answers to, taken one by one by the main thread instead of by handlers.
//
// `block` is called before the first thread starts, so that every thread inherits the mask and only
// `next` sees the signals; SIGPIPE is ignored for good. Thread rule: `block` once, `next` from one
// thread.
#pragma once

namespace ration {

enum class Signal : unsigned char { stop, reload, reopen_logs };

class Signals {
public:
    static void block();
    // Waits for the next one: SIGTERM and SIGINT, SIGHUP, SIGUSR1.
    [[nodiscard]] static Signal next();
};

}  // namespace ration
