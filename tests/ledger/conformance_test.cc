// What every ledger must do, whatever keeps it: each test runs against a fresh one, and `restart`
// closes and opens it again.
#include "ration/ledger.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <thread>

#include "ledger/ledger_world.h"

namespace ration {
namespace {

struct Store {
    const char* name;
    absl::StatusOr<std::unique_ptr<Ledger>> (*open)(const TemporaryFolder& folder);
};

class LedgerConformance : public testing::TestWithParam<Store> {
protected:
    void SetUp() override { restart(); }

    void restart() {
        ledger_.reset();
        absl::StatusOr<std::unique_ptr<Ledger>> opened = GetParam().open(folder_);
        ASSERT_TRUE(opened.ok()) << opened.status();
        ledger_ = std::move(*opened);
    }

    Reserved reserve(const Reserve& request, Wall now = noon) {
        LedgerReply reply = ledger_->apply_one(request, now);
        EXPECT_TRUE(reply.status.ok()) << reply.status;
        return std::move(reply.reserved);
    }

    void settle(AttemptId attempt, SettleKind kind, const StoredResponse* response = nullptr,
                Wall now = noon) {
        const LedgerReply reply = ledger_->apply_one(Settle{attempt, kind, response, {}}, now);
        EXPECT_TRUE(reply.status.ok()) << reply.status;
        EXPECT_TRUE(reply.found);
    }

    // A write of one request against `ceiling`, from reserve to settle.
    ReserveVerdict write(const CeilingUse& ceiling, Wall now = noon) {
        const Reserved reserved = reserve({std::nullopt, {&ceiling, 1}, {}}, now);
        if (reserved.verdict == ReserveVerdict::started) {
            settle(reserved.attempt, SettleKind::written, nullptr, now);
        }
        return reserved.verdict;
    }

