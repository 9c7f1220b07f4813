// Signals in threads that serve sockets.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace ration::net {

// For the calling thread and those it starts: signals are the main thread's matter, and a broken
// pipe is nobody's. What a fault of the thread itself raises, and profilers send, stays open.
inline void block_signals() {
    sigset_t all;
    sigfillset(&all);
    for (const int fatal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGPROF}) {
        sigdelset(&all, fatal);
    }
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace ration::net
