// Where volatile state lives: one synchronous, thread-safe, batch-shaped interface for every
// store, so that a lock, a script and a remote server can each implement it.
//
// A transaction is all or nothing: its `take` charges are admitted together or none is charged,
// in one indivisible step under any concurrency. The exception is a limit that counts attempts
// (`Limit::count_attempts`): it counts each attempt exactly once, whatever the others say.
//
// Thread rule: `apply` may be called from any thread at once. Ownership: keys are read during the
// call only. Failure: a store that cannot answer says so per outcome (`Outcome::status`) and has
// charged nothing that it knows of.
//
//   ration::Charge charges[] = {{.key = "emails\x1f" "user-17", .rule_bytes = 7, .limit = limit}};
//   ration::Outcome outcome = counters->apply_one({.charges = charges}, clock.now());
//   if (outcome.admitted) send();
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "ration/limit.h"
#include "ration/time.h"

namespace ration {

inline constexpr std::size_t max_charges = 16;     // limits of one request
inline constexpr std::size_t max_key_bytes = 512;  // canonical key; longer ones are digested first

enum class ChargeOp : std::uint8_t {
    take,       // charge `cost` if it fits
    give_back,  // return up to `cost` units taken earlier; never lifts a level above capacity
    observe,    // report the level as a `take` of `cost` would find it; changes nothing
    force,      // charge `cost` that is already a fact, past the level if need be; always admitted
    require,    // refuse the transaction where a `take` of `cost` would, but charge nothing
};

struct Charge {
    std::string_view key;  // limit identity, then the parts of the key, joined unambiguously
    std::uint16_t rule_bytes = 0;  // how many leading bytes of `key` are the limit's identity
    ChargeOp op = ChargeOp::take;
    std::uint32_t cost = 1;
    LimitRef limit;
    // give_back only: when the units were taken. A window returns them to the window they were
    // taken in and to no other; without it they are taken off the window now running.
    std::optional<Now> taken{};
    // When this limit's numbers last changed for this key, whether or not to those in `limit`: use
    // that is kept under other numbers is first brought to this moment under its own.
    Mono numbers_since{};
};

struct Transaction {
    std::span<const Charge> charges;  // at most max_charges
    // Names the request for stores that keep in-flight slots as leases; equal on take and give
    // back.
    std::uint64_t lease = 0;
};

struct Outcome {
    // kUnavailable: the store gave no answer. kInvalidArgument: more than max_charges charges, a
    // key longer than max_key_bytes, rule_bytes past the key, or no limit; nothing was charged.
    absl::StatusCode status = absl::StatusCode::kOk;
    bool admitted = false;
    std::uint8_t count = 0;  // levels in use, in the order of the charges
    // Bit i: charge i met the bucket that newcomers of its limit share, since there was no room for
    // its key. What it counts is not that key's alone.
    std::uint16_t shared = 0;
    // The time that decided: the call's own, or what a shared store read from its clock (both
    // readings are then Unix time). It is what `Charge::taken` means.
    Now at{};
    std::array<Level, max_charges> levels;
};

struct CounterStats {
    std::uint64_t keys = 0;        // tracked now
    std::uint64_t capacity = 0;    // keys that fit
    std::uint64_t bytes = 0;       // memory reserved for them
    std::uint64_t evictions = 0;   // keys dropped because they were back to never-seen
    std::uint64_t overflowed = 0;  // charges that went to a limit's shared overflow bucket
};

class Counters {
public:
    virtual ~Counters() = default;

    // Judges each transaction in order; `outcomes` is as long as `transactions`.
    virtual void apply(std::span<const Transaction> transactions, Now now,
                       std::span<Outcome> outcomes) = 0;

    // Drops keys that are back to never-seen, looking at about `budget` of them.
    virtual void sweep(Now now, std::size_t budget) = 0;

    [[nodiscard]] virtual CounterStats stats() const = 0;

    [[nodiscard]] Outcome apply_one(const Transaction& transaction, Now now) {
        Outcome outcome;
        apply({&transaction, 1}, now, {&outcome, 1});
        return outcome;
    }
};

struct MemoryCountersOptions {
    std::uint64_t max_bytes = 256ULL << 20;  // for everything; reserved, touched as keys come
    std::uint32_t shards = 0;                // 0: chosen from the size
    // Part of `max_bytes` kept for sliding windows and sliding counters; 0: an eighth. At least
    // 16 KiB, and it must leave half of `max_bytes` to the keys.
    std::uint64_t log_bytes = 0;
    // Key of the hash; left out, it comes from the operating system, so that no caller can aim
    // collisions. Only tests and simulations give one.
    std::optional<std::array<std::uint8_t, 16>> hash_key{};
};

inline constexpr std::uint64_t min_counter_bytes = 64ULL << 10;
inline constexpr std::uint64_t max_counter_bytes = 256ULL << 30;
inline constexpr std::uint64_t min_log_bytes = 16ULL << 10;
inline constexpr std::uint32_t max_shards = 1024;

// InvalidArgument when `max_bytes` is not from 64 KiB to 256 GiB, `log_bytes` is out of range, or
// `shards` is not a power of two, is above max_shards or leaves a shard less than 24 KiB.
// ResourceExhausted when the memory cannot be reserved.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Counters>> open_memory_counters(
    const MemoryCountersOptions& options);

}  // namespace ration