    TemporaryFolder folder_;
    std::unique_ptr<Ledger> ledger_;
};

TEST_P(LedgerConformance, CountsWhatWasWrittenUpToTheCeilingAndAcrossARestart) {
    const CeilingUse ceiling = daily("caller", 15);
    for (int i = 0; i < 14; ++i) {
        EXPECT_EQ(write(ceiling), ReserveVerdict::started);
    }
    restart();
    EXPECT_EQ(write(ceiling), ReserveVerdict::started);
    EXPECT_EQ(write(ceiling), ReserveVerdict::ceiling_reached);
    restart();
    EXPECT_EQ(write(ceiling), ReserveVerdict::ceiling_reached);
    EXPECT_EQ(ledger_->level(ceiling).value(), 15U);
}

TEST_P(LedgerConformance, ACeilingOfZeroWritesNothing) {
    EXPECT_EQ(write(daily("caller", 0)), ReserveVerdict::ceiling_reached);
}

TEST_P(LedgerConformance, TheDayIsJudgedFromInstants) {
    EXPECT_EQ(write(daily("caller", 1)), ReserveVerdict::started);
    // The same key under another zone's day that begins after the write: nothing written in it.
    EXPECT_EQ(write(daily("caller", 1, noon + 1h), noon + 2h), ReserveVerdict::started);
    // And a day that holds both.
    EXPECT_EQ(write(daily("caller", 2, noon - 1h), noon + 3h), ReserveVerdict::ceiling_reached);
}

TEST_P(LedgerConformance, ARaisedCeilingKeepsTheCount) {
    for (int i = 0; i < 10; ++i) {
        write(daily("caller", 10));
    }
    int more = 0;
    while (write(daily("caller", 20)) == ReserveVerdict::started) {
        ++more;
    }
    EXPECT_EQ(more, 10);
}

TEST_P(LedgerConformance, PeriodsCountByTheirStart) {
    EXPECT_EQ(write(monthly("account", 1)), ReserveVerdict::started);
    EXPECT_EQ(write(monthly("account", 1)), ReserveVerdict::ceiling_reached);
    EXPECT_EQ(write(monthly("account", 1, noon + 480h), noon + 480h), ReserveVerdict::started);
}

TEST_P(LedgerConformance, ReleasedPlacesAreFreeAgain) {
    const CeilingUse ceiling = daily("caller", 1);
    for (const SettleKind kind : {SettleKind::failed, SettleKind::not_sent}) {
        const Reserved reserved = reserve({std::nullopt, {&ceiling, 1}, {}});
        ASSERT_EQ(reserved.verdict, ReserveVerdict::started);
        settle(reserved.attempt, kind);
    }
    EXPECT_EQ(write(ceiling), ReserveVerdict::started);
}

TEST_P(LedgerConformance, TheLastPlacesInFlightContend) {
    const CeilingUse ceiling = daily("caller", 2);
    EXPECT_EQ(write(ceiling), ReserveVerdict::started);
    const Reserved running = reserve({std::nullopt, {&ceiling, 1}, {}});
    EXPECT_EQ(running.verdict, ReserveVerdict::started);
    EXPECT_EQ(reserve({std::nullopt, {&ceiling, 1}, {}}).verdict, ReserveVerdict::contended);
    settle(running.attempt, SettleKind::failed);
    EXPECT_EQ(write(ceiling), ReserveVerdict::started);
}

TEST_P(LedgerConformance, ARefusalByTheSecondCeilingTakesNothingOfTheFirst) {
    const CeilingUse wide = daily("caller", 5);
    const std::vector<CeilingUse> both = {wide, monthly("account", 0)};
    const Reserved refused = reserve({std::nullopt, both, {}});
    EXPECT_EQ(refused.verdict, ReserveVerdict::ceiling_reached);
    EXPECT_EQ(refused.index, 1);
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(write(wide), ReserveVerdict::started);
    }
}

TEST_P(LedgerConformance, PlacesInDoubtCountAsWrittenUntilSettled) {
    const CeilingUse ceiling = daily("caller", 1);
    (void)reserve({std::nullopt, {&ceiling, 1}, {}});
    restart();
    EXPECT_EQ(write(ceiling), ReserveVerdict::ceiling_reached);
    const std::vector<DoubtfulAttempt> doubts = ledger_->doubtful(0, 10);
    ASSERT_EQ(doubts.size(), 1U);
    EXPECT_TRUE(ledger_->apply_one(SettleDoubt{doubts[0].attempt, false}, noon).found);
    EXPECT_EQ(write(ceiling), ReserveVerdict::started);
    EXPECT_FALSE(ledger_->apply_one(SettleDoubt{doubts[0].attempt, false}, noon).found);
}

TEST_P(LedgerConformance, AnUnkeyedDoubtExpiresAsWrittenAtItsWindowsEnd) {
    const CeilingUse ceiling = daily("caller", 1);
    (void)reserve({std::nullopt, {&ceiling, 1}, {}});
    restart();
    ASSERT_TRUE(ledger_->sweep(noon + 11h, 100).ok());
    EXPECT_EQ(ledger_->doubtful(0, 10).size(), 1U);
    ASSERT_TRUE(ledger_->sweep(noon + 12h, 100).ok());
    EXPECT_TRUE(ledger_->doubtful(0, 10).empty());
    EXPECT_EQ(ledger_->level(ceiling).value(), 1U);
}

// ---- idempotency ----

TEST_P(LedgerConformance, ARepeatReplaysAlsoAfterARestart) {
    const Reserved first = reserve({key("k"), {}, {}});
    ASSERT_EQ(first.verdict, ReserveVerdict::started);
    EXPECT_EQ(reserve({key("k"), {}, {}}).verdict, ReserveVerdict::in_progress);
    const StoredResponse response = created("{\"id\":7}");
    settle(first.attempt, SettleKind::written, &response);
    for (int round = 0; round < 2; ++round) {
        const Reserved again = reserve({key("k"), {}, {}});
        ASSERT_EQ(again.verdict, ReserveVerdict::replay);
        EXPECT_EQ(again.response.status, 201);
        EXPECT_EQ(again.response.body, response.body);
        EXPECT_EQ(again.response.headers, response.headers);
        restart();
    }
}

TEST_P(LedgerConformance, ABodilessResponseStaysBodiless) {
    const StoredResponse response{204, {}, ""};
    settle(reserve({key("k"), {}, {}}).attempt, SettleKind::written, &response);
    const Reserved again = reserve({key("k"), {}, {}});
    ASSERT_EQ(again.verdict, ReserveVerdict::replay);
    EXPECT_TRUE(again.response.body.empty());
    EXPECT_TRUE(again.response.headers.empty());
}

TEST_P(LedgerConformance, AnotherFingerprintIsAMismatchInEveryState) {
    const Reserved first = reserve({key("k", 1), {}, {}});
    EXPECT_EQ(reserve({key("k", 2), {}, {}}).verdict, ReserveVerdict::mismatch);
    settle(first.attempt, SettleKind::doubt);
    EXPECT_EQ(reserve({key("k", 2), {}, {}}).verdict, ReserveVerdict::mismatch);
    const Reserved second = reserve({key("k", 1), {}, {}});
    const StoredResponse response = created("a");
    settle(second.attempt, SettleKind::written, &response);
    EXPECT_EQ(reserve({key("k", 2), {}, {}}).verdict, ReserveVerdict::mismatch);
    EXPECT_EQ(reserve({key("k", 1), {}, {}}).verdict, ReserveVerdict::replay);
}

TEST_P(LedgerConformance, AFailureFreesTheKeyAlsoForAnotherBody) {
    settle(reserve({key("k", 1), {}, {}}).attempt, SettleKind::failed);
    EXPECT_EQ(reserve({key("k", 2), {}, {}}).verdict, ReserveVerdict::started);
}

TEST_P(LedgerConformance, AReplayTouchesNoCeiling) {
    const CeilingUse ceiling = daily("caller", 1);
    const StoredResponse response = created("15th");
    settle(reserve({key("k"), {&ceiling, 1}, {}}).attempt, SettleKind::written, &response);
    EXPECT_EQ(reserve({key("k"), {&ceiling, 1}, {}}).verdict, ReserveVerdict::replay);
    EXPECT_EQ(reserve({key("other"), {&ceiling, 1}, {}}).verdict, ReserveVerdict::ceiling_reached);
}

TEST_P(LedgerConformance, ADeadOwnerPutsTheKeyInDoubtAtOnceAndOneRetryResolvesIt) {
    const CeilingUse ceiling = daily("caller", 1);
    (void)reserve({key("k"), {&ceiling, 1}, {}});
    restart();
    const Reserved second = reserve({key("k"), {&ceiling, 1}, {}});
    ASSERT_EQ(second.verdict, ReserveVerdict::started);
    EXPECT_TRUE(second.second_try);
    EXPECT_EQ(reserve({key("k"), {&ceiling, 1}, {}}).verdict, ReserveVerdict::in_progress);
    const StoredResponse response = created("x");
    settle(second.attempt, SettleKind::written, &response);
    EXPECT_EQ(reserve({key("k"), {&ceiling, 1}, {}}).verdict, ReserveVerdict::replay);
    EXPECT_EQ(ledger_->level(ceiling).value(), 1U);
}

TEST_P(LedgerConformance, AFailedSecondTryKeepsTheChargeAndFreesTheKey) {
    const CeilingUse ceiling = daily("caller", 1);
    (void)reserve({key("k"), {&ceiling, 1}, {}});
    restart();
    settle(reserve({key("k"), {&ceiling, 1}, {}}).attempt, SettleKind::failed);
    EXPECT_EQ(reserve({key("k"), {&ceiling, 1}, {}}).verdict, ReserveVerdict::ceiling_reached);
    EXPECT_EQ(ledger_->level(ceiling).value(), 1U);
}

TEST_P(LedgerConformance, ASecondTryThatWasNotSentStaysInDoubt) {
    (void)reserve({key("k"), {}, {}});
    restart();
    settle(reserve({key("k"), {}, {}}).attempt, SettleKind::not_sent);
    const Reserved third = reserve({key("k"), {}, {}});
    EXPECT_EQ(third.verdict, ReserveVerdict::started);
    EXPECT_TRUE(third.second_try);
}

TEST_P(LedgerConformance, RefusedDoubtWaitsForAnOperator) {
    const auto refusing = key("k", 1, DoubtRule::refuse);
    (void)reserve({refusing, {}, {}});
    restart();
    EXPECT_EQ(reserve({refusing, {}, {}}).verdict, ReserveVerdict::in_doubt);
    EXPECT_TRUE(
        ledger_->apply_one(SettleDoubt{ledger_->doubtful(0, 1).at(0).attempt, true}, noon).found);
    EXPECT_EQ(reserve({refusing, {}, {}}).verdict, ReserveVerdict::not_kept);
}

TEST_P(LedgerConformance, AProbedKeyRunsUntilTheProbeHasAnAnswer) {
    const auto probing = key("k", 1, DoubtRule::probe);
    const CeilingUse ceiling = daily("caller", 1);
    (void)reserve({probing, {&ceiling, 1}, {}});
    restart();
    const Reserved asked = reserve({probing, {&ceiling, 1}, {}});
    ASSERT_EQ(asked.verdict, ReserveVerdict::probe);
    EXPECT_TRUE(asked.second_try);
    EXPECT_EQ(reserve({probing, {&ceiling, 1}, {}}).verdict, ReserveVerdict::in_progress);
    settle(asked.attempt, SettleKind::doubt);
    const Reserved again = reserve({probing, {&ceiling, 1}, {}});
    ASSERT_EQ(again.verdict, ReserveVerdict::probe);
    // Found: what the probe brought is kept, the place counts once.
    const StoredResponse response = created("found");
    settle(again.attempt, SettleKind::written, &response);
    EXPECT_EQ(reserve({probing, {&ceiling, 1}, {}}).response.body, "found");
    EXPECT_EQ(ledger_->level(ceiling).value(), 1U);
}

TEST_P(LedgerConformance, WhatAProbeDidNotFindIsAsIfNeverBegun) {
    const auto probing = key("k", 1, DoubtRule::probe);
    const CeilingUse ceiling = daily("caller", 1);
    (void)reserve({probing, {&ceiling, 1}, {}});
    restart();
    settle(reserve({probing, {&ceiling, 1}, {}}).attempt, SettleKind::absent);
    EXPECT_EQ(ledger_->level(ceiling).value(), 0U);
    const Reserved fresh = reserve({key("k", 2, DoubtRule::probe), {&ceiling, 1}, {}});
    EXPECT_EQ(fresh.verdict, ReserveVerdict::started);
    EXPECT_FALSE(fresh.second_try);
}

TEST_P(LedgerConformance, AnOperatorsWordMayBeSaidAgainButNotTakenBack) {
    const auto settle_doubt = [this](AttemptId attempt, bool written) {
        return ledger_->apply_one(SettleDoubt{attempt, written}, noon).doubt;
    };
    const AttemptId kept = reserve({key("kept"), {}, {}}).attempt;
    const AttemptId dropped = reserve({key("dropped"), {}, {}}).attempt;
    const AttemptId retried = reserve({key("retried"), {}, {}}).attempt;
    EXPECT_EQ(settle_doubt(kept, true), DoubtOutcome::running);
    restart();
    EXPECT_EQ(settle_doubt(kept, true), DoubtOutcome::settled);
    EXPECT_EQ(settle_doubt(dropped, false), DoubtOutcome::settled);
    const StoredResponse response = created("x");
    settle(reserve({key("retried"), {}, {}}).attempt, SettleKind::written, &response);
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(settle_doubt(kept, true), DoubtOutcome::already);
        EXPECT_EQ(settle_doubt(kept, false), DoubtOutcome::otherwise);
        EXPECT_EQ(settle_doubt(dropped, false), DoubtOutcome::already);
        EXPECT_EQ(settle_doubt(dropped, true), DoubtOutcome::otherwise);
        EXPECT_EQ(settle_doubt(retried, true), DoubtOutcome::already);
        EXPECT_EQ(settle_doubt(retried, false), DoubtOutcome::otherwise);
        EXPECT_EQ(settle_doubt(retried + 1, true), DoubtOutcome::unknown);
        restart();
    }
    ASSERT_TRUE(ledger_->sweep(noon + settled_kept, 100).ok());
    EXPECT_EQ(settle_doubt(dropped, false), DoubtOutcome::already);
    ASSERT_TRUE(ledger_->sweep(noon + settled_kept + 1ns, 100).ok());
    EXPECT_EQ(settle_doubt(dropped, false), DoubtOutcome::unknown);
}

