// Strikes: what the answer to an attempt means for who made it.
//
// An attempt has taken its place among the failures when it began (the `attempts` part of its
// rule). Here the place becomes a failure, is given back, or everything is forgotten; and when the
// failures reach the threshold the block begins, before the failing answer's first byte goes out.
// Thread rule: as the exchange's. Units: whole seconds of blocks, wall and monotonic time passed
// in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/charge.h"
#include "engine/exchange.h"
#include "ration/counters.h"
#include "ration/time.h"

namespace ration {

// A block that has just begun.
struct BlockBegun {
    const StrikeRule& rule;
    const LimitRule& limit;          // its `block` part
    std::vector<std::string> parts;  // values of the rule's key, as bytes
    Now at{};
    std::uint32_t level = 1;
    Wall until{};
    Wall forget_at{};  // when a repeat would be a first again
};

// Is told of every block, on the thread of the request that led to it; must not block.
class BlockWatcher {
public:
    virtual ~BlockWatcher() = default;
    virtual void block_begun(const BlockBegun& block) = 0;
};

// What the status of the answer means, once for each attempt; `status` 0: nobody knows how it would
// have been answered, and the places are given back.
void judge_attempts(Exchange& exchange, int status, const Stores& stores, Now now);

// The state of one subject of a strike rule, by the values of its key.
class StrikeKeys {
public:
    StrikeKeys(const Policy& policy, const StrikeRule& rule,
               std::span<const std::string_view> parts);

    // As if it had never failed. False: the counters gave no answer, and it may be blocked still.
    [[nodiscard]] bool lift(Counters& counters, Now now) const;
    // How long it is still blocked; 0: it is not, or the counters gave no answer.
    [[nodiscard]] Nanos blocked(Counters& counters, Now now) const;

private:
    friend class BlockReturn;

    const StrikeRule& rule_;
    LimitRef bucket_;
    std::string block_key_;
    std::string attempts_key_;
};

// A block that was kept elsewhere. `until` may be over while its level is remembered still.
struct KeptBlock {
    StrikeKeys keys;
    std::uint32_t level = 1;
    Wall until{};
    Wall forget_at{};
};

// Blocks at once: a remote store answers so many well within a call's deadline.
inline constexpr std::size_t max_put_back = 64;

// Puts these blocks and their levels, at most `max_put_back`, into the counters where they are not;
// all of them in three calls. How many blocks were put there; nullopt: some got no answer, and may
// not be in force.
[[nodiscard]] std::optional<std::size_t> put_back(Counters& counters,
                                                  std::span<const KeptBlock> blocks, Now now);

}  // namespace ration
