// One take from one bucket: hot key, a million keys, ten million keys; one thread and two. Beside
// it a sharded hash map of strings behind mutexes that does the same arithmetic. The clock is
// passed in and moves 50 ns per call; every key has room, so that each call is an admission. Where
// there are many keys, their texts are made in the loop (key_text_only says what that costs).
//
// `bytes_per_key` is all the memory reserved for the keys (ration: fixed when opened; the map:
// what the heap handed out) divided by the live keys.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "limits/use.h"
#include "ration/counters.h"

namespace ration {
namespace {

constexpr std::string_view prefix = "caller budget\x1f";
constexpr std::int64_t step_ns = 50;
constexpr Now start{Mono(std::chrono::hours(1)), Wall(std::chrono::seconds(1'700'000'000))};

LimitRef hot_limit() {
    return *LimitRef::of(token_bucket(1'000'000'000, std::chrono::minutes(20)));
}
// In debt for as long as the run lasts, so that no key ever equals never-seen.
LimitRef wide_limit() {
    return *LimitRef::of(token_bucket(1'000'000, std::chrono::hours(24)));
}

// "caller budget<1f>10.1.2.3"-like keys, made in place.
struct KeyText {
    char bytes[48];
    std::size_t size = prefix.size();

    KeyText() { std::memcpy(bytes, prefix.data(), prefix.size()); }
    std::string_view of(std::uint64_t number) {
        char* end = std::to_chars(bytes + prefix.size(), bytes + sizeof bytes, number).ptr;
        size = static_cast<std::size_t>(end - bytes);
        return {bytes, size};
    }
};

struct Random {
    std::uint64_t state;
    std::uint64_t below(std::uint64_t bound) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        __extension__ using u128 = unsigned __int128;
        return static_cast<std::uint64_t>((static_cast<u128>(state) * bound) >> 64);
    }
};

class RationTable {
public:
    explicit RationTable(std::uint64_t keys) {
        // 28 or 36 bytes a key with all that does not grow, and the least a table can have.
        const std::uint64_t bytes =
            std::max<std::uint64_t>(keys * (keys >= 10'000'000 ? 28 : 36), 1U << 20);
        counters_ = *open_memory_counters({.max_bytes = bytes, .log_bytes = min_log_bytes});
    }
    struct Caller {
        Outcome outcome;
    };
    bool take(Caller& caller, std::string_view key, LimitRef limit, Now now) {
        const Charge charge{
            .key = key, .rule_bytes = static_cast<std::uint16_t>(prefix.size()), .limit = limit};
        const Transaction transaction{.charges = {&charge, 1}};
        counters_->apply({&transaction, 1}, now, {&caller.outcome, 1});
        return caller.outcome.admitted;
    }
    double bytes() const { return static_cast<double>(counters_->stats().bytes); }
    double keys() const { return static_cast<double>(counters_->stats().keys); }

private:
    std::unique_ptr<Counters> counters_;
};

class MapTable {
public:
    explicit MapTable(std::uint64_t) : heap_before_(heap()) {}
    struct Caller {};
    bool take(Caller&, std::string_view key, LimitRef limit, Now now) {
        // By bits that the maps do not go by: else all keys of a shard would look alike to them.
        const std::size_t hash = absl::HashOf(absl::string_view(key.data(), key.size()));
        Shard& shard = shards_[(hash >> 48) % shards];
        const std::lock_guard lock(shard.mutex);
        Use& use = shard.uses.try_emplace(absl::string_view(key.data(), key.size())).first->second;
        const Level level = ration::take(limit.entry(), use, 1, now);
        return level.verdict == Verdict::admitted;
    }
    double bytes() const { return heap() - heap_before_; }
    double keys() const {
        std::size_t sum = 0;
        for (const Shard& shard : shards_) {
            sum += shard.uses.size();
        }
        return static_cast<double>(sum);
    }

private:
    static constexpr std::size_t shards = 64;
    static double heap() {
        const auto info = mallinfo2();
        return static_cast<double>(info.uordblks + info.hblkhd);
    }
    struct alignas(64) Shard {
        std::mutex mutex;
        absl::flat_hash_map<std::string, Use> uses;
    };
    Shard shards_[shards];
    double heap_before_;
};

// A table with all its keys in it. It is filled once for all rounds: ten million keys take a map
// half a minute.
template <typename Table>
struct Filled {
    explicit Filled(std::uint64_t keys)
        : limit(keys == 1 ? hot_limit() : wide_limit()), table(keys) {
        KeyText key;
        typename Table::Caller caller;
        for (std::uint64_t i = 0; i < keys; ++i) {
            table.take(caller, key.of(i), limit, start);
        }
        bytes_per_key = table.bytes() / table.keys();
    }
    LimitRef limit;
    Table table;
    double bytes_per_key = 0;
    Now now = start;  // where the next round's time begins
};

template <typename Table>
Filled<Table>& filled_with(std::uint64_t keys) {
    static std::mutex mutex;
    static std::map<std::uint64_t, std::unique_ptr<Filled<Table>>> all;
    const std::lock_guard lock(mutex);
    std::unique_ptr<Filled<Table>>& filled = all[keys];
    if (!filled) {
        filled = std::make_unique<Filled<Table>>(keys);
    }
    return *filled;
}

template <typename Table>
void take_one(benchmark::State& state) {
    const auto keys = static_cast<std::uint64_t>(state.range(0));
    Filled<Table>& filled = filled_with<Table>(keys);
    KeyText key;
    auto caller = std::make_unique<typename Table::Caller>();
    Random random{0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(state.thread_index()) * 977};
    Now now = filled.now;
    std::uint64_t refused = 0;
    std::string_view text = key.of(0);
    for (auto _ : state) {
        now = later(now, Nanos(step_ns));
        if (keys != 1) {
            text = key.of(random.below(keys));
        }
        refused += filled.table.take(*caller, text, filled.limit, now) ? 0 : 1;
    }
    state.counters["refused"] = static_cast<double>(refused);
    if (state.thread_index() == 0) {
        state.counters["bytes_per_key"] = filled.bytes_per_key;
        filled.now = now;
    }
}

void key_text_only(benchmark::State& state) {
    KeyText key;
    Random random{0x9e3779b97f4a7c15ULL};
    for (auto _ : state) {
        benchmark::DoNotOptimize(key.of(random.below(10'000'000)));
    }
}

void sizes(benchmark::internal::Benchmark* bench) {
    for (const std::int64_t keys : {1, 1'000'000, 10'000'000}) {
        bench->Arg(keys);
    }
    bench->ArgName("keys")->UseRealTime();
}

BENCHMARK(key_text_only);
BENCHMARK(take_one<RationTable>)->Apply(sizes)->Threads(1)->Threads(2);
BENCHMARK(take_one<MapTable>)->Apply(sizes)->Threads(1)->Threads(2);

}  // namespace
}  // namespace ration

BENCHMARK_MAIN();
