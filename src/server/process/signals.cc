#include "server/process/signals.h"

#include <csignal>
#include <initializer_list>

namespace ration {

namespace {

sigset_t taken() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
        sigaddset(&set, signal);
    }
    return set;
}

}  // namespace

void Signals::block() {
    const sigset_t set = taken();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit is a failed write, as a full disk is
}

Signal Signals::next() {
    const sigset_t set = taken();
    for (;;) {
        int signal = 0;
        if (sigwait(&set, &signal) != 0) {
            continue;
        }
        switch (signal) {
            case SIGHUP:
                return Signal::reload;
            case SIGUSR1:
                return Signal::reopen_logs;
            default:
                return Signal::stop;
        }
    }
}

}  // namespace ration
