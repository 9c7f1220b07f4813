// Writes down when tokens were last used: now and then, many in one job, and nobody waits for it.
//
// Thread rule: one thread. Ownership: table and runner outlive it. What could not be written (the
// queue is full) is lost until the token is used again: it is only for people to look at.
#pragma once

#include "engine/token_table.h"
#include "ledger/runner.h"

namespace ration {

inline constexpr std::size_t max_uses_per_job = 1000;

void write_down_uses(TokenTable& table, LedgerRunner& runner);

}  // namespace ration
