// `ration replay`: requests of a log through a policy on a virtual clock, from fresh state.
//
// JSON lines in, JSON lines out, one answer per request line and in the same order, written as soon
// as every answer before it is there; what is kept in memory is the requests in flight and the
// answers that wait behind them. Thread rule: one thread.
//
// A wrong line ends the run: what was begun before it is answered, the line is named in `errors`
// (`file:line:column: reason`), nothing after it happens. A policy file that cannot be loaded by a
// reload event changes nothing; its problems go to `errors` and the run goes on, as in service.
#pragma once

#include <istream>
#include <ostream>
#include <string>

#include "workbench/rules_loader.h"
#include "workbench/virtual_service.h"

namespace ration {

struct ReplayOptions {
    Rules rules;
    std::string input_name = "-";  // for messages
    Nanos upstream_timeout = std::chrono::seconds(60);
    std::uint64_t counter_bytes = 256ULL << 20;
    std::size_t max_in_flight = default_max_in_flight;
};

// False when the input was wrong.
[[nodiscard]] bool replay(const ReplayOptions& options, std::istream& in, std::ostream& out,
                          std::ostream& errors);

}  // namespace ration
