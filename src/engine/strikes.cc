// Problem: a block has a length that grows, must hold in every process that shares the counters,
// and is checked in the same step as all limits. Idea: time is a bucket's content. A bucket that
// loses one unit a second and is filled with 600 of them is blocked for 600 s, empties by itself,
// and the wait until it is empty is the wait that is told. How often somebody was blocked is known
// the same way: each level has such a bucket, full for as long as the level is remembered. So
// strikes need nothing of a store that limits do not need.
#include "engine/strikes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "engine/subject.h"
#include "policy/key.h"

namespace ration {
namespace {

constexpr std::uint32_t everything =
    1'000'000'000;  // above any level: give back takes what is there

using Key = std::string;

// The same subject under another identity: a key's identity stands in front, behind its length.
Key under(std::string_view identity, std::string_view key, std::size_t rule_bytes) {
    Key made(1, static_cast<char>(identity.size()));
    made += identity;
    made += key.substr(rule_bytes);
    return made;
}

Charge charge_of(const Key& key, LimitRef limit, ChargeOp op, std::uint64_t cost,
                 Mono numbers_since = {}) {
    return {.key = key,
            .rule_bytes = static_cast<std::uint16_t>(1 + static_cast<unsigned char>(key[0])),
            .op = op,
            .cost = static_cast<std::uint32_t>(std::min<std::uint64_t>(cost, everything)),
            .limit = limit,
            .numbers_since = numbers_since};
}

bool is_success(int status) {
    return status >= 200 && status < 400;
}

std::uint32_t whole_seconds(Nanos time) {
    const Nanos up = std::max(time, Nanos(0)) + std::chrono::seconds(1) - Nanos(1);
    return static_cast<std::uint32_t>(
        std::min<std::int64_t>(up / std::chrono::seconds(1), max_block / std::chrono::seconds(1)));
}

// One attempt under one rule: its charge, the block's, and where they are kept.
class Attempt {
public:
    Attempt(const Exchange& exchange, std::size_t at, Counters& counters, Now now)
        : exchange_(exchange),
          attempts_(exchange.charges[at]),
          limit_(exchange.rule_at(at)),
          rule_(exchange.policy().strikes[limit_.strike]),
          counters_(counters),
          now_(now),
          taken_((exchange.local >> at & 1) != 0 ? exchange.arrived : exchange.charged_at),
          failures_key_(under(rule_.failures_name, attempts_.key, attempts_.rule_bytes)),
          block_key_(block_key()) {}

    void give_back() {
        Charge charge = attempts_;
        charge.op = ChargeOp::give_back;
        charge.taken = taken_;
        static_cast<void>(apply({&charge, 1}));
    }

    void forget() {
        Charge attempts = attempts_;
        attempts.op = ChargeOp::give_back;
        attempts.cost = everything;
        const std::array charges{attempts, charge_of(failures_key_, rule_.failures,
                                                     ChargeOp::give_back, everything, since())};
        if (apply(charges).status != absl::StatusCode::kOk) {
            give_back();  // the store owes this place from now on; it would owe no more than that
        }
    }

    struct Begun {
        std::uint32_t level;
        bool kept;
    };

    // Counts the failure; the block that it leads to, if it does. Where the counters have no room
    // for more callers the newcomers' failures are counted together, so that one may block its
    // caller. Such a block holds like any other, but it is not kept: a flood of addresses would
    // write the ledger once for each.
    std::optional<Begun> strike() {
        const std::array charges{
            charge_of(failures_key_, rule_.failures, ChargeOp::force, 1, since()),
            block_charge(ChargeOp::observe, bucket()->capacity)};
        const Outcome outcome = apply(charges);
        if (outcome.status != absl::StatusCode::kOk ||
            outcome.levels[0].used < rule_.failures->amount ||
            outcome.levels[1].verdict != Verdict::admitted) {
            return std::nullopt;
        }
        return Begun{.level = begin_block(), .kept = (outcome.shared & 1) == 0};
    }

