// Random sequences of transactions, the same on Redis and on the memory counters: every verdict and
// number is the same, every told time the memory's rounded up to the microsecond.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "counters/redis/server.h"
#include "ration/counters.h"
#include "ration/redis_counters.h"

namespace ration {
namespace {

// Enough to meet every branch, few enough for a slow machine; RC_PARAMS says otherwise.
[[maybe_unused]] const int runs_set = setenv("RC_PARAMS", "max_success=150", 0);

constexpr std::int64_t us = 1000;
constexpr Now start{Mono(std::chrono::hours(1000)), Wall(std::chrono::seconds(1'700'006'400))};

struct Pair {
    std::unique_ptr<Counters> memory;
    std::unique_ptr<Counters> redis;
};

Pair open() {
    static RedisServer server;
    server.command({"FLUSHALL"});
    RedisOptions options = server.options();
    options.time_from_calls = true;
    options.lease = std::chrono::hours(1'000'000);
    Pair pair{*open_memory_counters({.max_bytes = 4U << 20}), nullptr};
    auto redis = open_redis_counters(options);
    RC_ASSERT(redis.ok());
    pair.redis = *std::move(redis);
    return pair;
}

// Periods of whole microseconds, from some to years; rates from the slowest to one a microsecond.
Nanos any_period() {
    return *rc::gen::oneOf(rc::gen::map(rc::gen::inRange<std::int64_t>(40, 5'000'000),
                                        [](auto n) { return Nanos(n * us); }),
                           rc::gen::map(rc::gen::inRange<std::int64_t>(1, 100),
                                        [](auto n) { return Nanos(std::chrono::seconds(n)); }),
                           rc::gen::map(rc::gen::inRange<std::int64_t>(1, 3653),
                                        [](auto n) { return Nanos(std::chrono::hours(24) * n); }));
}

std::uint64_t any_amount(Nanos period) {
    const auto most = static_cast<std::uint64_t>(period.count() / us);
    return *rc::gen::oneOf(
        rc::gen::inRange<std::uint64_t>(1, std::min<std::uint64_t>(40, most + 1)),
        rc::gen::inRange<std::uint64_t>(1, std::min<std::uint64_t>(1'000'000'000, most) + 1));
}

Limit any_limit() {
    const auto kind = *rc::gen::element(LimitKind::token_bucket, LimitKind::token_bucket,
                                        LimitKind::fixed_window, LimitKind::sliding_window,
                                        LimitKind::sliding_counter, LimitKind::concurrency);
    const Nanos period = any_period();
    const std::uint64_t amount = any_amount(period);
    const bool attempts = *rc::gen::arbitrary<bool>();
    switch (kind) {
        case LimitKind::fixed_window:
            return fixed_window(amount, period, attempts);
        case LimitKind::sliding_window:
            return sliding_window(std::min<std::uint64_t>(amount, max_sliding_amount), period);
        case LimitKind::sliding_counter: {
            Limit limit = sliding_counter(amount, period);
            limit.count_attempts = attempts;
            return limit;
        }
        case LimitKind::concurrency:
            return concurrency(*rc::gen::inRange<std::uint64_t>(1, 30));
        case LimitKind::token_bucket:
            break;
    }
    return token_bucket(
        amount, period,
        std::max<std::uint64_t>(
            1, std::min<std::uint64_t>(1'000'000'000,
                                       amount * *rc::gen::inRange<std::uint64_t>(1, 4) / 2)));
}

// A cost that means something to the limit: none, one, about its whole, beyond it.
std::uint32_t any_cost(const Limit& limit) {
    const auto capacity = static_cast<std::uint32_t>(limit.capacity);
    return *rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(0, 4),
                           rc::gen::inRange<std::uint32_t>(0, capacity + 2),
                           rc::gen::element(capacity / 2, capacity, capacity + 1));
}

// Memory holds 2^32 units of use and the script more: what is forced stays below, in all steps.
constexpr std::uint32_t most_forced = 20'000'000;

std::uint32_t any_cost(const Limit& limit, ChargeOp op) {
    const std::uint32_t cost = any_cost(limit);
    return op == ChargeOp::force ? std::min(cost, most_forced) : cost;
}

// In microseconds: none, one, a part or some of the periods. Never back: memory keeps what it saw
// in a look too, a store of others' only what was written.
std::int64_t any_pause(const Limit& limit) {
    const std::int64_t period = std::max<std::int64_t>(1, limit.period.count() / us);
    const auto part = *rc::gen::inRange<std::int64_t>(0, 300);
    return *rc::gen::element<std::int64_t>(
        0, 0, 0, 1, period / std::max<std::int64_t>(1, static_cast<std::int64_t>(limit.amount)),
        period / 1000 * part / 4, period - 1, period, period / 100 * part);
}

std::string text_of(const Transaction& transaction, Now at) {
    static constexpr std::array<const char*, 4> ops{"take", "give back", "observe", "force"};
    std::string text = "at " + std::to_string((at.mono - start.mono).count() / us) + " us:";
    for (const Charge& charge : transaction.charges) {
        text += " " + std::string(ops[static_cast<std::size_t>(charge.op)]) + " " +
                std::to_string(charge.cost) + " of " + std::string(charge.key) + " (" +
                to_string(*charge.limit) + ")";
        if (charge.taken) {
            text += " taken " + std::to_string((charge.taken->mono - start.mono).count() / us);
        }
        text += ",";
    }
    return text + "\n";
}

void expect_same(const Outcome& redis, const Outcome& memory);

// The same transaction on both.
void run(const Pair& pair, const Transaction& transaction, Now at) {
    RC_LOG() << text_of(transaction, at);
    expect_same(pair.redis->apply_one(transaction, at), pair.memory->apply_one(transaction, at));
}

// Beyond 142 years there is only "for ever": nanoseconds end at 292 years and the script's numbers
// at 285, and a debt past the end, less what is over of it, is told as something near the end.
constexpr std::int64_t for_ever_us = std::int64_t{1} << 52;

Nanos in_micros(Nanos exact) {
    if (exact.count() / us >= for_ever_us) {
        return Nanos::max();
    }
    const std::int64_t whole = exact.count() / us + (exact.count() % us > 0 ? 1 : 0);
    return Nanos(whole * us);
}

void expect_same(const Outcome& redis, const Outcome& memory) {
    RC_ASSERT(redis.status == memory.status);
    RC_ASSERT(redis.count == memory.count);
    RC_ASSERT(redis.admitted == memory.admitted);
    RC_ASSERT(redis.at == memory.at);
    for (std::size_t i = 0; i < memory.count; ++i) {
        Level expected = memory.levels[i];
        expected.wait = in_micros(expected.wait);
        expected.next = in_micros(expected.next);
        expected.reset = in_micros(expected.reset);
        Level got = redis.levels[i];
        got.wait = in_micros(got.wait);
        got.next = in_micros(got.next);
        got.reset = in_micros(got.reset);
        RC_ASSERT(got.verdict == expected.verdict);
        RC_ASSERT(got.limit == expected.limit);
        RC_ASSERT(got.used == expected.used);
        RC_ASSERT(got.remaining == expected.remaining);
        RC_ASSERT(got.wait == expected.wait);
        RC_ASSERT(got.next == expected.next);
        RC_ASSERT(got.reset == expected.reset);
    }
}

constexpr std::int64_t last_moment = std::int64_t{2} << 60;  // told moments stay below 292 years

RC_GTEST_PROP(RedisDifferential, DoesWhatMemoryDoes, ()) {
    const Pair pair = open();
    const std::array<std::string, 4> keys{"a/k", "b/k", "c/k", "d/k"};
    std::array<Limit, 4> limits;
    for (Limit& limit : limits) {
        limit = any_limit();
    }
    std::int64_t now = *rc::gen::inRange<std::int64_t>(0, 1'000'000) * us;
    // The memory counters tell no leases apart, so all units have the same one, or none.
    const auto lease = *rc::gen::element<std::uint64_t>(0, 7);
    const int steps = *rc::gen::inRange(1, 40);
    for (int step = 0; step < steps; ++step) {
        const auto paused = static_cast<std::size_t>(*rc::gen::inRange(0, 4));
        now = std::max<std::int64_t>(0, now + any_pause(limits[paused]) * us);
        if (now > last_moment) {
            return;
        }
        const Now at = later(start, Nanos(now));
        std::vector<Charge> charges;
        const auto count = *rc::gen::element<std::size_t>(1, 1, 2, 3, 5);
        for (std::size_t i = 0; i < count; ++i) {
            const auto pick = static_cast<std::size_t>(*rc::gen::inRange(0, 4));
            const auto op =
                *rc::gen::element(ChargeOp::take, ChargeOp::take, ChargeOp::take,
                                  ChargeOp::give_back, ChargeOp::observe, ChargeOp::force);
            Charge charge{.key = keys[pick],
                          .rule_bytes = 2,
                          .op = op,
                          .cost = any_cost(limits[pick], op),
                          .limit = *LimitRef::of(limits[pick])};
            if (op == ChargeOp::give_back && *rc::gen::arbitrary<bool>()) {
                charge.taken = later(at, Nanos(-std::abs(any_pause(limits[pick])) * us));
            }
            charges.push_back(charge);
        }
        const Transaction transaction{.charges = charges, .lease = lease};
        run(pair, transaction, at);
    }
}

// A changed number's rounding is of the store's own ticks: whole microseconds there, nanoseconds
// in memory. So memory is run on times a thousand times shorter, where its tick is a microsecond.
constexpr Now start_in_ticks{Mono(start.mono.time_since_epoch() / us),
                             Wall(start.wall.time_since_epoch() / us)};

// One that is a valid limit also in ticks.
Limit any_slow_limit() {
    Limit limit = any_limit();
    if (limit.kind != LimitKind::concurrency) {
        limit.period = std::max<Nanos>(limit.period, std::chrono::milliseconds(2));
        limit.amount = std::min<std::uint64_t>(
            limit.amount, static_cast<std::uint64_t>(limit.period.count() / us) / 1000);
        limit.capacity = limit.kind == LimitKind::token_bucket
                             ? std::min(limit.capacity, 2 * limit.amount)
                             : limit.amount;
    }
    return limit;
}

Limit in_ticks(Limit limit) {
    limit.period /= us;
    return limit;
}

void run_in_ticks(const Pair& pair, Charge charge, Mono since, std::int64_t now_us) {
    const Now at = later(start, Nanos(now_us * us));
    charge.numbers_since = start.mono + (since - Mono{}) * us;
    const Transaction transaction{.charges = {&charge, 1}};
    RC_LOG() << text_of(transaction, at);
    Charge ticked = charge;
    ticked.numbers_since = start_in_ticks.mono + (since - Mono{});
    ticked.limit = *LimitRef::of(in_ticks(*charge.limit));
    const Outcome redis = pair.redis->apply_one(transaction, at);
    Outcome memory =
        pair.memory->apply_one({.charges = {&ticked, 1}}, later(start_in_ticks, Nanos(now_us)));
    for (std::size_t i = 0; i < memory.count; ++i) {
        Level& level = memory.levels[i];
        for (Nanos* told : {&level.wait, &level.next, &level.reset}) {
            *told = told->count() >= for_ever_us ? Nanos::max() : *told * us;
        }
    }
    memory.at = redis.at;
    expect_same(redis, memory);
}

RC_GTEST_PROP(RedisDifferential, ChangedNumbersCarryAsInMemory, ()) {
    const Pair pair = open();
    const std::string key = "r/k";
    std::int64_t now = *rc::gen::inRange<std::int64_t>(0, 1'000'000);
    Mono since{};
    Limit limit = any_slow_limit();
    const int changes = *rc::gen::inRange(1, 6);
    for (int change = 0; change < changes; ++change) {
        const int steps = *rc::gen::inRange(1, 8);
        for (int step = 0; step < steps; ++step) {
            const auto op = *rc::gen::element(ChargeOp::take, ChargeOp::take, ChargeOp::observe,
                                              ChargeOp::force);
            run_in_ticks(pair,
                         {.key = key,
                          .rule_bytes = 2,
                          .op = op,
                          .cost = any_cost(limit, op),
                          .limit = *LimitRef::of(limit)},
                         since, now);
            now += std::abs(any_pause(limit));
            if (now > last_moment / us) {
                return;
            }
        }
        const auto kind = limit.kind;
        limit = any_slow_limit();
        if (*rc::gen::arbitrary<bool>() && kind != LimitKind::concurrency) {
            // Most changes are of numbers alone.
            while (limit.kind != kind) {
                limit = any_slow_limit();
            }
        }
        since = Mono(Nanos(now));
        now += std::abs(any_pause(limit));
        if (now > last_moment / us) {
            return;
        }
    }
}

// Buckets of every speed, also by way of one that refills nothing: what Redis tells is at most its
// ticks later, never earlier.
RC_GTEST_PROP(RedisDifferential, ChangedBucketsTellWhatMemoryTellsToTheMicrosecond, ()) {
    const Pair pair = open();
    const auto bucket = [] {
        const Nanos period = any_period();
        return token_bucket(any_amount(period), period);
    };
    const std::string key = "r/k";
    const Limit before = bucket();
    const Limit after = bucket();
    Charge charge{.key = key,
                  .rule_bytes = 2,
                  .op = ChargeOp::force,
                  .cost = std::min(any_cost(before), most_forced),
                  .limit = *LimitRef::of(before)};
    std::int64_t now = 0;
    run(pair, {.charges = {&charge, 1}}, start);
    const auto pause = [&](const Limit& limit) { now += any_pause(limit) * us / 300; };
    pause(before);
    now -= now % us;
    const bool rests = *rc::gen::arbitrary<bool>();
    if (rests) {
        // Something is charged, so that the store keeps it under these numbers.
        charge.limit = *LimitRef::of(token_bucket(0, std::chrono::seconds(1)));
        charge.cost = 1;
        charge.numbers_since = later(start, Nanos(now)).mono;
        const Transaction transaction{.charges = {&charge, 1}};
        for (Counters* counters : {pair.memory.get(), pair.redis.get()}) {
            RC_ASSERT(counters->apply_one(transaction, later(start, Nanos(now))).count == 1);
        }
    }
    const Mono since = later(start, Nanos(now)).mono;
    pause(after);
    now -= now % us;
    charge.op = ChargeOp::observe;
    charge.limit = *LimitRef::of(after);
    charge.cost = static_cast<std::uint32_t>(after.capacity);
    charge.numbers_since = since;
    const Transaction look{.charges = {&charge, 1}};
    RC_LOG() << text_of(look, later(start, Nanos(now)));
    const Level memory = pair.memory->apply_one(look, later(start, Nanos(now))).levels[0];
    const Level redis = pair.redis->apply_one(look, later(start, Nanos(now))).levels[0];
    const std::int64_t ticks = rests ? 3 : 1;
    const auto in_a_tick = static_cast<std::uint64_t>(
        static_cast<std::int64_t>(after.amount) * us / after.period.count() + 1);
    RC_ASSERT(redis.used >= memory.used);
    RC_ASSERT(redis.used <= memory.used + in_a_tick * static_cast<std::uint64_t>(ticks));
    for (const auto& [told, exact] :
         {std::pair(redis.wait, memory.wait), std::pair(redis.reset, memory.reset)}) {
        if (in_micros(exact) != Nanos::max()) {
            RC_ASSERT(told >= in_micros(exact));
            RC_ASSERT(told <= in_micros(exact) + Nanos(ticks * us));
        }
    }
}

// A gateway whose numbers are older comes in between: it wins and loses the caller nothing.
TEST(RedisChanges, OlderNumbersDoNotReachBackBehindNewerOnes) {
    using std::chrono::hours;
    using std::chrono::minutes;
    using std::chrono::seconds;
    const Pair pair = open();
    struct Row {
        Limit older;
        Limit newer;
        std::uint64_t used;      // under the newer, after an hour of it
        std::uint64_t used_old;  // under the older, asked at the same moment
    };
    const Row rows[] = {
        // 60 less half an hour's 30: of the newer numbers' slow refill nothing is left to see.
        {token_bucket(60, hours(1)), token_bucket(60, hours(24 * 3600)), 31, 31},
        {sliding_counter(60, hours(2)), sliding_counter(60, hours(2000)), 61, 61},
        {fixed_window(60, hours(2)), fixed_window(60, hours(2000)), 61, 61},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(to_string(row.older));
        for (Counters* counters : {pair.memory.get(), pair.redis.get()}) {
            const std::string key = to_string(row.older);
            Charge charge{
                .key = key, .op = ChargeOp::force, .cost = 60, .limit = *LimitRef::of(row.older)};
            const Mono long_ago = start.mono - hours(900);
            charge.numbers_since = long_ago;
            (void)counters->apply_one({.charges = {&charge, 1}}, start);
            const Now changed = later(start, minutes(30) + seconds(1));
            charge.limit = *LimitRef::of(row.newer);
            charge.cost = 1;
            charge.numbers_since = changed.mono;
            const Outcome newer = counters->apply_one({.charges = {&charge, 1}}, changed);
            EXPECT_EQ(newer.levels[0].used, row.used);
            charge.limit = *LimitRef::of(row.older);
            charge.op = ChargeOp::observe;
            if (counters == pair.redis.get()) {
                charge.numbers_since = long_ago;  // another gateway's, which has not heard of it
            }
            const Outcome older = counters->apply_one({.charges = {&charge, 1}}, changed);
            EXPECT_EQ(older.levels[0].used, row.used_old);
        }
    }
}

}  // namespace
}  // namespace ration
