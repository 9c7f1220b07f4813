// One transaction on the memory counters, from its keys to its outcome.
//
// Lives on the stack of one `apply`; not thread-safe, holds its shards' locks while it runs.
//
//   TransactionRun run(tables, transaction, now);
//   run.execute(outcome);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "counters/shard.h"
#include "ration/counters.h"

namespace ration {

// Where a limit's use is kept: in the slot alone, or in blocks that the slot leads to.
[[nodiscard]] inline bool is_log(const LimitRef::Entry& numbers) {
    return numbers.limit.kind == LimitKind::sliding_window;
}
[[nodiscard]] inline bool needs_block(const LimitRef::Entry& numbers) {
    return is_log(numbers) || numbers.limit.kind == LimitKind::sliding_counter;
}
[[nodiscard]] inline bool is_in_flight(const LimitRef::Entry& numbers) {
    return numbers.limit.kind == LimitKind::concurrency;
}

// The commonest transaction by the shortest way: one take from a key that is there, its numbers
// unchanged, its use in the slot. False: it is not that one, and nothing was done.
[[nodiscard]] bool take_in_slot(Tables& tables, const Transaction& transaction, Now now,
                                Outcome& outcome);

class TransactionRun {
public:
    TransactionRun(Tables& tables, const Transaction& transaction, Now now)
        : tables_(tables), charges_(transaction.charges), now_(now) {}

    void execute(Outcome& outcome);

private:
    // What is known of one key while the transaction runs. Charges on the same key share the
    // first one's.
    struct Work {
        const LimitRef::Entry* numbers;  // that the use is kept under
        Use found_use;                   // as it was
        Use use;                         // with this transaction's steps
        std::uint32_t shard;
        std::uint32_t position;  // where the key was; slots may have moved since
        std::uint32_t block;     // 0: none
        std::uint32_t pending;   // units to record in the log
        std::uint8_t lead;       // the first charge on the same key
        bool found;
        bool changed;
        bool inserted;
        bool lowered;      // units were given back
        bool taken_block;  // `block` was taken from the pool for a key not yet in the table
    };
    // Room for every charge's work, made one by one: zeroing all of it would cost as much as a
    // decision.
    class Works {
    public:
        Work& make(std::size_t i) { return *std::construct_at(&(*this)[i]); }
        Work& operator[](std::size_t i) { return reinterpret_cast<Work*>(bytes_)[i]; }
        const Work& operator[](std::size_t i) const {
            return reinterpret_cast<const Work*>(bytes_)[i];
        }

    private:
        alignas(Work) std::byte bytes_[max_charges * sizeof(Work)];
    };
    static_assert(std::is_trivially_destructible_v<Work>);

    [[nodiscard]] bool valid() const;
    void hash_keys();
    void lock_shards();
    void unlock_shards();
    void lock_overflow();

    [[nodiscard]] bool load(std::size_t i);
    [[nodiscard]] bool share(std::size_t i);
    void read_slot(std::size_t i);
    [[nodiscard]] bool start_key(std::size_t i);
    [[nodiscard]] bool will_take(std::size_t i) const;
    [[nodiscard]] bool make_room(std::size_t i);
    [[nodiscard]] bool take_block(std::size_t i, BlockPool::Use use);
    [[nodiscard]] bool overflow_holds(std::size_t i);
    [[nodiscard]] bool go_to_overflow(std::size_t i);
    void adopt_numbers(std::size_t i);
    void convert_blocks(std::size_t i, const LimitRef::Entry& numbers, Mono since);
    void relabel_log(std::size_t i, const LimitRef::Entry& numbers, Mono since);
    [[nodiscard]] Now moment_of_change(const Work& work, Mono since) const;
    [[nodiscard]] std::uint32_t units_at(Work& work, Now at);

    void judge(Outcome& outcome);
    void charge_attempts_only(Outcome& outcome);
    [[nodiscard]] Level step(std::size_t i);
    [[nodiscard]] Level log_step(const Charge& charge, Work& work);
    [[nodiscard]] Level give_back_step(const Charge& charge, Work& work);

    void store();
    void store_log(Work& work, std::uint64_t hash);
    Slot& slot_of(Work& work, std::uint64_t hash);
    void store_use(Work& work, std::uint64_t hash);
    void discard();

    Tables& tables_;
    std::span<const Charge> charges_;
    Now now_;
    std::array<std::uint64_t, max_charges> hashes_;
    Works works_;
    std::array<std::uint32_t, max_charges> locked_;
    std::uint32_t locked_count_ = 0;
    bool overflow_locked_ = false;
    bool tidy_ = true;  // nothing for `discard` to do
};

}  // namespace ration