    [[nodiscard]] const StrikeRule& rule() const { return rule_; }

private:
    // Whoever is counted is judged for a block in the same step, so its charge is there.
    [[nodiscard]] Key block_key() const {
        std::size_t i = 0;
        while (exchange_.rule_of[i] != rule_.block) {
            ++i;
            RATION_ASSERT(i < exchange_.charge_count);
        }
        return Key(exchange_.charges[i].key);
    }
    // One moment for all of a rule's numbers.
    [[nodiscard]] Mono since() const { return attempts_.numbers_since; }
    [[nodiscard]] LimitRef bucket() const {
        return *exchange_.policy().limits[rule_.block].numbers.fixed;
    }
    [[nodiscard]] Charge block_charge(ChargeOp op, std::uint64_t cost) const {
        return charge_of(block_key_, bucket(), op, cost, since());
    }
    [[nodiscard]] Outcome apply(std::span<const Charge> charges) {
        return counters_.apply_one({.charges = charges, .lease = exchange_.lease}, now_);
    }

    // The highest level that is still remembered, and how much of its memory is used.
    std::size_t remembered(std::vector<std::uint64_t>& used) {
        std::vector<Key> keys;
        std::vector<Charge> charges;
        keys.reserve(rule_.levels.size());
        for (const StrikeRule::BlockLevel& level : rule_.levels) {
            keys.push_back(under(level.name, block_key_, 1 + rule_.name.size()));
        }
        for (std::size_t i = 0; i < keys.size(); ++i) {
            charges.push_back(
                charge_of(keys[i], rule_.levels[i].memory, ChargeOp::observe, 1, since()));
        }
        const Outcome outcome = apply(charges);
        std::size_t highest = 0;
        used.assign(keys.size(), 0);
        for (std::size_t i = 0; i < keys.size() && i < outcome.count; ++i) {
            used[i] = outcome.levels[i].used;
            highest = used[i] != 0 ? i + 1 : highest;
        }
        return highest;
    }

    std::uint32_t begin_block() {
        std::vector<std::uint64_t> used;
        const std::size_t next = std::min(remembered(used) + 1, rule_.levels.size());
        const StrikeRule::BlockLevel& level = rule_.levels[next - 1];
        const Key memory_key = under(level.name, block_key_, 1 + rule_.name.size());
        // Where the failures outlast the block one try is free after it; where they do not, it is
        // one of many.
        Charge attempts = attempts_;
        attempts.op = ChargeOp::give_back;
        const std::array charges{
            block_charge(ChargeOp::force, level.seconds),
            charge_of(memory_key, level.memory, ChargeOp::force,
                      level.remember - std::min<std::uint64_t>(level.remember, used[next - 1]),
                      since()),
            attempts};
        const Outcome outcome = apply(charges);
        // Two failures at the same instant, in two processes, may both have begun it.
        if (outcome.count != 0 && outcome.levels[0].used > level.seconds) {
            const Charge excess =
                block_charge(ChargeOp::give_back, outcome.levels[0].used - level.seconds);
            static_cast<void>(apply({&excess, 1}));
        }
        return static_cast<std::uint32_t>(next);
    }

