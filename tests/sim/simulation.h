// A whole life of a gateway from one number: clients that retry, repeat and leave, an upstream that
// is late, silent and broken, a disk that fails, a process that is killed and a machine that loses
// power, hours that pass, an operator who settles doubts. The same seed gives the same life, to the
// last byte.
//
//   Outcome outcome = simulate(seed, {});
//   if (!outcome.violation.empty()) print(outcome.text);
#pragma once

#include <cstdint>
#include <string>

#include "sim/checked_ledger.h"

namespace ration::sim {

struct SimulationOptions {
    bool compare = true;  // with the model; false: judged from outside alone
    WrapLedger wrap;      // a mutant
    bool answers_first = false;
    bool lying_disk = false;
};

struct Outcome {
    std::string violation;  // empty: everything held
    std::string text;       // the end of its journal
    // What the life met, so that a test can see that it met something.
    std::uint64_t requests = 0;
    std::uint64_t effects = 0;
    std::uint64_t replays = 0;
    std::uint64_t second_tries = 0;
    std::uint64_t ceilings = 0;
    std::uint64_t contended = 0;
    std::uint64_t crashes = 0;
    std::uint64_t torn_commits = 0;  // power went in the middle of one
    std::uint64_t failed_batches = 0;
    std::uint64_t settled_by_hand = 0;
    std::uint64_t fingerprint = 0;  // of everything that was heard

    Outcome& operator+=(const Outcome& other);
};

[[nodiscard]] Outcome simulate(std::uint64_t seed, const SimulationOptions& options);

}  // namespace ration::sim
