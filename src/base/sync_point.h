// Named places in the program where a test can stop it, or kill it.
//
// In service no hook is set and a point costs one load. Only test binaries set one, before any
// thread starts. Thread rule: points are met on any thread.
//
//   sync_point("gateway.after_send");
#pragma once

#include <atomic>
#include <string_view>

namespace ration {

using SyncPointHook = void (*)(std::string_view name);

inline std::atomic<SyncPointHook> sync_point_hook{nullptr};

inline void sync_point(std::string_view name) {
    if (const SyncPointHook hook = sync_point_hook.load(std::memory_order_relaxed)) {
        hook(name);
    }
}

}  // namespace ration
