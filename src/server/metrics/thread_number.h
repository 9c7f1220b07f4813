// A small number for the calling thread, for picking a shard: threads that start one after another
// get neighbouring numbers, so a pool no larger than the shards shares none.
#pragma once

#include <atomic>
#include <cstddef>

namespace ration {

[[nodiscard]] inline std::size_t thread_number() {
    static std::atomic<std::size_t> next{0};
    thread_local const std::size_t number = next.fetch_add(1, std::memory_order_relaxed);
    return number;
}

}  // namespace ration
