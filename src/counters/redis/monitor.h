// What is counted about the calls to Redis: of all connections of one store together.
//
// Thread rule: any member from any thread. Units: calls, nanoseconds.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "ration/time.h"

namespace ration {

// Why a call got no answer that counts.
enum class RedisFailure : std::uint8_t {
    down,      // there was no connection, so it was not sent
    queue,     // too many calls waited already
    deadline,  // no answer in time; its connection was dropped
    broken,    // the connection broke, or was dropped because of another call
    error,     // the server answered with an error
    nonsense,  // the answer was none
    count,
};
inline constexpr auto redis_failures = static_cast<std::size_t>(RedisFailure::count);
inline constexpr std::array<const char*, redis_failures> redis_failure_names{
    "down", "queue", "deadline", "broken", "error", "nonsense"};

inline constexpr std::size_t redis_latency_buckets = 10;
// Upper bounds in nanoseconds: 100 us to 100 ms; what took longer is in the count only.
inline constexpr std::array<std::int64_t, redis_latency_buckets> redis_latency_bounds{
    100'000,   200'000,    500'000,    1'000'000,  2'000'000,
    5'000'000, 10'000'000, 20'000'000, 50'000'000, 100'000'000};

struct RedisStats {
    std::uint64_t answered = 0;  // calls
    std::array<std::uint64_t, redis_failures> failed{};
    std::uint64_t connects = 0;      // connections that became ready, the first ones among them
    std::uint64_t connections = 0;   // wanted
    std::uint64_t ready = 0;         // of these, ready now
    std::uint64_t script_loads = 0;  // after the server had lost the script
    std::uint64_t waiting = 0;       // calls without an answer now
    std::array<std::uint64_t, redis_latency_buckets> latency{};  // not cumulative
    std::uint64_t latency_sum = 0;                               // nanoseconds
    std::string trouble;  // what the last failure was about; empty: there was none
};

class RedisMonitor {
public:
    void answered(Nanos took);
    void failed(RedisFailure why) { add(failed_[static_cast<std::size_t>(why)], 1); }
    void trouble(std::string_view what);
    void link_made() { add(connections_, 1); }
    void link_gone() { add(connections_, ~std::uint64_t{0}); }
    void connected() {
        add(connects_, 1);
        add(ready_, 1);
    }
    void disconnected() { add(ready_, ~std::uint64_t{0}); }
    void script_loaded() { add(script_loads_, 1); }
    void waiting(std::int64_t change) { add(waiting_, static_cast<std::uint64_t>(change)); }
    [[nodiscard]] RedisStats stats() const;

private:
    using Count = std::atomic<std::uint64_t>;
    static void add(Count& count, std::uint64_t by) {
        count.fetch_add(by, std::memory_order_relaxed);
    }

    Count answered_{0};
    std::array<Count, redis_failures> failed_{};
    Count connects_{0};
    Count connections_{0};
    Count ready_{0};
    Count script_loads_{0};
    Count waiting_{0};
    std::array<Count, redis_latency_buckets> latency_{};
    Count latency_sum_{0};
    mutable std::mutex mutex_;
    std::string trouble_;
};

}  // namespace ration
