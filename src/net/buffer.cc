#include "net/buffer.h"

#include <algorithm>
#include <utility>

namespace ration::net {

std::unique_ptr<char[]> BlockPool::take() {
    if (free_.empty()) {
        return std::make_unique_for_overwrite<char[]>(block_bytes);
    }
    std::unique_ptr<char[]> block = std::move(free_.back());
    free_.pop_back();
    return block;
}

void BlockPool::give(std::unique_ptr<char[]> block) {
    if (free_.size() < max_pooled_blocks) {
        free_.push_back(std::move(block));
    }
}

void Buffer::release() {
    if (capacity_ == block_bytes) {
        pool_.give(std::move(bytes_));
    }
    bytes_.reset();
    capacity_ = begin_ = end_ = 0;
}

void Buffer::make_room(std::size_t least) {
    const std::size_t used = size();
    if (capacity_ >= used + least) {
        std::memmove(bytes_.get(), bytes_.get() + begin_, used);
    } else if (capacity_ == 0 && least <= block_bytes) {
        bytes_ = pool_.take();
        capacity_ = block_bytes;
    } else {
        const std::size_t wanted = std::max(used + least, capacity_ * 2);
        auto larger = std::make_unique_for_overwrite<char[]>(wanted);
        if (used > 0) {
            std::memcpy(larger.get(), bytes_.get() + begin_, used);
        }
        if (capacity_ == block_bytes) {
            pool_.give(std::move(bytes_));
        }
        bytes_ = std::move(larger);
        capacity_ = wanted;
    }
    begin_ = 0;
    end_ = used;
}

}  // namespace ration::net
