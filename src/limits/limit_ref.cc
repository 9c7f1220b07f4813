// One shared copy of each limit.
//
// Problem: a bucket's state names its limit in four bytes and both directions are looked up while
// deciding, from any thread; numbers that come from data are interned per request. Idea: entries
// live for ever in chunks that never move, and an open-addressing index of ids is only ever added
// to. Readers probe it without a lock: an id is published after its entry is complete. Adding is
// done under a mutex. Both arrays are static and zero, so what is not used costs no memory.
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ration/limit.h"

namespace ration {

namespace {

constexpr std::size_t chunk_entries = 1024;
constexpr std::size_t chunk_count = max_interned_limits / chunk_entries;
constexpr std::size_t index_size = 2 * max_interned_limits;

using Chunk = std::array<LimitRef::Entry, chunk_entries>;

struct Table {
    std::array<std::atomic<Chunk*>, chunk_count> chunks{};
    std::mutex mutex;         // adding
    std::uint32_t count = 0;  // under mutex
};

constinit Table table;
// id + 1; 0: free. A plain array: initialising one of this size as a constant is beyond clang's
// patience, leaving it zero is not.
std::atomic<std::uint32_t> id_index[index_size];

std::uint64_t mix(std::uint64_t value) {
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93ULL;
    value ^= value >> 32;
    return value;
}

std::size_t first_place(const Limit& limit) {
    std::uint64_t hash = mix(limit.amount + (std::uint64_t{limit.count_attempts} << 63));
    hash = mix(hash ^ limit.capacity);
    hash = mix(hash ^ static_cast<std::uint64_t>(limit.period.count()));
    hash = mix(hash ^ static_cast<std::uint64_t>(limit.kind));
    return hash % index_size;
}

const LimitRef::Entry& entry_of(std::uint32_t id) {
    const Chunk* chunk = table.chunks[id / chunk_entries].load(std::memory_order_acquire);
    return (*chunk)[id % chunk_entries];
}

// The entry of `limit`, or nullptr and the free place where its id belongs.
const LimitRef::Entry* find(const Limit& limit, std::size_t& place) {
    for (place = first_place(limit);; place = (place + 1) % index_size) {
        const std::uint32_t id_plus_one = id_index[place].load(std::memory_order_acquire);
        if (id_plus_one == 0) {
            return nullptr;
        }
        const LimitRef::Entry& entry = entry_of(id_plus_one - 1);
        if (entry.limit == limit) {
            return &entry;
        }
    }
}

const LimitRef::Entry& add(const Limit& limit, std::size_t place) {
    const std::uint32_t id = table.count;
    if (id % chunk_entries == 0) {
        // Never freed: references to limits outlive everything else in the process.
        table.chunks[id / chunk_entries].store(std::make_unique<Chunk>().release(),
                                               std::memory_order_release);
    }
    Chunk& chunk = *table.chunks[id / chunk_entries].load(std::memory_order_relaxed);
    LimitRef::Entry& entry = chunk[id % chunk_entries];
    entry.limit = limit;
    entry.id = id;
    if (limit.period > Nanos{0} && limit.amount != 0) {
        const auto nanos = static_cast<std::uint64_t>(limit.period.count());
        const std::uint64_t common = std::gcd(limit.amount, nanos);
        entry.rate_tokens = limit.amount / common;
        entry.rate_nanos = nanos / common;
    }
    table.count = id + 1;
    id_index[place].store(id + 1, std::memory_order_release);
    return entry;
}

}  // namespace

absl::StatusOr<LimitRef> LimitRef::of(const Limit& limit) {
    std::size_t place = 0;
    if (const Entry* entry = find(limit, place)) {
        return LimitRef(entry);
    }
    if (absl::Status status = validate(limit); !status.ok()) {
        return status;
    }
    const std::lock_guard lock(table.mutex);
    if (const Entry* entry = find(limit, place)) {
        return LimitRef(entry);
    }
    if (table.count == max_interned_limits) {
        return absl::ResourceExhaustedError(
            absl::StrCat("more than ", max_interned_limits, " different limits in one process"));
    }
    return LimitRef(&add(limit, place));
}

LimitRef LimitRef::from_id(std::uint32_t id) {
    return LimitRef(&entry_of(id));
}

}  // namespace ration
