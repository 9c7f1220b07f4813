// The second half of the conformance suite: several charges at once, give back, changed numbers,
// batches. Included by conformance.h.
#pragma once

#include "counters/conformance.h"

namespace ration {

// ---- all or nothing ----

TEST_P(CountersConformance, RefusedRequestsChargeNoneOfTheirLimits) {
    const LimitRef small = ref(token_bucket(5, minutes(1)));
    const LimitRef large = ref(token_bucket(100, minutes(1)));
    int admitted = 0;
    for (int i = 0; i < 55; ++i) {
        const Outcome outcome = apply(
            {{.key = "large/x", .limit = large}, {.key = "small/x", .limit = small}}, at_ms(0));
        admitted += outcome.admitted ? 1 : 0;
        if (!outcome.admitted) {
            EXPECT_EQ(outcome.levels[0].verdict, Verdict::admitted) << "it would have been";
            EXPECT_EQ(outcome.levels[0].remaining, 95U);
            EXPECT_EQ(outcome.levels[1].verdict, Verdict::refused);
            EXPECT_EQ(outcome.levels[1].wait, seconds(12));
        }
    }
    EXPECT_EQ(admitted, 5);
    EXPECT_EQ(look(large, at_ms(0), 1, "large/x").remaining, 95U);
}

TEST_P(CountersConformance, RefusalsByOneAxisLeaveTheOtherAlone) {
    const LimitRef caller = ref(token_bucket(1, minutes(1)));
    const LimitRef workspace = ref(token_bucket(10, minutes(1)));
    const auto ask = [&](std::string_view who) {
        return apply({{.key = who, .limit = caller}, {.key = "w/all", .limit = workspace}},
                     at_ms(0))
            .admitted;
    };
    EXPECT_TRUE(ask("c/A"));
    for (int i = 0; i < 19; ++i) {
        EXPECT_FALSE(ask("c/A"));
    }
    for (const char* who : {"c/B", "c/C", "c/D", "c/E", "c/F", "c/G", "c/H", "c/I", "c/J"}) {
        EXPECT_TRUE(ask(who)) << who;
    }
    EXPECT_FALSE(ask("c/K"));
    EXPECT_EQ(look(caller, at_ms(0), 1, "c/K").remaining, 1U);
}

TEST_P(CountersConformance, ARequirementRefusesLikeATakeAndChargesNothing) {
    const LimitRef block = ref(token_bucket(1, seconds(1), 600));
    const LimitRef minute = ref(token_bucket(60, minutes(1)));
    const auto ask = [&](Now now) {
        return apply({{.key = "b/x", .limit = block, .cost = 600, .op = ChargeOp::require},
                      {.key = "m/x", .limit = minute}},
                     now);
    };
    for (int i = 0; i < 3; ++i) {
        const Outcome free = ask(at_ms(0));
        EXPECT_TRUE(free.admitted);
        EXPECT_EQ(free.levels[0].verdict, Verdict::admitted);
        EXPECT_EQ(free.levels[0].used, 0U);
    }
    EXPECT_TRUE(apply({{.key = "b/x", .limit = block, .cost = 90, .op = ChargeOp::force}}, at_ms(0))
                    .admitted);
    const Outcome blocked = ask(at_ms(500));
    EXPECT_FALSE(blocked.admitted);
    EXPECT_EQ(blocked.levels[0].verdict, Verdict::refused);
    EXPECT_EQ(blocked.levels[0].wait, seconds(90) - Nanos(500'000'000));
    EXPECT_EQ(look(minute, at_ms(500), 1, "m/x").used, 3U) << "nothing was charged";
    EXPECT_FALSE(ask(at(seconds(90) - Nanos(1'000))).admitted);
    EXPECT_TRUE(ask(at(seconds(90))).admitted);
}

TEST_P(CountersConformance, ARequirementOnAWindowIsJudgedBeforeWhatFollows) {
    for (const Limit& kind :
         {fixed_window(2, hours(1)), sliding_window(2, hours(1)), sliding_counter(2, hours(1))}) {
        SCOPED_TRACE(to_string(kind));
        counters = GetParam().open();
        const LimitRef limit = ref(kind);
        const auto ask = [&] {
            return apply({{.key = "w/x", .limit = limit, .op = ChargeOp::require},
                          {.key = "w/x", .limit = limit}},
                         at_ms(0))
                .admitted;
        };
        EXPECT_TRUE(ask());
        EXPECT_TRUE(ask());
        EXPECT_FALSE(ask());
        EXPECT_EQ(look(limit, at_ms(0), 1, "w/x").used, 2U);
    }
}

TEST_P(CountersConformance, EveryRefusalIsToldWithItsOwnWait) {
    const LimitRef minute = ref(token_bucket(1, minutes(1)));
    const LimitRef hour = ref(fixed_window(1, hours(1)));
    const LimitRef none = ref(token_bucket(0, minutes(1)));
    EXPECT_TRUE(
        apply({{.key = "m/x", .limit = minute}, {.key = "h/x", .limit = hour}}, at_ms(0)).admitted);
    const Outcome outcome = apply({{.key = "m/x", .limit = minute},
                                   {.key = "h/x", .limit = hour},
                                   {.key = "n/x", .limit = none}},
                                  at(seconds(10)));
    EXPECT_FALSE(outcome.admitted);
    EXPECT_EQ(outcome.levels[0].wait, seconds(50));
    EXPECT_EQ(outcome.levels[1].wait, seconds(3590));
    EXPECT_EQ(outcome.levels[2].verdict, Verdict::never);
}

TEST_P(CountersConformance, AttemptsAreCountedOnceWhateverTheOthersSay) {
    const LimitRef attempts = ref(fixed_window(100, minutes(1), true));
    const LimitRef bucket = ref(token_bucket(2, minutes(1)));
    for (std::uint64_t i = 1; i <= 10; ++i) {
        const Outcome outcome =
            apply({{.key = "a/x", .limit = attempts}, {.key = "b/x", .limit = bucket}}, at_ms(0));
        EXPECT_EQ(outcome.admitted, i <= 2);
        EXPECT_EQ(outcome.levels[0].used, i);
        EXPECT_EQ(outcome.levels[0].remaining, 100 - i);
        EXPECT_EQ(outcome.levels[0].verdict, Verdict::admitted);
    }
    const LimitRef few = ref(fixed_window(1, minutes(1), true));
    for (std::uint64_t i = 1; i <= 4; ++i) {
        const Outcome outcome =
            apply({{.key = "f/x", .limit = few},
                   {.key = "large/x", .limit = ref(token_bucket(9, minutes(1)))}},
                  at_ms(0));
        EXPECT_EQ(outcome.levels[0].used, i);
        EXPECT_EQ(outcome.levels[1].remaining, 8U);
    }
}

TEST_P(CountersConformance, TwoChargesOnOneKeyBothCount) {
    const LimitRef limit = ref(token_bucket(3, minutes(1)));
    Outcome outcome =
        apply({{.key = "r/k", .limit = limit}, {.key = "r/k", .limit = limit}}, at_ms(0));
    EXPECT_TRUE(outcome.admitted);
    EXPECT_EQ(outcome.levels[0].remaining, 2U);
    EXPECT_EQ(outcome.levels[1].remaining, 1U);
    outcome = apply({{.key = "r/k", .limit = limit}, {.key = "r/k", .limit = limit}}, at_ms(0));
    EXPECT_FALSE(outcome.admitted);
    EXPECT_EQ(outcome.levels[0].verdict, Verdict::admitted);
    EXPECT_EQ(outcome.levels[1].verdict, Verdict::refused);
    EXPECT_EQ(outcome.levels[1].wait, seconds(20)) << "both fit once a second token is there";
    EXPECT_EQ(look(limit, at_ms(0)).remaining, 1U);
    const LimitRef log = ref(sliding_window(3, minutes(1)));
    const auto twice = [&] {
        return apply({{.key = "l/k", .limit = log}, {.key = "l/k", .limit = log}}, at_ms(0))
            .admitted;
    };
    EXPECT_TRUE(twice());
    EXPECT_FALSE(twice());
    EXPECT_EQ(look(log, at_ms(0), 1, "l/k").used, 2U);
}

TEST_P(CountersConformance, OneTransactionHoldsEveryKindUpToTheBound) {
    const LimitRef limits[] = {ref(token_bucket(2, minutes(1))), ref(fixed_window(2, minutes(1))),
                               ref(sliding_window(2, minutes(1))),
                               ref(sliding_counter(2, minutes(1)))};
    std::vector<std::string> keys;
    std::vector<Charge> charges;
    for (std::size_t i = 0; i <= max_charges; ++i) {
        keys.push_back("r" + std::to_string(i) + "/k");
    }
    for (std::size_t i = 0; i < max_charges; ++i) {
        charges.push_back({.key = keys[i], .rule_bytes = 3, .limit = limits[i % 4]});
    }
    for (int i = 0; i < 3; ++i) {
        const Outcome outcome = counters->apply_one({.charges = charges}, at_ms(0));
        EXPECT_EQ(outcome.status, absl::StatusCode::kOk);
        EXPECT_EQ(outcome.count, max_charges);
        EXPECT_EQ(outcome.admitted, i < 2);
    }
    charges.push_back({.key = keys[max_charges], .rule_bytes = 3, .limit = limits[0]});
    EXPECT_EQ(counters->apply_one({.charges = charges}, at_ms(0)).status,
              absl::StatusCode::kInvalidArgument);
}

TEST_P(CountersConformance, KeysHaveABound) {
    const LimitRef limit = ref(token_bucket(2, minutes(1)));
    const std::string longest(max_key_bytes, 'k');
    const Charge fits{.key = longest, .rule_bytes = 1, .limit = limit};
    EXPECT_TRUE(counters->apply_one({.charges = {&fits, 1}}, at_ms(0)).admitted);
    const std::string too_long(max_key_bytes + 1, 'k');
    for (const Charge& bad :
         {Charge{.key = too_long, .rule_bytes = 1, .limit = limit},
          Charge{.key = "k", .rule_bytes = 2, .limit = limit}, Charge{.key = "k", .limit = {}}}) {
        const Outcome outcome = counters->apply_one({.charges = {&bad, 1}}, at_ms(0));
        EXPECT_EQ(outcome.status, absl::StatusCode::kInvalidArgument);
        EXPECT_FALSE(outcome.admitted);
    }
}

TEST_P(CountersConformance, ATransactionWithoutChargesIsAdmitted) {
    EXPECT_TRUE(apply({}, at_ms(0)).admitted);
}

TEST_P(CountersConformance, BatchesAreJudgedInOrder) {
    const LimitRef limit = ref(token_bucket(3, minutes(1)));
    const Charge charge{.key = "r/k", .rule_bytes = 2, .limit = limit};
    const std::vector<Transaction> batch(5, Transaction{.charges = {&charge, 1}});
    std::vector<Outcome> outcomes(5);
    counters->apply(batch, at_ms(0), outcomes);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        EXPECT_EQ(outcomes[i].admitted, i < 3);
        EXPECT_EQ(outcomes[i].levels[0].remaining, i < 3 ? 2 - i : 0);
    }
}

// ---- looking and giving back ----

TEST_P(CountersConformance, LookingChangesNothing) {
    const LimitRef limit = ref(token_bucket(3, minutes(1)));
    EXPECT_EQ(look(limit, at_ms(0), 3).verdict, Verdict::admitted);
    EXPECT_EQ(look(limit, at_ms(0), 4).verdict, Verdict::never);
    EXPECT_EQ(counters->stats().keys, 0U) << "a key is not kept for having been looked at";
    EXPECT_EQ(take(limit, at_ms(0), 2).remaining, 1U);
    const Level first = look(limit, at_ms(100), 2);
    EXPECT_EQ(first, look(limit, at_ms(100), 2));
    EXPECT_EQ(first.verdict, Verdict::refused);
    EXPECT_EQ(counters->stats().keys, 1U);
}

TEST_P(CountersConformance, GivingBackNeverLiftsAboveCapacity) {
    for (const Limit& numbers :
         {token_bucket(10, minutes(1)), fixed_window(10, minutes(1)),
          sliding_window(10, minutes(1)), sliding_counter(10, minutes(1)), concurrency(10)}) {
        SCOPED_TRACE(to_string(numbers));
        counters = GetParam().open();
        const LimitRef limit = ref(numbers);
        EXPECT_EQ(give(limit, at_ms(0), 5).remaining, 10U);
        EXPECT_EQ(take(limit, at_ms(0), 10).remaining, 0U);
        EXPECT_EQ(give(limit, at_ms(0), 4).remaining, 4U);
        EXPECT_EQ(take(limit, at_ms(0), 4).verdict, Verdict::admitted);
        EXPECT_EQ(give(limit, at_ms(0), 99).remaining, 10U);
        EXPECT_EQ(admitted_of(20, limit, at_ms(0)), 10);
    }
}

TEST_P(CountersConformance, AWindowTakesBackOnlyWhatWasTakenInIt) {
    const LimitRef limit = ref(fixed_window(10, minutes(1)));
    EXPECT_EQ(take(limit, at(seconds(50)), 8).remaining, 2U);
    EXPECT_EQ(take(limit, at(seconds(61)), 3).remaining, 7U);
    EXPECT_EQ(give(limit, at(seconds(62)), 8, at(seconds(50))).used, 3U);
    EXPECT_EQ(give(limit, at(seconds(62)), 2, at(seconds(61))).used, 1U);
    const LimitRef log = ref(sliding_window(10, minutes(1)));
    EXPECT_EQ(take(log, at(seconds(100)), 4).used, 4U);
    EXPECT_EQ(take(log, at(seconds(130)), 4).used, 8U);
    EXPECT_EQ(give(log, at(seconds(161)), 4, at(seconds(100))).used, 4U);
}

// ---- what is already a fact ----

TEST_P(CountersConformance, AForcedChargeIsOwedPastTheCapacity) {
    const LimitRef limit = ref(token_bucket(10, minutes(1)));
    EXPECT_EQ(take(limit, at_ms(0), 4).used, 4U);
    const Outcome outcome =
        apply({{.key = "r/k", .limit = limit, .cost = 11, .op = ChargeOp::force}}, at_ms(0));
    EXPECT_TRUE(outcome.admitted);
    EXPECT_EQ(outcome.levels[0].used, 15U);
    EXPECT_EQ(outcome.levels[0].remaining, 0U);
    const Level refused = look(limit, at_ms(0));
    EXPECT_EQ(refused.wait, seconds(36)) << "five too many, and one to have";
    EXPECT_EQ(refused.reset, seconds(90));
    expect_exact_wait(limit, at_ms(0), 1);
    EXPECT_EQ(give(limit, at_ms(0), 6).used, 9U);
}

TEST_P(CountersConformance, AForcedChargeCountsForEveryKind) {
    for (const Limit& numbers :
         {token_bucket(10, minutes(1)), fixed_window(10, minutes(1)),
          sliding_window(10, minutes(1)), sliding_counter(10, minutes(1)), concurrency(10)}) {
        SCOPED_TRACE(to_string(numbers));
        counters = GetParam().open();
        const LimitRef limit = ref(numbers);
        EXPECT_TRUE(
            apply({{.key = "r/k", .limit = limit, .cost = 9, .op = ChargeOp::force}}, at_ms(0))
                .admitted);
        EXPECT_EQ(take(limit, at_ms(0)).remaining, 0U);
        EXPECT_EQ(take(limit, at_ms(0)).verdict, Verdict::refused);
    }
}

// ---- changed numbers ----

TEST_P(CountersConformance, ARaisedBucketKeepsItsUse) {
    const LimitRef ten = ref(token_bucket(10, minutes(1)));
    const LimitRef twenty = ref(token_bucket(20, minutes(1)));
    EXPECT_EQ(take(ten, at_ms(0), 6).remaining, 4U);
    const Outcome outcome =
        apply({{.key = "r/k", .limit = twenty, .cost = 0}}, at_ms(0), at_ms(0).mono);
    EXPECT_EQ(outcome.levels[0].remaining, 14U);
    EXPECT_EQ(admitted_of(20, twenty, at_ms(0)), 14);
}

TEST_P(CountersConformance, AnIdleBucketRefillsUnderTheOldRateUntilTheChange) {
    const LimitRef slow = ref(token_bucket(10, minutes(10)));
    const LimitRef fast = ref(token_bucket(60, minutes(1)));
    EXPECT_EQ(take(slow, at_ms(0), 10).remaining, 0U);
    // Three minutes at one a minute, then two seconds at one a second.
    const Outcome outcome = apply({{.key = "r/k", .limit = fast, .op = ChargeOp::observe}},
                                  at(seconds(182)), at(minutes(3)).mono);
    EXPECT_EQ(outcome.levels[0].used, 5U);
    EXPECT_EQ(outcome.levels[0].remaining, 55U);
}

TEST_P(CountersConformance, AWindowChangedMidwayKeepsItsCount) {
    const LimitRef ten = ref(fixed_window(10, hours(24)));
    const LimitRef twenty = ref(fixed_window(20, hours(24)));
    EXPECT_EQ(admitted_of(20, ten, at(hours(1))), 10);
    EXPECT_EQ(admitted_of(11, twenty, at(hours(2))), 10);
    EXPECT_EQ(look(ten, at(hours(3))).remaining, 0U) << "lowered again: nothing is forgiven";
    EXPECT_EQ(look(ten, at(hours(24))).remaining, 10U);
}

TEST_P(CountersConformance, ChangedKindsCarryWholeUnits) {
    const Limit kinds[] = {token_bucket(10, minutes(10)), fixed_window(10, hours(1)),
                           sliding_window(10, hours(1)), sliding_counter(10, hours(1))};
    for (const Limit& from : kinds) {
        for (const Limit& to : kinds) {
            SCOPED_TRACE(to_string(from) + " -> " + to_string(to));
            counters = GetParam().open();
            EXPECT_EQ(take(ref(from), at_ms(0), 7).used, 7U);
            const Outcome outcome =
                apply({{.key = "r/k", .limit = ref(to), .cost = 2}}, at_ms(500), at_ms(500).mono);
            EXPECT_TRUE(outcome.admitted);
            EXPECT_EQ(outcome.levels[0].used, 9U);
            EXPECT_EQ(look(ref(to), at_ms(500), 2).verdict, Verdict::refused);
        }
    }
}

TEST_P(CountersConformance, InFlightCountsNeitherBecomeRatesNorComeFromThem) {
    const LimitRef bucket = ref(token_bucket(10, minutes(1)));
    const LimitRef in_flight = ref(concurrency(10));
    EXPECT_EQ(take(in_flight, at_ms(0), 4).used, 4U);
    EXPECT_EQ(take(bucket, at_ms(0)).used, 1U);
    EXPECT_EQ(give(in_flight, at_ms(0), 4).used, 1U) << "slots of before the change return nothing";
}

TEST_P(CountersConformance, UnitsAreGivenBackUnderNumbersThatChangedSince) {
    const LimitRef ten = ref(token_bucket(10, minutes(1)));
    const LimitRef window = ref(fixed_window(10, minutes(1)));
    EXPECT_EQ(take(ten, at_ms(0), 4).used, 4U);
    EXPECT_EQ(take(window, at_ms(0), 1).used, 5U);
    EXPECT_EQ(give(ten, at_ms(0), 4).used, 1U);
    EXPECT_EQ(look(window, at_ms(0)).used, 1U);
}

}  // namespace ration
