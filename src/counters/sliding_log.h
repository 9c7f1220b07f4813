// The records of one sliding window: a chain of blocks, oldest first, as `LogView` reads it.
//
// Not thread-safe; the shard's lock is held around every call. The first block's number is the
// caller's to keep: it changes as records expire. When the pool has no block left, new units join
// the newest record at the later instant: they leave later than they could, never earlier.
#pragma once

#include <cstdint>
#include <optional>

#include "counters/block_pool.h"
#include "ration/time.h"

namespace ration {

class SlidingLog {
public:
    // `first` is never 0: an empty log is one empty block.
    SlidingLog(BlockPool& pool, std::uint32_t first) : pool_(pool), first_(first) {}

    [[nodiscard]] std::uint32_t first() const { return first_; }
    [[nodiscard]] std::uint64_t units() const { return pool_[first_].total; }
    [[nodiscard]] Mono instant_of(std::uint64_t k) const;
    [[nodiscard]] Mono newest() const;

    // Drops records of age `period` and more.
    void expire(Mono now, Nanos period);
    void push(Mono now, std::uint32_t units, BlockPool::Use use);
    // Takes off up to `units`: from the record of `taken` on, else from the newest ones.
    void remove(std::uint32_t units, const std::optional<Mono>& taken);
    // Leaves one zeroed block.
    void clear();
    // Gives all blocks back; the log is gone.
    void release();

private:
    void drop_first();
    void remove_from(std::uint32_t units, Mono taken);

    BlockPool& pool_;
    std::uint32_t first_;
};

}  // namespace ration
