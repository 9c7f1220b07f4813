// What happens to a use whose numbers changed when logs or sliding counters are involved: their
// units are read out under the old numbers at the moment of the change, and written into the new
// ones. (Uses that fit a slot are carried by `carry`, limits/use.h.)
#include <optional>

#include "counters/sliding_log.h"
#include "counters/transaction.h"

namespace ration {

// When the new numbers took over a use: for buckets and logs not before it was last written.
Now TransactionRun::moment_of_change(const Work& work, Mono since) const {
    const bool on_mono =
        work.numbers->limit.kind == LimitKind::token_bucket || is_log(*work.numbers);
    return change_moment(now_, since, on_mono ? Mono(Nanos(work.use.as_of)) : Mono::min());
}

std::uint32_t TransactionRun::units_at(Work& work, Now at) {
    if (is_in_flight(*work.numbers)) {
        return 0;
    }
    if (!is_log(*work.numbers)) {
        return units_in_use(*work.numbers, work.use, at);
    }
    SlidingLog log(tables_.pool, work.block);
    log.expire(at.mono, work.numbers->limit.period);
    work.block = log.first();
    return static_cast<std::uint32_t>(log.units());
}

// Logs and sliding counters are converted in the table at once: it changes what the use is kept
// under, not what it is. When no block is to be had the old numbers go on.
void TransactionRun::convert_blocks(std::size_t i, const LimitRef::Entry& numbers, Mono since) {
    Work& work = works_[i];
    if (is_log(*work.numbers) && is_log(numbers)) {
        return relabel_log(i, numbers, since);
    }
    if (needs_block(numbers) && work.block == 0 && !take_block(i, BlockPool::Use::reserve)) {
        return;
    }
    work.taken_block = false;
    const Now at = moment_of_change(work, since);
    const std::uint32_t units = units_at(work, at);
    if (is_log(numbers)) {
        tables_.pool[work.block] = Block{};
        if (units != 0) {
            SlidingLog(tables_.pool, work.block).push(at.mono, units, BlockPool::Use::reserve);
        }
        work.use = {.as_of = at.mono.time_since_epoch().count()};
    } else if (is_log(*work.numbers)) {
        SlidingLog(tables_.pool, work.block).clear();
        work.use = use_of(numbers, units, at);
    } else {
        work.use = carry({*work.numbers, numbers, since}, work.use, now_);
    }
    if (!needs_block(numbers) && work.block != 0) {
        tables_.pool.give(work.block);
        work.block = 0;
    }
    work.numbers = &numbers;
    work.found_use = work.use;
    store_use(work, hashes_[i]);
    tables_.shards[work.shard].hope();
}

// The records stay; those that had left under the old numbers do not come back.
void TransactionRun::relabel_log(std::size_t i, const LimitRef::Entry& numbers, Mono since) {
    Work& work = works_[i];
    SlidingLog log(tables_.pool, work.block);
    log.expire(change_moment(now_, since, Mono::min()).mono, work.numbers->limit.period);
    work.block = log.first();
    work.numbers = &numbers;
    store_use(work, hashes_[i]);
    tables_.shards[work.shard].hope();
}

}  // namespace ration
