// A transaction in five moves: hash the keys, lock their shards in ascending order, load each use,
// judge them all, store what changed.
//
// Everything is judged on copies, as if all takes were admitted, each charge seeing what the ones
// before it did to the same key. When one does not fit, the copies are put back and only what
// holds regardless is done again: counted attempts and units given back. So a refusal is free
// without anything being undone in the table, and each charge's verdict and wait are known.
#include "counters/transaction.h"

#include <algorithm>
#include <new>

#include "counters/sliding_log.h"
#include "limits/log.h"

namespace ration {

namespace {

constexpr std::uint32_t reclaim_budget = 2048;  // slots looked at for one newcomer at the bound
// And below it, once half full. A drop is a step too, so fewer would not keep up with newcomers.
constexpr std::uint32_t newcomer_steps = 4;

// Ops that can refuse the transaction.
bool refuses(ChargeOp op) {
    return op == ChargeOp::take || op == ChargeOp::require;
}

// Ops that raise a level, and so need a place for it.
bool raises(ChargeOp op) {
    return op == ChargeOp::take || op == ChargeOp::force;
}

bool well_formed(const Charge& charge) {
    return charge.limit && charge.key.size() <= max_key_bytes &&
           charge.rule_bytes <= charge.key.size();
}

}  // namespace

bool take_in_slot(Tables& tables, const Transaction& transaction, Now now, Outcome& outcome) {
    if (transaction.charges.size() != 1) {
        return false;
    }
    const Charge& charge = transaction.charges[0];
    if (charge.op != ChargeOp::take || !well_formed(charge) || needs_block(charge.limit.entry())) {
        return false;
    }
    const std::uint64_t hash = tables.hash(charge.key);
    Shard& shard = tables.shards[tables.shard_of(hash)];
    shard.table.prefetch(hash);
    shard.acquire();
    Slot& slot = shard.table.at(shard.table.seek(hash));
    if (slot.hash != hash || slot.limit != charge.limit.id()) {
        shard.lock.unlock();
        return false;
    }
    Use use{.as_of = slot.as_of, .used = slot.used};
    // Made in place: copied, it would be read in wider pieces than it was just written in.
    const Level& level =
        *new (&outcome.levels[0]) Level(take(charge.limit.entry(), use, charge.cost, now));
    if (tables.while_locked != nullptr) [[unlikely]] {
        tables.while_locked();
    }
    slot.as_of = use.as_of;
    slot.used = use.used;
    shard.lock.unlock();
    outcome.at = now;
    outcome.admitted = level.verdict == Verdict::admitted;
    outcome.count = 1;
    outcome.status = absl::StatusCode::kOk;
    return true;
}

void TransactionRun::execute(Outcome& outcome) {
    outcome.count = 0;
    outcome.shared = 0;
    outcome.admitted = false;
    outcome.at = now_;
    if (!valid()) {
        outcome.status = absl::StatusCode::kInvalidArgument;
        return;
    }
    hash_keys();
    lock_shards();
    std::size_t loaded = 0;
    while (loaded < charges_.size() && load(loaded)) {
        ++loaded;
    }
    if (loaded == charges_.size()) {
        outcome.status = absl::StatusCode::kOk;
        outcome.count = static_cast<std::uint8_t>(charges_.size());
        judge(outcome);
        if (tables_.while_locked != nullptr) [[unlikely]] {
            tables_.while_locked();
        }
        store();
    } else {
        outcome.status = absl::StatusCode::kUnavailable;
        charges_ = charges_.first(loaded);
        discard();
    }
    unlock_shards();
}

inline bool TransactionRun::valid() const {
    return charges_.size() <= max_charges &&
           std::all_of(charges_.begin(), charges_.end(), well_formed);
}

inline void TransactionRun::hash_keys() {
    for (std::size_t i = 0; i < charges_.size(); ++i) {
        hashes_[i] = tables_.hash(charges_[i].key);
        const std::uint32_t shard = tables_.shard_of(hashes_[i]);
        works_.make(i).shard = shard;
        tables_.shards[shard].table.prefetch(hashes_[i]);
    }
}

// ---- locks ----

inline void TransactionRun::lock_shards() {
    if (charges_.size() == 1) {
        locked_[0] = works_[0].shard;
        locked_count_ = 1;
        return tables_.shards[locked_[0]].acquire();
    }
    for (std::size_t i = 0; i < charges_.size(); ++i) {
        const std::uint32_t shard = works_[i].shard;
        std::uint32_t place = locked_count_;
        while (place != 0 && locked_[place - 1] > shard) {
            --place;
        }
        if (place != 0 && locked_[place - 1] == shard) {
            continue;
        }
        std::copy_backward(locked_.begin() + place, locked_.begin() + locked_count_,
                           locked_.begin() + locked_count_ + 1);
        locked_[place] = shard;
        ++locked_count_;
    }
    for (std::uint32_t i = 0; i < locked_count_; ++i) {
        tables_.shards[locked_[i]].acquire();
    }
}

// The overflow shard is the last in the order, so it may be locked when the need shows.
void TransactionRun::lock_overflow() {
    if (!overflow_locked_) {
        tables_.shards[tables_.shard_count].acquire();
        overflow_locked_ = true;
    }
}

inline void TransactionRun::unlock_shards() {
    if (overflow_locked_) {
        tables_.shards[tables_.shard_count].lock.unlock();
    }
    while (locked_count_ != 0) {
        tables_.shards[locked_[--locked_count_]].lock.unlock();
    }
}

// ---- loading ----

// False: there is room for this key nowhere.
inline bool TransactionRun::load(std::size_t i) {
    Work& work = works_[i];
    work.found = work.changed = work.inserted = work.lowered = work.taken_block = false;
    work.block = work.pending = 0;
    work.numbers = &charges_[i].limit.entry();
    work.lead = static_cast<std::uint8_t>(i);
    if (share(i)) {
        adopt_numbers(i);
        return true;
    }
    const Shard& shard = tables_.shards[work.shard];
    work.position = shard.table.seek(hashes_[i]);
    if (shard.table.holds(work.position, hashes_[i])) {
        read_slot(i);
        adopt_numbers(i);
        return true;
    }
    work.use = work.found_use = Use{};
    return start_key(i);
}

// Whether an earlier charge has the same key; then its work is the one that counts.
inline bool TransactionRun::share(std::size_t i) {
    for (std::size_t j = 0; j < i; ++j) {
        if (hashes_[j] == hashes_[i] && works_[j].shard == works_[i].shard) {
            works_[i].lead = works_[j].lead;
            return true;
        }
    }
    return false;
}

inline void TransactionRun::read_slot(std::size_t i) {
    Work& work = works_[i];
    const Slot& slot = tables_.shards[work.shard].table.at(work.position);
    if (slot.limit != work.numbers->id) {
        work.numbers = &LimitRef::from_id(slot.limit).entry();
    }
    work.found = true;
    work.use = use_in(slot, *work.numbers, tables_.pool);
    work.found_use = work.use;
    work.block = needs_block(*work.numbers) ? slot.used : 0;
}

// A key not in the table: make sure that it can be put there, or use its limit's overflow bucket.
bool TransactionRun::start_key(std::size_t i) {
    const Charge& charge = charges_[i];
    const bool gives = charge.op == ChargeOp::give_back;
    if (gives || is_in_flight(charge.limit.entry())) {
        // In-flight slots must come back to where they were taken, so newcomers stay with the
        // overflow count as long as it is not zero.
        if (overflow_holds(i)) {
            return go_to_overflow(i);
        }
        if (gives && !will_take(i)) {
            return true;
        }
    }
    // A look at a key finds what a take would: the overflow bucket where there is no room.
    const bool takes = will_take(i);
    if (!takes && charge.cost == 0) {
        return true;
    }
    if (!make_room(i) ||
        (takes && needs_block(charge.limit.entry()) && !take_block(i, BlockPool::Use::ordinary))) {
        return go_to_overflow(i);
    }
    return true;
}

// Whether this or a later charge takes from the same key.
bool TransactionRun::will_take(std::size_t i) const {
    for (std::size_t j = i; j < charges_.size(); ++j) {
        if (hashes_[j] == hashes_[i] && raises(charges_[j].op) && charges_[j].cost != 0) {
            return true;
        }
    }
    return false;
}

bool TransactionRun::make_room(std::size_t i) {
    Shard& shard = tables_.shards[works_[i].shard];
    std::uint32_t newcomers = 1;
    for (std::size_t j = 0; j < i; ++j) {
        newcomers += works_[j].shard == works_[i].shard && works_[j].lead == j && !works_[j].found;
    }
    if (shard.table.has_room(newcomers)) {
        return true;
    }
    if (now_.mono < shard.hopeless_until) {
        return false;
    }
    reclaim(shard, tables_.pool, now_,
            {.budget = std::min(reclaim_budget, shard.table.slot_count()),
             .keep = {hashes_.data(), charges_.size()}});
    return shard.table.has_room(newcomers);
}

bool TransactionRun::take_block(std::size_t i, BlockPool::Use use) {
    Work& work = works_[i];
    work.block = tables_.pool.take(use);
    if (work.block == 0 && use == BlockPool::Use::ordinary) {
        reclaim(tables_.shards[work.shard], tables_.pool, now_,
                {.budget = reclaim_budget, .keep = {hashes_.data(), charges_.size()}});
        work.block = tables_.pool.take(use);
    }
    work.taken_block = work.block != 0;
    tidy_ = false;
    return work.taken_block;
}

bool TransactionRun::overflow_holds(std::size_t i) {
    if (!tables_.overflow_used.load(std::memory_order_acquire)) {
        return false;
    }
    lock_overflow();
    const Charge& charge = charges_[i];
    SlotTable& table = tables_.shards[tables_.shard_count].table;
    const std::uint64_t hash = tables_.hash(charge.key.substr(0, charge.rule_bytes));
    return table.holds(table.seek(hash), hash);
}

// Moves the charge to the bucket that all newcomers of its limit share.
bool TransactionRun::go_to_overflow(std::size_t i) {
    lock_overflow();
    tables_.overflow_used.store(true, std::memory_order_release);
    const Charge& charge = charges_[i];
    Work& work = works_[i];
    Shard& shard = tables_.shards[tables_.shard_count];
    work.shard = tables_.shard_count;
    hashes_[i] = tables_.hash(charge.key.substr(0, charge.rule_bytes));
    shard.overflowed += raises(charge.op) ? 1U : 0U;
    if (share(i)) {
        adopt_numbers(i);
        return true;
    }
    work.position = shard.table.seek(hashes_[i]);
    if (shard.table.holds(work.position, hashes_[i])) {
        read_slot(i);
        adopt_numbers(i);
        return true;
    }
    if (!raises(charge.op)) {
        return true;
    }
    return make_room(i) &&
           (!needs_block(charge.limit.entry()) || take_block(i, BlockPool::Use::reserve));
}

// ---- changed numbers ----

// Units given back go by the numbers they are kept under; everything else by the charge's.
inline void TransactionRun::adopt_numbers(std::size_t i) {
    Work& work = works_[works_[i].lead];
    const LimitRef::Entry& numbers = charges_[i].limit.entry();
    if (work.numbers == &numbers || charges_[i].op == ChargeOp::give_back) {
        return;
    }
    const Mono since = charges_[i].numbers_since;
    if (needs_block(*work.numbers) || needs_block(numbers)) {
        if (work.found) {
            convert_blocks(works_[i].lead, numbers, since);
        }
        return;
    }
    work.found_use = carry({*work.numbers, numbers, since}, work.found_use, now_);
    work.use = work.found_use;
    work.numbers = &numbers;
}

// ---- judging ----

inline void TransactionRun::judge(Outcome& outcome) {
    bool admitted = true;
    for (std::size_t i = 0; i < charges_.size(); ++i) {
        new (&outcome.levels[i]) Level(step(i));
        admitted = admitted &&
                   (!refuses(charges_[i].op) || outcome.levels[i].verdict == Verdict::admitted);
    }
    outcome.admitted = admitted;
    for (std::size_t i = 0; overflow_locked_ && i < charges_.size(); ++i) {
        const bool shared = works_[i].shard == tables_.shard_count;
        outcome.shared = static_cast<std::uint16_t>(outcome.shared | (shared ? 1U << i : 0U));
    }
    // A single refused charge has changed nothing but its count of attempts.
    if (!admitted && charges_.size() > 1) {
        charge_attempts_only(outcome);
    }
}

void TransactionRun::charge_attempts_only(Outcome& outcome) {
    for (std::size_t i = 0; i < charges_.size(); ++i) {
        Work& work = works_[i];
        if (work.lead == i) {
            work.use = work.found_use;
            work.pending = 0;
            work.changed = work.changed && is_log(*work.numbers);
        }
    }
    for (std::size_t i = 0; i < charges_.size(); ++i) {
        Charge charge = charges_[i];
        Work& work = works_[works_[i].lead];
        const bool log = is_log(*work.numbers);
        const bool again =
            charge.op == ChargeOp::give_back
                ? !log
                : charge.op == ChargeOp::force ||
                      (charge.op == ChargeOp::take && work.numbers->limit.count_attempts);
        Level level;
        if (again) {
            level = step(i);
        } else {
            charge.op = ChargeOp::observe;
            level =
                log ? log_step(charge, work) : observe(*work.numbers, work.use, charge.cost, now_);
        }
        level.verdict = outcome.levels[i].verdict;
        level.wait = outcome.levels[i].wait;
        outcome.levels[i] = level;
    }
}

inline Level TransactionRun::step(std::size_t i) {
    const Charge& charge = charges_[i];
    Work& work = works_[works_[i].lead];
    if (charge.op == ChargeOp::give_back) {
        return give_back_step(charge, work);
    }
    if (is_log(*work.numbers)) {
        return log_step(charge, work);
    }
    if (charge.op == ChargeOp::observe || charge.op == ChargeOp::require) {
        return observe(*work.numbers, work.use, charge.cost, now_);
    }
    if (charge.op == ChargeOp::force) {
        work.changed = work.changed || charge.cost != 0;
        return force(*work.numbers, work.use, charge.cost, now_);
    }
    const Level level = take(*work.numbers, work.use, charge.cost, now_);
    if (charge.cost != 0 &&
        (level.verdict == Verdict::admitted ||
         (level.verdict == Verdict::refused && work.numbers->limit.count_attempts))) {
        work.changed = true;
    }
    return level;
}

Level TransactionRun::log_step(const Charge& charge, Work& work) {
    static constexpr Block empty{};
    const Limit& limit = work.numbers->limit;
    struct EmptyLog {
        [[nodiscard]] static std::uint64_t units() { return empty.total; }
        [[nodiscard]] static Mono instant_of(std::uint64_t /*k*/) { return Mono::min(); }
        [[nodiscard]] static Mono newest() { return Mono::min(); }
    };
    const auto judged = [&](const auto& log) {
        const LogView view(limit, log, work.pending, now_.mono);
        if (charge.op == ChargeOp::force) {
            // Units beyond the amount leave at the same instant: they would refuse nothing more.
            work.pending +=
                static_cast<std::uint32_t>(std::min<std::uint64_t>(charge.cost, limit.amount));
            return LogView(limit, log, work.pending, now_.mono).level(Verdict::admitted, 0);
        }
        const bool fits = charge.cost == 0 || view.fits(charge.cost);
        if (!fits) {
            const bool never = charge.cost > limit.amount;
            return view.level(never ? Verdict::never : Verdict::refused, charge.cost);
        }
        if (charge.op == ChargeOp::take) {
            work.pending += charge.cost;
        }
        return LogView(limit, log, work.pending, now_.mono).level(Verdict::admitted, charge.cost);
    };
    if (work.block == 0) {
        return judged(EmptyLog{});
    }
    SlidingLog log(tables_.pool, work.block);
    log.expire(now_.mono, limit.period);
    if (log.first() != work.block) {
        work.block = log.first();
        work.changed = true;
    }
    return judged(log);
}

Level TransactionRun::give_back_step(const Charge& charge, Work& work) {
    const bool same_sort = is_in_flight(*work.numbers) == is_in_flight(charge.limit.entry());
    const std::uint32_t cost = same_sort ? charge.cost : 0;
    work.lowered = true;
    if (!is_log(*work.numbers)) {
        work.changed = work.changed || cost != 0;
        return give_back(*work.numbers, work.use, {cost, charge.taken}, now_);
    }
    if (work.block != 0) {
        const Nanos period = work.numbers->limit.period;
        SlidingLog log(tables_.pool, work.block);
        log.expire(now_.mono, period);
        // Units that have left the span by themselves are not returned a second time.
        if (!charge.taken || now_.mono - charge.taken->mono < period) {
            log.remove(cost, charge.taken ? std::optional(charge.taken->mono) : std::nullopt);
        }
        work.block = log.first();
        work.changed = true;
    }
    Charge look = charge;
    look.op = ChargeOp::observe;
    look.cost = 0;
    return log_step(look, work);
}

// ---- storing ----

Slot& TransactionRun::slot_of(Work& work, std::uint64_t hash) {
    SlotTable& table = tables_.shards[work.shard].table;
    if (!table.holds(work.position, hash)) {
        work.position = table.seek(hash);
        if (!table.holds(work.position, hash)) {
            work.found = work.inserted = true;
            tidy_ = false;
            return table.insert(work.position, hash);
        }
    }
    return table.at(work.position);
}

inline void TransactionRun::store() {
    for (std::size_t i = 0; i < charges_.size(); ++i) {
        Work& work = works_[i];
        if (work.lead != i || (!work.changed && work.pending == 0)) {
            continue;
        }
        if (work.lowered) {
            tables_.shards[work.shard].hope();
        }
        if (is_log(*work.numbers)) {
            store_log(work, hashes_[i]);
        } else if (work.use.used != 0 || work.use.before != 0) {
            store_use(work, hashes_[i]);
        } else if (work.found) {
            slot_of(work, hashes_[i]);
            drop(tables_.shards[work.shard], work.position, tables_.pool);
        }
    }
    discard();
}

void TransactionRun::store_use(Work& work, std::uint64_t hash) {
    Slot& slot = slot_of(work, hash);
    if (slot.limit != work.numbers->id) {
        tables_.shards[work.shard].hope();
        slot.limit = work.numbers->id;
    }
    slot.as_of = work.use.as_of;
    slot.used = work.block != 0 ? work.block : work.use.used;
    if (work.numbers->limit.kind == LimitKind::sliding_counter) {
        tables_.pool[work.block].units = {work.use.used, work.use.before};
    }
    work.taken_block = false;
}

void TransactionRun::store_log(Work& work, std::uint64_t hash) {
    if (work.block == 0) {
        return;
    }
    SlidingLog log(tables_.pool, work.block);
    if (work.pending != 0) {
        const bool overflow = work.shard == tables_.shard_count;
        log.push(now_.mono, work.pending,
                 overflow ? BlockPool::Use::reserve : BlockPool::Use::ordinary);
    }
    work.block = log.first();
    if (log.units() != 0) {
        work.use.as_of = log.newest().time_since_epoch().count();
    }
    store_use(work, hash);
    if (log.units() == 0) {
        drop(tables_.shards[work.shard], work.position, tables_.pool);
    }
}

// Gives back the blocks of keys that did not come into the table after all, and moves the hand on
// where a newcomer did: keys that carry nothing leave as others come.
void TransactionRun::discard() {
    if (tidy_) {
        return;
    }
    for (std::size_t i = 0; i < charges_.size(); ++i) {
        Work& work = works_[i];
        if (work.taken_block) {
            tables_.pool.give(work.block);
            work.taken_block = false;
        }
        if (work.inserted) {
            Shard& shard = tables_.shards[work.shard];
            if (shard.table.keys() > shard.table.max_keys() / 2) {
                reclaim(shard, tables_.pool, now_, {.budget = newcomer_steps});
            }
        }
    }
}

}  // namespace ration