TEST_P(LedgerConformance, ANumberNamesOneAttemptAlsoAfterARestart) {
    const AttemptId first = reserve({std::nullopt, {}, {}}).attempt;
    settle(first, SettleKind::failed);
    restart();
    EXPECT_GT(reserve({std::nullopt, {}, {}}).attempt, first);
}

TEST_P(LedgerConformance, DoubtsAreListedInPages) {
    const CeilingUse ceiling = daily("caller", 100);
    std::vector<AttemptId> attempts;
    for (int i = 0; i < 5; ++i) {
        attempts.push_back(reserve({std::nullopt, {&ceiling, 1}, {}}).attempt);
    }
    restart();
    std::vector<AttemptId> listed;
    AttemptId after = 0;
    for (const std::size_t size : {2U, 2U, 1U, 0U}) {
        const std::vector<DoubtfulAttempt> page = ledger_->doubtful(after, 2);
        ASSERT_EQ(page.size(), size);
        for (const DoubtfulAttempt& doubt : page) {
            EXPECT_EQ(doubt.keys, std::vector<std::string>{"caller"});
            listed.push_back(after = doubt.attempt);
        }
    }
    EXPECT_EQ(listed, attempts);
}

TEST_P(LedgerConformance, ObjectsAreListedInPagesAndPlacesInDoubtRaiseTheLevel) {
    const std::vector<std::string> objects = {"a", "b", "c"};
    ASSERT_TRUE(ledger_->apply_one(StateMembers{"q", objects}, noon).status.ok());
    EXPECT_EQ(ledger_->members("q", {}, 2).value(), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(ledger_->members("q", "b", 2).value(), std::vector<std::string>{"c"});
    const QuotaUse use{"q", 5};
    EXPECT_EQ(ledger_->level(use).value(), 3U);
    (void)reserve({std::nullopt, {}, {&use, 1}});
    EXPECT_EQ(ledger_->level(use).value(), 3U);
    restart();
    EXPECT_EQ(ledger_->level(use).value(), 4U);
    EXPECT_EQ(ledger_->rows()->members, 3U);
    EXPECT_EQ(ledger_->rows()->attempts, 1U);
}

TEST_P(LedgerConformance, AnAnswerTooLargeToKeepIsDoneButNotReplayed) {
    settle(reserve({key("k"), {}, {}}).attempt, SettleKind::written, nullptr);
    EXPECT_EQ(reserve({key("k"), {}, {}}).verdict, ReserveVerdict::not_kept);
}

TEST_P(LedgerConformance, ResultsAreKeptForTheirTimeAndNotLonger) {
    const StoredResponse response = created("x");
    settle(reserve({key("k"), {}, {}}).attempt, SettleKind::written, &response);
    EXPECT_EQ(reserve({key("k"), {}, {}}, noon + 24h - 1ns).verdict, ReserveVerdict::replay);
    EXPECT_EQ(reserve({key("k", 2), {}, {}}, noon + 24h).verdict, ReserveVerdict::started);
    // A running mark is no timer.
    EXPECT_EQ(reserve({key("k", 2), {}, {}}, noon + 900h).verdict, ReserveVerdict::in_progress);
}

TEST_P(LedgerConformance, SweepingTakesExpiredRecordsOnlyAndInBatches) {
    const StoredResponse response = created("x");
    for (int i = 0; i < 10; ++i) {
        const std::string identity = "k" + std::to_string(i);
        settle(reserve({key(identity), {}, {}}).attempt, SettleKind::written, &response);
    }
    EXPECT_EQ(*ledger_->sweep(noon + 23h, 100), false);
    EXPECT_EQ(ledger_->rows()->attempts, 10U);
    EXPECT_EQ(*ledger_->sweep(noon + 24h, 4), true);
    EXPECT_EQ(ledger_->rows()->attempts, 6U);
    EXPECT_EQ(ledger_->stats().swept, 4U);
    EXPECT_EQ(*ledger_->sweep(noon + 24h, 100), false);
    EXPECT_EQ(ledger_->rows()->attempts, 0U);
}

// Judged on the one day, written down after midnight: the next day's ceiling has not been asked.
TEST_P(LedgerConformance, AWriteCountsInTheDayThatJudgedIt) {
    const Wall midnight = noon + 12h;
    const CeilingUse today = daily("caller", 2);
    const CeilingUse tomorrow = daily("caller", 1, midnight);
    const Reserved late = reserve({std::nullopt, {&today, 1}, {}}, midnight + 100ms);
    ASSERT_EQ(late.verdict, ReserveVerdict::started);
    EXPECT_EQ(write(tomorrow, midnight + 200ms), ReserveVerdict::started);
    settle(late.attempt, SettleKind::written, nullptr, midnight + 300ms);
    EXPECT_EQ(*ledger_->level(today), 1U);
    EXPECT_EQ(*ledger_->level(tomorrow), 1U);
    restart();
    EXPECT_EQ(*ledger_->level(today), 1U);
    EXPECT_EQ(*ledger_->level(tomorrow), 1U);
    EXPECT_EQ(write(today, midnight + 400ms), ReserveVerdict::started);
    EXPECT_EQ(write(today, midnight + 500ms), ReserveVerdict::ceiling_reached);
}

// Whoever asks for the numbers holds up requests no longer than counting so many takes.
TEST_P(LedgerConformance, RowsAreCountedUpToABound) {
    const auto state = [&](std::size_t from, std::size_t to) {
        std::vector<QuotaChange> changes;
        std::vector<std::string> ids;
        for (std::size_t i = from; i < to; ++i) {
            ids.push_back(std::to_string(i));
        }
        for (const std::string& id : ids) {
            changes.push_back({"things", id, true});
        }
        ASSERT_TRUE(
            ledger_->apply_one(Settle{0, SettleKind::written, nullptr, changes}, noon).status.ok());
    };
    state(0, max_counted_rows - 1);
    EXPECT_EQ(ledger_->rows()->members, max_counted_rows - 1);
    state(max_counted_rows - 1, max_counted_rows);
    EXPECT_EQ(ledger_->rows()->members, max_counted_rows);
    state(max_counted_rows, max_counted_rows + 1);
    EXPECT_EQ(ledger_->rows()->members, max_counted_rows);
    EXPECT_EQ(*ledger_->level(QuotaUse{"things", 1}), max_counted_rows + 1);
}

// The level is counted once and then kept up; whatever changes the set, it is the set's size.
TEST_P(LedgerConformance, TheLevelOfAQuotaIsTheSizeOfItsSet) {
    const QuotaUse quota{"calendars", 1000};
    std::set<std::string> objects;
    std::uint32_t random = 1;
    for (int step = 0; step < 300; ++step) {
        random = random * 1664525 + 1013904223;
        const std::string id = "cal_" + std::to_string(random >> 16 & 15);
        const bool up = (random >> 20 & 1) != 0;
        const QuotaChange changes[] = {{"calendars", id, up}, {"others", id, !up}};
        const LedgerRequest change = Settle{0, SettleKind::written, nullptr, changes};
        if ((random >> 24 & 31) == 0) {
            const std::vector<std::string> stated = {id, "cal_a", "cal_b"};
            ASSERT_TRUE(ledger_->apply_one(StateMembers{"calendars", stated}, noon).status.ok());
            objects = {stated.begin(), stated.end()};
        } else {
            ASSERT_TRUE(ledger_->apply_one(change, noon).status.ok());
            up ? static_cast<void>(objects.insert(id)) : static_cast<void>(objects.erase(id));
        }
        if (step % 100 == 99) {
            restart();
        }
        ASSERT_EQ(*ledger_->level(quota), objects.size()) << step;
    }
}

TEST_P(LedgerConformance, OneOfManyIdenticalRequestsRuns) {
    std::vector<std::thread> threads;
    std::array<ReserveVerdict, 16> verdicts{};
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
        threads.emplace_back([this, &verdicts, i] {
            verdicts.at(i) = ledger_->apply_one(Reserve{key("k"), {}, {}}, noon).reserved.verdict;
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(std::count(verdicts.begin(), verdicts.end(), ReserveVerdict::started), 1);
    EXPECT_EQ(std::count(verdicts.begin(), verdicts.end(), ReserveVerdict::in_progress), 15);
}

// ---- quotas ----

TEST_P(LedgerConformance, QuotasAreSetsOfObjects) {
    const QuotaUse quota{"calendars", 2};
    const auto create = [&](std::string_view object) {
        const Reserved reserved = reserve({std::nullopt, {}, {&quota, 1}});
        if (reserved.verdict == ReserveVerdict::started) {
            const QuotaChange change{"calendars", object, true};
            (void)ledger_->apply_one(
                Settle{reserved.attempt, SettleKind::written, nullptr, {&change, 1}}, noon);
        }
        return reserved.verdict;
    };
    const auto remove = [&](std::string_view object) {
        const QuotaChange change{"calendars", object, false};
        (void)ledger_->apply_one(Settle{0, SettleKind::written, nullptr, {&change, 1}}, noon);
    };
    EXPECT_EQ(create("a"), ReserveVerdict::started);
    EXPECT_EQ(create("b"), ReserveVerdict::started);
    restart();
    EXPECT_EQ(create("c"), ReserveVerdict::quota_reached);
    remove("a");
    remove("a");  // a repeated delete lowers nothing
    EXPECT_EQ(create("c"), ReserveVerdict::started);
    EXPECT_EQ(create("d"), ReserveVerdict::quota_reached);
    const std::vector<std::string> objects = {"x"};
    (void)ledger_->apply_one(StateMembers{"calendars", objects}, noon);
    EXPECT_EQ(ledger_->members("calendars", {}, 10).value(), objects);
    EXPECT_EQ(create("y"), ReserveVerdict::started);
}

TEST_P(LedgerConformance, QuotaPlacesInFlightContend) {
    const QuotaUse quota{"calendars", 1};
    const Reserved first = reserve({std::nullopt, {}, {&quota, 1}});
    const Reserved second = reserve({std::nullopt, {}, {&quota, 1}});
    EXPECT_EQ(second.verdict, ReserveVerdict::contended);
    EXPECT_TRUE(second.quota);
    settle(first.attempt, SettleKind::failed);
    EXPECT_EQ(reserve({std::nullopt, {}, {&quota, 1}}).verdict, ReserveVerdict::started);
}

TEST_P(LedgerConformance, BlocksAreKeptUntilLifted) {
    (void)ledger_->apply_one(PutBlock{"203.0.113.7", noon + 10min, 1, noon + 24h}, noon);
    restart();
    const std::vector<Block> blocks = ledger_->blocks().value();
    ASSERT_EQ(blocks.size(), 1U);
    EXPECT_EQ(blocks[0].until, noon + 10min);
    EXPECT_TRUE(ledger_->apply_one(LiftBlock{"203.0.113.7"}, noon).found);
    EXPECT_FALSE(ledger_->apply_one(LiftBlock{"203.0.113.7"}, noon).found);
}

TEST_P(LedgerConformance, TokensAreKeptUntilDropped) {
    IssuedToken token;
    token.id = "tok_1";
    token.digest.fill(7);
    token.kind = "personal_token";
    token.owner_kind = "user";
    token.owner = "u_ana";
    token.numbers = {{"rate_limit_per_min", 60}, {"other", 0}};
    token.name = "a name; with = signs";
    token.created = token.last_used = noon;
    IssuedToken second = token;
    second.id = "tok_2";
    second.digest.fill(8);
    second.numbers.clear();
    second.name.clear();
    ASSERT_TRUE(ledger_->apply_one(PutToken{&token}, noon).status.ok());
    ASSERT_TRUE(ledger_->apply_one(PutToken{&second}, noon).status.ok());
    IssuedToken copy = token;
    copy.id = "tok_3";
    EXPECT_FALSE(ledger_->apply_one(PutToken{&copy}, noon).status.ok()) << "the digest is there";

    const std::vector<std::pair<std::string, Wall>> uses = {
        {"tok_1", noon + 5s}, {"tok_2", noon - 5s}, {"tok_gone", noon}};
    ASSERT_TRUE(ledger_->apply_one(NoteUses{uses}, noon).status.ok());
    restart();
    std::vector<IssuedToken> kept = ledger_->tokens().value();
    ASSERT_EQ(kept.size(), 2U);
    if (kept[0].id != "tok_1") {
        std::swap(kept[0], kept[1]);
    }
    EXPECT_EQ(kept[0].digest, token.digest);
    EXPECT_EQ(kept[0].kind, token.kind);
    EXPECT_EQ(kept[0].owner_kind, token.owner_kind);
    EXPECT_EQ(kept[0].owner, token.owner);
    EXPECT_EQ(kept[0].numbers, token.numbers);
    EXPECT_EQ(kept[0].name, token.name);
    EXPECT_EQ(kept[0].created, noon);
    EXPECT_EQ(kept[0].last_used, noon + 5s);
    EXPECT_EQ(kept[1].last_used, noon) << "a use is never earlier than one that was noted";
    EXPECT_TRUE(kept[1].numbers.empty());

    EXPECT_TRUE(ledger_->apply_one(DropToken{"tok_1"}, noon).found);
    EXPECT_FALSE(ledger_->apply_one(DropToken{"tok_1"}, noon).found);
    restart();
    EXPECT_EQ(ledger_->tokens().value().size(), 1U);
}

TEST_P(LedgerConformance, ABatchSeesItsOwnEarlierRequests) {
    const CeilingUse ceiling = daily("caller", 2);
    const std::vector<LedgerRequest> batch(3, Reserve{std::nullopt, {&ceiling, 1}, {}});
    std::vector<LedgerReply> replies(3);
    ledger_->apply(batch, noon, replies);
    EXPECT_EQ(replies[0].reserved.verdict, ReserveVerdict::started);
    EXPECT_EQ(replies[1].reserved.verdict, ReserveVerdict::started);
    EXPECT_EQ(replies[2].reserved.verdict, ReserveVerdict::contended);
}

INSTANTIATE_TEST_SUITE_P(Stores, LedgerConformance,
                         testing::Values(Store{
                             "sqlite",
                             [](const TemporaryFolder& folder) {
                                 return open_sqlite_ledger({folder.file("ledger.db"), {}});
                             }}),
                         [](const auto& store) { return std::string(store.param.name); });

}  // namespace
}  // namespace ration
