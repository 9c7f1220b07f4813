// The blocks that are in force, by name: what an operator lists and lifts, and what is kept so that
// a restart forgets none.
//
// The counters decide who is blocked; the book only knows it too. A block is written to the store
// when it begins and put back into the counters when the process starts. Its name is its rule and
// the values of the rule's key, as text: {"failed sign-ins", "203.0.113.7"}.
// Thread rule: any member from any thread. Ownership: what is given at construction outlives it.
// Bound: max_listed_blocks; those that begin beyond it hold, and are kept, but are not listed.
//
//   BlockBook book(engine, &store);
//   engine.watch_blocks(&book);
//   book.restore(kept, clock.now());
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/strikes.h"
#include "ration/ledger.h"

namespace ration {

inline constexpr std::size_t max_listed_blocks = 100'000;

// Where blocks are kept. Neither waits for it.
class BlockStore {
public:
    virtual ~BlockStore() = default;
    virtual void keep(const Block& block) = 0;
    virtual void drop(std::string_view key) = 0;
};

struct ListedBlock {
    std::string rule;
    std::vector<std::string> subject;  // "203.0.113.7"; one text for each part of the rule's key
    std::uint32_t level = 1;
    Wall until{};
    Wall forget_at{};
};

class BlockBook final : public BlockWatcher {
public:
    // `store` may be null: nothing is kept.
    BlockBook(Engine& engine, BlockStore* store, std::size_t most = max_listed_blocks)
        : engine_(engine), store_(store), most_(most) {}

    void block_begun(const BlockBegun& block) override;

    // Puts kept blocks back in force where the counters have none. Those of rules that the policy
    // no longer has stay kept. How many the counters lacked; nullopt: they gave no answer to some,
    // so it is to be done again.
    std::optional<std::size_t> restore(std::span<const Block> kept, Now now);
    // What is listed, as it would be kept; also blocks that are over, while their level counts.
    [[nodiscard]] std::vector<Block> known() const;

    // In force now, the rule's name first, at most `limit`.
    [[nodiscard]] std::vector<ListedBlock> list(std::size_t limit, Wall now) const;

    // Ends what holds for `subject` (a value of the key: an address, an account), with what led to
    // it: the next failure is the first. `rule` empty: of every rule. How many were lifted; blocks
    // that another process began are lifted too where the counters are shared. nullopt: the
    // counters gave no answer; whoever may be blocked still is still listed and kept.
    [[nodiscard]] std::optional<std::size_t> lift(std::string_view subject, std::string_view rule,
                                                  Now now);

private:
    [[nodiscard]] static std::string kept_key(const ListedBlock& block);
    [[nodiscard]] static ListedBlock read(const Block& kept);
    void write_down(const ListedBlock& block, Wall now);
    using Named = std::map<std::string, ListedBlock>;  // by kept key
    [[nodiscard]] Named named(const Policy& policy, const StrikeRule& rule,
                              std::string_view subject) const;
    void strike_off(const std::string& key);

    Engine& engine_;
    BlockStore* store_;
    const std::size_t most_;
    mutable std::mutex mutex_;
    Named blocks_;
};

// The text of a key's value for people, and the value of such a text.
[[nodiscard]] std::string part_text(const Selector& selector, std::string_view value);
[[nodiscard]] std::string part_value(const Policy& policy, const Selector& selector,
                                     std::string_view text);

}  // namespace ration
