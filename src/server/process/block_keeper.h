// Keeps blocks in the ledger: each becomes a job of the runner, and nobody waits for it.
//
// Thread rule: any thread. Ownership: the runner outlives the keeper. A block that cannot be
// written (the queue is full, the disk is) holds all the same, until the process ends.
#pragma once

#include <string_view>

#include "engine/block_book.h"
#include "ledger/runner.h"

namespace ration {

class BlockKeeper final : public BlockStore {
public:
    explicit BlockKeeper(LedgerRunner& runner) : runner_(runner) {}
    void keep(const Block& block) override;
    void drop(std::string_view key) override;

private:
    LedgerRunner& runner_;
};

}  // namespace ration
