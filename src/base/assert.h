// A check that stays on in release builds: the program stops rather than go on with a broken
// promise of its own. Never for input: what comes from outside is answered, not asserted.
//
//   RATION_ASSERT(!exchange.open);
#pragma once

#include <cstdio>
#include <cstdlib>

#define RATION_ASSERT(condition)                                                                 \
    do {                                                                                         \
        if (!(condition)) [[unlikely]] {                                                         \
            std::fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                                        \
        }                                                                                        \
    } while (false)
