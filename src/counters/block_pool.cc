#include "counters/block_pool.h"

#include <utility>

namespace ration {

BlockPool::BlockPool(Pages pages, std::uint32_t reserved)
    : pages_(std::move(pages)),
      blocks_(static_cast<Block*>(pages_.data())),
      count_(static_cast<std::uint32_t>(pages_.bytes() / sizeof(Block))),
      reserved_(reserved) {}

std::uint32_t BlockPool::take(Use use) {
    lock_.lock();
    const std::uint32_t most = count_ - 1 - (use == Use::ordinary ? reserved_ : 0);
    std::uint32_t number = 0;
    if (in_use_ < most) {
        ++in_use_;
        if (free_ != 0) {
            number = free_;
            free_ = blocks_[number].next;
        } else {
            number = fresh_++;
        }
    }
    lock_.unlock();
    if (number != 0) {
        blocks_[number] = Block{};
    }
    return number;
}

void BlockPool::give(std::uint32_t number) {
    lock_.lock();
    blocks_[number].next = free_;
    free_ = number;
    --in_use_;
    lock_.unlock();
}

}  // namespace ration
