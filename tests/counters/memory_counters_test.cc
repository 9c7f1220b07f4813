// What only the memory counters have: their bounds, the flood rule, keys that come and go, and
// no allocation while deciding.
#include "counters/memory_counters.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <random>
#include <set>
#include <string>

#include "counters/failing_counters.h"
#include "counters/slot_table.h"

namespace {
thread_local std::uint64_t allocations = 0;
}  // namespace

// Out of line, or the compiler sees memory of one kind freed as another.
[[gnu::noinline]] void* operator new(std::size_t size) {
    ++allocations;
    if (void* memory = std::aligned_alloc(16, (size + 15) / 16 * 16)) {
        return memory;
    }
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace ration {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Now start{Mono(hours(5)), Wall(seconds(1'700'006'400))};

LimitRef ref(const Limit& limit) {
    return *LimitRef::of(limit);
}

std::unique_ptr<MemoryCounters> open_small(std::uint64_t log_bytes = min_log_bytes) {
    return *MemoryCounters::open({.max_bytes = min_counter_bytes,
                                  .log_bytes = log_bytes,
                                  .hash_key = std::array<std::uint8_t, 16>{1, 2, 3}});
}

Level charge(Counters& counters, std::string_view key, LimitRef limit, Now now,
             ChargeOp op = ChargeOp::take, std::uint32_t cost = 1) {
    const Charge one{.key = key, .rule_bytes = 2, .op = op, .cost = cost, .limit = limit};
    const Outcome outcome = counters.apply_one({.charges = {&one, 1}}, now);
    EXPECT_EQ(outcome.status, absl::StatusCode::kOk);
    return outcome.levels[0];
}

std::string numbered(const char* prefix, std::uint64_t number) {
    return prefix + std::to_string(number);
}

// Keys "r/0"... in debt until no more get a place of their own.
std::uint64_t fill(Counters& counters, LimitRef limit, Now now) {
    std::uint64_t number = 0;
    while (counters.stats().overflowed == 0) {
        (void)charge(counters, numbered("r/", number++), limit, now);
    }
    return number - 1;
}

TEST(MemoryCountersOptions, BoundsAreChecked) {
    const auto opens = [](const MemoryCountersOptions& options) {
        return MemoryCounters::open(options).ok();
    };
    EXPECT_TRUE(opens({.max_bytes = min_counter_bytes}));
    EXPECT_FALSE(opens({.max_bytes = min_counter_bytes - 1}));
    EXPECT_TRUE(opens({.max_bytes = 1U << 20, .log_bytes = min_log_bytes}));
    EXPECT_FALSE(opens({.max_bytes = 1U << 20, .log_bytes = min_log_bytes - 1}));
    EXPECT_TRUE(opens({.max_bytes = 1U << 20, .log_bytes = 1U << 19}));
    EXPECT_FALSE(opens({.max_bytes = 1U << 20, .log_bytes = (1U << 19) + 1}));
    EXPECT_TRUE(opens({.max_bytes = 1U << 30, .shards = max_shards}));
    EXPECT_FALSE(opens({.max_bytes = 1U << 30, .shards = 2 * max_shards}));
    EXPECT_FALSE(opens({.max_bytes = 1U << 30, .shards = 3}));
    EXPECT_FALSE(opens({.max_bytes = 1U << 20, .shards = 64})) << "shards too small";
    EXPECT_FALSE(opens({.max_bytes = max_counter_bytes + 1}));
}

TEST(MemoryCounters, MemoryStaysUnderTheBound) {
    for (const std::uint64_t bytes : {min_counter_bytes, std::uint64_t{1} << 20,
                                      std::uint64_t{64} << 20, std::uint64_t{280} << 20}) {
        const auto counters = *MemoryCounters::open({.max_bytes = bytes});
        EXPECT_LE(counters->stats().bytes, bytes);
        EXPECT_GT(counters->stats().bytes, bytes - bytes / 16);
    }
}

TEST(MemoryCounters, DecidingAllocatesNothing) {
    const auto counters = open_small();
    const LimitRef limits[] = {ref(token_bucket(60, minutes(1))), ref(fixed_window(60, minutes(1))),
                               ref(sliding_window(60, minutes(1))),
                               ref(sliding_counter(60, minutes(1))), ref(concurrency(60))};
    std::array<Charge, 5> charges;
    const std::string keys[] = {"a/x", "b/x", "c/x", "d/x", "e/x"};
    for (std::size_t i = 0; i < charges.size(); ++i) {
        charges[i] = {.key = keys[i], .rule_bytes = 2, .limit = limits[i]};
    }
    const std::uint64_t before = allocations;
    for (int i = 0; i < 1000; ++i) {
        (void)counters->apply_one({.charges = charges}, later(start, seconds(i)));
    }
    counters->sweep(start, 10'000);
    EXPECT_EQ(allocations, before);
}

TEST(MemoryCounters, KeysThatAreBackToNeverSeenGoOnASweep) {
    const auto counters = *MemoryCounters::open({.max_bytes = 4U << 20});
    const LimitRef limit = ref(token_bucket(10, minutes(1)));
    for (std::uint64_t i = 0; i < 50'000; ++i) {
        (void)charge(*counters, numbered("r/", i), limit, start);
    }
    (void)charge(*counters, "r/0", limit, start, ChargeOp::take, 9);
    EXPECT_EQ(counters->stats().keys, 50'000U);
    counters->sweep(later(start, seconds(6) - Nanos(1)), 1'000'000);
    EXPECT_EQ(counters->stats().keys, 50'000U) << "a bucket that is not full is not forgotten";
    counters->sweep(later(start, seconds(6)), 1'000'000);
    EXPECT_EQ(counters->stats().keys, 1U);
    EXPECT_EQ(counters->stats().evictions, 49'999U);
    EXPECT_EQ(charge(*counters, "r/0", limit, later(start, seconds(6))).used, 10U);
    counters->sweep(later(start, minutes(2)), 1'000'000);
    EXPECT_EQ(counters->stats().keys, 0U);
}

TEST(MemoryCounters, EveryKindLeavesWhenUnused) {
    const auto counters = open_small();
    const Limit kinds[] = {token_bucket(10, minutes(1)), fixed_window(10, minutes(1)),
                           sliding_window(10, minutes(1)), sliding_counter(10, minutes(1)),
                           concurrency(10)};
    for (int round = 0; round < 200; ++round) {  // many more than there are blocks
        const Now now = later(start, minutes(5) * round);
        for (const Limit& numbers : kinds) {
            const std::string key = "r/" + to_string(numbers) + std::to_string(round);
            EXPECT_EQ(charge(*counters, key, ref(numbers), now, ChargeOp::take, 6).used, 6U);
            if (numbers.kind == LimitKind::concurrency) {
                (void)charge(*counters, key, ref(numbers), now, ChargeOp::give_back, 6);
            }
        }
        EXPECT_EQ(counters->stats().keys, 4U);
        counters->sweep(later(now, minutes(3)), 100'000);
        EXPECT_EQ(counters->stats().keys, 0U);
    }
    EXPECT_EQ(counters->stats().overflowed, 0U);
}

TEST(MemoryCounters, AtTheBoundNewcomersShareOneBucketAndNobodyIsForgiven) {
    const auto counters = open_small();
    const LimitRef limit = ref(token_bucket(3, hours(1)));
    (void)charge(*counters, "r/busy", limit, start, ChargeOp::take, 3);
    const std::uint64_t known = fill(*counters, limit, start);
    EXPECT_GT(known, 1000U);
    EXPECT_EQ(counters->stats().overflowed, 1U);
    // The overflow bucket has two left for all newcomers together.
    EXPECT_EQ(charge(*counters, "r/x", limit, start).remaining, 1U);
    EXPECT_EQ(charge(*counters, "r/y", limit, start).remaining, 0U);
    EXPECT_EQ(charge(*counters, "r/z", limit, start).verdict, Verdict::refused);
    EXPECT_EQ(charge(*counters, "r/z", limit, start, ChargeOp::observe).verdict, Verdict::refused);
    EXPECT_EQ(counters->stats().overflowed, 4U);
    // An outcome says which of its charges met it.
    const std::array both{Charge{.key = "r/busy", .rule_bytes = 2, .limit = limit},
                          Charge{.key = "r/z", .rule_bytes = 2, .limit = limit}};
    EXPECT_EQ(counters->apply_one({.charges = both}, start).shared, 2U);
    EXPECT_EQ(counters->apply_one({.charges = std::span(both).first(1)}, start).shared, 0U);
    // Another limit has its own.
    EXPECT_EQ(charge(*counters, "s/z", limit, start).remaining, 2U);
    EXPECT_EQ(charge(*counters, "r/busy", limit, start).verdict, Verdict::refused);
    for (std::uint64_t i = 0; i < known; ++i) {
        ASSERT_EQ(charge(*counters, numbered("r/", i), limit, start, ChargeOp::observe).used, 1U);
    }
    // Given back: there is a place again, and it is found.
    (void)charge(*counters, "r/7", limit, start, ChargeOp::give_back);
    EXPECT_EQ(charge(*counters, "r/z", limit, start).remaining, 2U);
}

TEST(MemoryCounters, AtTheBoundKeysThatCarryNothingMakeRoomFirst) {
    const auto counters = open_small();
    const LimitRef limit = ref(token_bucket(3, hours(1)));
    // One key is full again after a minute, all others after twenty.
    const LimitRef quick = ref(token_bucket(60, hours(1)));
    (void)charge(*counters, "r/quick", quick, start);
    (void)fill(*counters, limit, start);
    EXPECT_EQ(charge(*counters, "r/new", limit, later(start, seconds(30))).remaining, 1U)
        << "nobody has left yet";
    EXPECT_EQ(charge(*counters, "r/new", limit, later(start, seconds(61))).remaining, 2U)
        << "in the place of the key that is back to never-seen";
    EXPECT_EQ(counters->stats().evictions, 1U);
    EXPECT_EQ(charge(*counters, "r/next", limit, later(start, seconds(61))).verdict,
              Verdict::admitted);
    EXPECT_EQ(counters->stats().overflowed, 3U);
}

TEST(MemoryCounters, InFlightSlotsComeBackToTheOverflowTheyWereTakenFrom) {
    const auto counters = open_small();
    const LimitRef in_flight = ref(concurrency(2));
    const LimitRef bucket = ref(token_bucket(1, hours(1)));
    const std::uint64_t known = fill(*counters, bucket, start);
    EXPECT_EQ(charge(*counters, "c/a", in_flight, start).used, 1U);
    EXPECT_EQ(charge(*counters, "c/b", in_flight, start).used, 2U);
    EXPECT_EQ(charge(*counters, "c/d", in_flight, start).verdict, Verdict::refused);
    // Even with room again, while the overflow is in use its callers stay there.
    for (std::uint64_t i = 0; i < known; ++i) {
        (void)charge(*counters, numbered("r/", i), bucket, start, ChargeOp::give_back);
    }
    EXPECT_EQ(counters->stats().keys, 2U);
    EXPECT_EQ(charge(*counters, "c/a", in_flight, start, ChargeOp::give_back).used, 1U);
    EXPECT_EQ(charge(*counters, "c/a", in_flight, start).used, 2U);
    EXPECT_EQ(charge(*counters, "c/b", in_flight, start, ChargeOp::give_back).used, 1U);
    EXPECT_EQ(charge(*counters, "c/a", in_flight, start, ChargeOp::give_back).used, 0U);
    EXPECT_EQ(charge(*counters, "c/a", in_flight, start).used, 1U);
    EXPECT_EQ(charge(*counters, "c/b", in_flight, start).used, 1U) << "each by itself again";
}

TEST(MemoryCounters, TheSameRequestMeetsTheOverflowOncePerLimit) {
    const auto counters = open_small();
    const LimitRef limit = ref(token_bucket(3, hours(1)));
    (void)fill(*counters, limit, start);
    const Charge charges[] = {{.key = "r/n1", .rule_bytes = 2, .limit = limit},
                              {.key = "r/n2", .rule_bytes = 2, .limit = limit},
                              {.key = "s/n1", .rule_bytes = 2, .limit = limit}};
    Outcome outcome = counters->apply_one({.charges = charges}, start);
    EXPECT_TRUE(outcome.admitted);
    EXPECT_EQ(outcome.levels[1].used, 3U);
    EXPECT_EQ(outcome.levels[2].used, 1U);
    outcome = counters->apply_one({.charges = charges}, start);
    EXPECT_FALSE(outcome.admitted);
    EXPECT_EQ(outcome.levels[2].used, 1U);
}

TEST(MemoryCounters, SlidingLogsHaveABoundOfTheirOwn) {
    const auto counters = open_small();
    const LimitRef limit = ref(sliding_window(1000, hours(1)));
    std::uint64_t admitted = 0;
    // One key records far more moments than there are blocks for.
    for (int i = 0; i < 1500; ++i) {
        const Level level = charge(*counters, "r/k", limit, later(start, seconds(i)));
        admitted += level.verdict == Verdict::admitted ? 1U : 0U;
    }
    EXPECT_EQ(admitted, 1000U) << "nothing is forgotten when records have to be joined";
    // Joined records leave together, never early.
    EXPECT_EQ(charge(*counters, "r/k", limit, later(start, seconds(999) + hours(1))).verdict,
              Verdict::admitted);
    // And newcomers share the limit's overflow log.
    EXPECT_EQ(
        charge(*counters, "r/a", limit, later(start, seconds(1500)), ChargeOp::take, 600).remaining,
        400U);
    EXPECT_LE(counters->stats().bytes, min_counter_bytes);
}

TEST(MemoryCounters, OneKeyTakesConstantMemoryHoweverOftenItIsRefused) {
    const auto counters = open_small();
    const LimitRef log = ref(sliding_window(60, minutes(1)));
    const LimitRef bucket = ref(token_bucket(60, minutes(1)));
    for (int i = 0; i < 200'000; ++i) {
        const Now now = later(start, std::chrono::microseconds(i));
        (void)charge(*counters, "r/l", log, now);
        (void)charge(*counters, "r/b", bucket, now);
    }
    EXPECT_EQ(counters->stats().keys, 2U);
    EXPECT_EQ(charge(*counters, "r/l", log, later(start, seconds(1))).used, 60U);
}

TEST(SlotTable, HoldsWhatAPlainSetHolds) {
    std::vector<Slot> slots(SlotTable::min_slots);
    SlotTable table(slots.data(), SlotTable::min_slots, 0);
    std::set<std::uint64_t> model;
    std::mt19937_64 random(7);
    for (int i = 0; i < 200'000; ++i) {
        // Few distinct hashes, in clumps at both ends and in the middle.
        const std::uint64_t clump = (random() % 3) * 0x7fffffffffffff00ULL;
        const std::uint64_t hash = std::max<std::uint64_t>(1, clump + random() % 250);
        const std::uint32_t position = table.seek(hash);
        ASSERT_EQ(table.holds(position, hash), model.contains(hash));
        if (model.contains(hash)) {
            ASSERT_EQ(table.at(position).as_of, static_cast<std::int64_t>(hash >> 1));
        }
        if (random() % 2 == 0 && model.contains(hash)) {
            table.erase(position);
            model.erase(hash);
        } else if (!model.contains(hash) && table.has_room(1)) {
            table.insert(position, hash).as_of = static_cast<std::int64_t>(hash >> 1);
            model.insert(hash);
        }
        ASSERT_EQ(table.keys(), model.size());
    }
    for (const std::uint64_t hash : model) {
        ASSERT_TRUE(table.holds(table.seek(hash), hash));
    }
}

TEST(SlotTable, HasRoomForNineTenths) {
    std::vector<Slot> slots(SlotTable::min_slots);
    SlotTable table(slots.data(), SlotTable::min_slots, 0);
    std::mt19937_64 random(11);
    while (table.has_room(1)) {
        const std::uint64_t hash = random() | 1;
        table.insert(table.seek(hash), hash);
    }
    EXPECT_EQ(table.keys(), table.max_keys());
    EXPECT_FALSE(table.has_room(1));
    table.erase(table.seek(slots[500].hash != 0 ? slots[500].hash : slots[501].hash));
    EXPECT_TRUE(table.has_room(1));
    EXPECT_FALSE(table.has_room(2));
}

TEST(FailingCounters, FailsTheCallItWasToldTo) {
    const auto memory = open_small();
    FailingCounters failing(*memory);
    failing.fail_call(2);
    const LimitRef limit = ref(token_bucket(10, hours(1)));
    const Charge one{.key = "r/k", .rule_bytes = 2, .limit = limit};
    const std::vector<absl::StatusCode> expected{
        absl::StatusCode::kOk, absl::StatusCode::kUnavailable, absl::StatusCode::kOk};
    for (const absl::StatusCode status : expected) {
        EXPECT_EQ(failing.apply_one({.charges = {&one, 1}}, start).status, status);
    }
    failing.set_down(true);
    EXPECT_EQ(failing.apply_one({.charges = {&one, 1}}, start).status,
              absl::StatusCode::kUnavailable);
    EXPECT_EQ(charge(*memory, "r/k", limit, start).used, 3U);
    EXPECT_EQ(failing.calls(), 4U);
}

}  // namespace
}  // namespace ration