    const Exchange& exchange_;
    const Charge& attempts_;
    const LimitRule& limit_;
    const StrikeRule& rule_;
    Counters& counters_;
    Now now_;
    Now taken_;
    Key failures_key_;
    Key block_key_;
};

std::vector<std::string> key_parts(const Exchange& exchange, const LimitRule& limit) {
    std::array<char, max_target_bytes> room;
    Scratch scratch(room);
    std::vector<std::string> parts;
    parts.reserve(limit.key.size());
    for (const Selector& selector : limit.key) {
        parts.emplace_back(key_part(exchange, selector, scratch).value_or(std::string_view()));
    }
    return parts;
}

BlockBegun begun_block(const Exchange& exchange, const StrikeRule& rule, std::uint32_t number,
                       Now now) {
    const LimitRule& limit = exchange.policy().limits[rule.block];
    const StrikeRule::BlockLevel& level = rule.levels[number - 1];
    return {.rule = rule,
            .limit = limit,
            .parts = key_parts(exchange, limit),
            .at = now,
            .level = number,
            .until = now.wall + std::chrono::seconds(level.seconds),
            .forget_at = now.wall + std::chrono::seconds(level.remember)};
}

}  // namespace

void judge_attempts(Exchange& exchange, int status, const Stores& stores, Now now) {
    for (std::size_t i = 0; i < exchange.enforced_count; ++i) {
        const std::uint32_t bit = std::uint32_t{1} << i;
        const LimitRule& limit = exchange.rule_at(i);
        if (limit.part != StrikePart::attempts ||
            (exchange.taken & exchange.to_settle & bit) == 0) {
            continue;
        }
        exchange.to_settle &= ~bit;
        const bool local = (exchange.local & bit) != 0;
        Attempt attempt(exchange, i, local ? *stores.local : stores.counters, now);
        if (attempt.rule().fails(status)) {
            const auto begun = attempt.strike();
            if (begun && begun->kept && stores.watcher != nullptr) {
                stores.watcher->block_begun(
                    begun_block(exchange, attempt.rule(), begun->level, now));
            }
        } else if (attempt.rule().cleared_by_success && is_success(status)) {
            attempt.forget();
        } else {
            attempt.give_back();
        }
    }
}

StrikeKeys::StrikeKeys(const Policy& policy, const StrikeRule& rule,
                       std::span<const std::string_view> parts)
    : rule_(rule), bucket_(*policy.limits[rule.block].numbers.fixed) {
    std::array<char, max_built_key_bytes> buffer;
    std::uint16_t rule_bytes = 0;
    attempts_key_ = build_key(buffer, policy.limits[rule.attempts].name, parts, rule_bytes);
    block_key_ = build_key(buffer, rule.name, parts, rule_bytes);
}

bool StrikeKeys::lift(Counters& counters, Now now) const {
    const std::size_t identity = 1 + static_cast<unsigned char>(attempts_key_[0]);
    const Key failures = under(rule_.failures_name, attempts_key_, identity);
    std::vector<Key> memories;
    memories.reserve(rule_.levels.size());
    for (const StrikeRule::BlockLevel& level : rule_.levels) {
        memories.push_back(under(level.name, block_key_, 1 + rule_.name.size()));
    }
    std::vector<Charge> charges{
        charge_of(block_key_, bucket_, ChargeOp::give_back, everything),
        charge_of(failures, rule_.failures, ChargeOp::give_back, everything)};
    for (std::size_t i = 0; i < memories.size() && charges.size() < max_charges; ++i) {
        charges.push_back(
            charge_of(memories[i], rule_.levels[i].memory, ChargeOp::give_back, everything));
    }
    const Charge attempts =
        charge_of(attempts_key_, rule_.failures, ChargeOp::give_back, everything);
    const auto done = [&](std::span<const Charge> some) {
        return counters.apply_one({.charges = some}, now).status == absl::StatusCode::kOk;
    };
    return done({&attempts, 1}) && done(charges);
}

Nanos StrikeKeys::blocked(Counters& counters, Now now) const {
    const Charge look = charge_of(block_key_, bucket_, ChargeOp::observe, bucket_->capacity);
    const Outcome outcome = counters.apply_one({.charges = {&look, 1}}, now);
    return outcome.count == 1 && outcome.levels[0].verdict == Verdict::refused
               ? outcome.levels[0].wait
               : Nanos(0);
}

// One block on its way back, as charges of its bucket and of its level's memory. It stays where it
// is: a charge views its key.
class BlockReturn {
public:
    BlockReturn() = default;
    BlockReturn(const BlockReturn&) = delete;
    BlockReturn& operator=(const BlockReturn&) = delete;

