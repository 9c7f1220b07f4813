// One shard's keys: open addressing in slots of 24 bytes, kept in the order of their hashes.
//
// Problem: millions of keys at 28 bytes each, so the table has to run nearly full, and keys leave
// as often as they come. Idea: a key's home is its hash scaled to the table, which keeps order;
// collisions move to the right and never break it. So the slots are a sorted array with
// gaps: a search walks from the home and stops at the first gap or larger hash (about five slots
// when nine tenths are full); inserting shifts a run right by one, erasing shifts it left, and no
// tombstones are left. Some slots after the last home take the runs that reach past it.
//
// Not thread-safe; the shard's lock is held around every call.
#pragma once

#include <cstdint>
#include <cstring>

namespace ration {

struct Slot {
    std::uint64_t hash = 0;  // 0: free
    std::int64_t as_of = 0;  // as in Use; for logs: when the newest unit was taken
    std::uint32_t used = 0;  // as in Use; for logs and sliding counters: their block
    std::uint32_t limit = 0;
};
static_assert(sizeof(Slot) == 24);

class SlotTable {
public:
    // Insertions between two checks of `has_room`.
    static constexpr std::uint32_t max_inserts = 16;
    // Slots past the last home.
    static constexpr std::uint32_t margin = 128;
    static constexpr std::uint32_t min_slots = 1024;

    // `slots` are zero and outlive the table. The highest `shared_bits` of every hash are the same
    // in this table.
    SlotTable(Slot* slots, std::uint32_t count, unsigned shared_bits)
        : slots_(slots),
          count_(count),
          homes_(count - margin),
          max_keys_(homes_ - homes_ / 10),
          shared_bits_(shared_bits) {}

    [[nodiscard]] std::uint32_t keys() const { return keys_; }
    [[nodiscard]] std::uint32_t max_keys() const { return max_keys_; }
    [[nodiscard]] std::uint32_t slot_count() const { return count_; }
    [[nodiscard]] Slot& at(std::uint32_t position) { return slots_[position]; }

    void prefetch(std::uint64_t hash) const {
        const char* home = reinterpret_cast<const char*>(slots_ + home_of(hash));
        __builtin_prefetch(home, 1);
        __builtin_prefetch(home + 64, 1);
    }

    // Where `hash` is, or where it would go.
    [[nodiscard]] std::uint32_t seek(std::uint64_t hash) const {
        std::uint32_t position = home_of(hash);
        while (slots_[position].hash - 1 < hash - 1) {  // free slots compare as the largest
            ++position;
        }
        return position;
    }
    [[nodiscard]] bool holds(std::uint32_t position, std::uint64_t hash) const {
        return slots_[position].hash == hash;
    }

    // Whether `more` keys (at most max_inserts) fit.
    [[nodiscard]] bool has_room(std::uint32_t more) const {
        return keys_ + more <= max_keys_ && slots_[count_ - max_inserts - 1].hash == 0;
    }

    // Makes room at `position` = seek(hash), after `has_room`.
    Slot& insert(std::uint32_t position, std::uint64_t hash) {
        std::uint32_t gap = position;
        while (slots_[gap].hash != 0) {
            ++gap;
        }
        std::memmove(slots_ + position + 1, slots_ + position, (gap - position) * sizeof(Slot));
        slots_[position] = Slot{.hash = hash};
        ++keys_;
        return slots_[position];
    }

    // The run to the right moves up by one; what was at `position + 1` may now be at `position`.
    void erase(std::uint32_t position) {
        std::uint32_t end = position + 1;
        while (slots_[end].hash != 0 && home_of(slots_[end].hash) < end) {
            ++end;
        }
        std::memmove(slots_ + position, slots_ + position + 1, (end - position - 1) * sizeof(Slot));
        slots_[end - 1] = Slot{};
        --keys_;
    }

private:
    __extension__ using u128 = unsigned __int128;

    [[nodiscard]] std::uint32_t home_of(std::uint64_t hash) const {
        return static_cast<std::uint32_t>((static_cast<u128>(hash << shared_bits_) * homes_) >> 64);
    }

    Slot* slots_;
    std::uint32_t count_;
    std::uint32_t homes_;
    std::uint32_t max_keys_;
    std::uint32_t keys_ = 0;
    unsigned shared_bits_;
};

}  // namespace ration
