// Blocks of 64 bytes for state that does not fit a slot: the records of sliding windows, the two
// counts of sliding counters. A fixed number of them; the last ones are kept for overflow buckets.
//
// Thread rule: `take` and `give` may be called from any thread (a lock of its own, taken inside a
// shard's); a block's content belongs to the shard whose slot leads to it.
#pragma once

#include <array>
#include <cstdint>

#include "counters/pages.h"
#include "counters/spin_lock.h"

namespace ration {

struct Block {
    static constexpr std::uint16_t records = 4;

    std::uint32_t next = 0;   // 0: none
    std::uint32_t last = 0;   // first block only: the last of the chain
    std::uint32_t total = 0;  // first block only: units in the chain
    std::uint16_t begin = 0;  // records [begin, end) are in use
    std::uint16_t end = 0;
    std::array<std::int64_t, records> instants{};
    std::array<std::uint32_t, records> units{};  // sliding counter: used, before
};
static_assert(sizeof(Block) == 64);

class BlockPool {
public:
    enum class Use : std::uint8_t { ordinary, reserve };

    BlockPool() = default;
    // All but `reserved` of the blocks are for ordinary use.
    BlockPool(Pages pages, std::uint32_t reserved);

    // A zeroed block's number, or 0 when there is none left for this use.
    [[nodiscard]] std::uint32_t take(Use use);
    void give(std::uint32_t number);
    [[nodiscard]] Block& operator[](std::uint32_t number) { return blocks_[number]; }
    [[nodiscard]] std::uint64_t bytes() const { return pages_.bytes(); }

private:
    Pages pages_;
    Block* blocks_ = nullptr;
    std::uint32_t count_ = 0;  // blocks 1 to count_ - 1 are handed out
    std::uint32_t reserved_ = 0;
    SpinLock lock_;
    std::uint32_t fresh_ = 1;  // first never handed out
    std::uint32_t free_ = 0;   // list by `next`
    std::uint32_t in_use_ = 0;
};

}  // namespace ration