    // Looks what is there.
    void look_for(const KeptBlock& block, Now now) {
        const StrikeRule& rule = block.keys.rule_;
        const std::size_t at = std::clamp<std::size_t>(block.level, 1, rule.levels.size()) - 1;
        const LimitRef memory = rule.levels[at].memory;
        const LimitRef bucket = block.keys.bucket_;
        memory_key_ = under(rule.levels[at].name, block.keys.block_key_, 1 + rule.name.size());
        charges_ = {charge_of(block.keys.block_key_, bucket, ChargeOp::observe, 0),
                    charge_of(memory_key_, memory, ChargeOp::observe, 0)};
        wanted_ = {
            std::min<std::uint64_t>(whole_seconds(block.until - now.wall), bucket->capacity),
            std::min<std::uint64_t>(whole_seconds(block.forget_at - now.wall), memory->capacity)};
    }

    [[nodiscard]] std::span<const Charge> charges() const { return charges_; }

    // Only what is not there at all: what shared counters kept is by their clock, not by ours.
    void lack(const Outcome& found) {
        for (std::size_t i = 0; i < charges_.size(); ++i) {
            charges_[i].op = ChargeOp::force;
            charges_[i].cost =
                static_cast<std::uint32_t>(found.levels[i].used != 0 ? 0 : wanted_[i]);
        }
    }
    [[nodiscard]] bool lacks_block() const { return charges_[0].cost != 0; }
    [[nodiscard]] bool lacks_any() const { return lacks_block() || charges_[1].cost != 0; }

    // Somebody else may have put it there, or begun another, in between: that is no second block.
    void take_excess(const Outcome& done) {
        for (std::size_t i = 0; i < charges_.size(); ++i) {
            const std::uint64_t used = done.levels[i].used;
            const bool twice = charges_[i].cost != 0 && used > wanted_[i];
            charges_[i].op = ChargeOp::give_back;
            charges_[i].cost = static_cast<std::uint32_t>(twice ? used - wanted_[i] : 0);
        }
    }

private:
    Key memory_key_;
    std::array<Charge, 2> charges_;
    std::array<std::uint64_t, 2> wanted_{};
};

std::optional<std::size_t> put_back(Counters& counters, std::span<const KeptBlock> blocks,
                                    Now now) {
    RATION_ASSERT(blocks.size() <= max_put_back);
    std::vector<BlockReturn> returns(blocks.size());
    std::vector<BlockReturn*> open;  // of these, the ones with something left to ask
    std::vector<Transaction> asked(blocks.size());
    std::vector<Outcome> outcomes(blocks.size());
    open.reserve(blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        returns[i].look_for(blocks[i], now);
        open.push_back(&returns[i]);
    }
    std::size_t failed = 0;
    const auto ask = [&](auto&& use) {
        for (std::size_t i = 0; i < open.size(); ++i) {
            asked[i].charges = open[i]->charges();
        }
        counters.apply({asked.data(), open.size()}, now, {outcomes.data(), open.size()});
        std::size_t kept = 0;
        for (std::size_t i = 0; i < open.size(); ++i) {
            const bool answered = outcomes[i].status == absl::StatusCode::kOk;
            failed += answered ? 0U : 1U;
            if (answered && use(*open[i], outcomes[i])) {
                open[kept++] = open[i];
            }
        }
        open.resize(kept);
    };
    ask([](BlockReturn& one, const Outcome& found) {
        one.lack(found);
        return one.lacks_any();
    });
    std::size_t put = 0;
    ask([&put](BlockReturn& one, const Outcome& done) {
        put += one.lacks_block() ? 1U : 0U;
        one.take_excess(done);
        return one.lacks_any();
    });
    ask([](const BlockReturn&, const Outcome&) { return false; });
    return failed == 0 ? std::optional(put) : std::nullopt;
}

}  // namespace ration
