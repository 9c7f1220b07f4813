// Counts heap allocations of the whole program. Include from one file of a test or benchmark
// program: it replaces the global operators.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace ration::testing {

inline std::atomic<std::uint64_t> allocations{0};

// Not inlined: the compiler would see malloc behind new and doubt free behind delete.
[[gnu::noinline]] inline void* counted(std::size_t size) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (void* memory = std::malloc(size == 0 ? 1 : size)) {
        return memory;
    }
    throw std::bad_alloc();
}

[[gnu::noinline]] inline void returned(void* memory) noexcept {
    std::free(memory);
}

}  // namespace ration::testing

void* operator new(std::size_t size) {
    return ration::testing::counted(size);
}
void* operator new[](std::size_t size) {
    return ration::testing::counted(size);
}
void operator delete(void* memory) noexcept {
    ration::testing::returned(memory);
}
void operator delete[](void* memory) noexcept {
    ration::testing::returned(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    ration::testing::returned(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    ration::testing::returned(memory);
}
