// Whether a commit waits for more, and for how long.
#include "ledger/gathering.h"

#include <gtest/gtest.h>

namespace ration {
namespace {

using namespace std::chrono_literals;

constexpr Mono at{1h};

class GatheringTest : public testing::Test {
protected:
    // A wait in which nobody came, or all did.
    bool waits_for_nobody() { return waits(8, 8); }
    bool waits_for_all() { return waits(8, 64); }
    bool waits(std::size_t before, std::size_t after) {
        if (!gathering_.begin(before, at)) {
            return false;
        }
        (void)gathering_.more(after, at + Gathering::step);
        gathering_.end(after);
        return true;
    }

    Gathering gathering_{100};
};

TEST_F(GatheringTest, TheFirstCommitWaitsForNobody) {
    EXPECT_FALSE(gathering_.begin(1, at));
}

TEST_F(GatheringTest, ItWaitsWhenFewerAreQueuedThanWereInHand) {
    gathering_.committed(40, 24, 4ms);
    EXPECT_FALSE(gathering_.begin(0, at));
    EXPECT_FALSE(gathering_.begin(64, at));
    EXPECT_FALSE(gathering_.begin(65, at));
    EXPECT_TRUE(gathering_.begin(63, at));
}

TEST_F(GatheringTest, OneCallerIsNeverWaitedFor) {
    gathering_.committed(1, 0, 4ms);
    EXPECT_FALSE(gathering_.begin(1, at));
}

TEST_F(GatheringTest, NoMoreAreWantedThanOneCommitTakes) {
    gathering_.committed(100, 50, 4ms);
    EXPECT_FALSE(gathering_.begin(100, at));
    EXPECT_TRUE(gathering_.begin(99, at));
}

TEST_F(GatheringTest, ACommitTooShortForAStepIsNotWaitedWith) {
    gathering_.committed(64, 0, 8 * Gathering::step - 1ns);
    EXPECT_FALSE(gathering_.begin(8, at));
    gathering_.committed(64, 0, 8 * Gathering::step);
    EXPECT_TRUE(gathering_.begin(8, at));
}

TEST_F(GatheringTest, ItGoesOnWhileTheQueueGrows) {
    gathering_.committed(64, 0, 8ms);
    ASSERT_TRUE(gathering_.begin(8, at));
    EXPECT_TRUE(gathering_.more(9, at + 100us));
    EXPECT_TRUE(gathering_.more(63, at + 200us));
    EXPECT_FALSE(gathering_.more(63, at + 300us));
}

TEST_F(GatheringTest, ItEndsWhenAllHaveCome) {
    gathering_.committed(64, 0, 8ms);
    ASSERT_TRUE(gathering_.begin(8, at));
    EXPECT_FALSE(gathering_.more(64, at + 100us));
}

TEST_F(GatheringTest, ItEndsAfterAnEighthOfTheLastCommit) {
    gathering_.committed(64, 0, 8ms);
    ASSERT_TRUE(gathering_.begin(8, at));
    EXPECT_TRUE(gathering_.more(9, at + 1ms - 1ns));
    EXPECT_FALSE(gathering_.more(10, at + 1ms));
}

TEST_F(GatheringTest, ItEndsAfterTwoMillisecondsHoweverSlowTheLastCommitWas) {
    gathering_.committed(64, 0, 10s);
    ASSERT_TRUE(gathering_.begin(8, at));
    EXPECT_TRUE(gathering_.more(9, at + 2ms - 1ns));
    EXPECT_FALSE(gathering_.more(10, at + 2ms));
}

TEST_F(GatheringTest, WaitingInVainIsTriedLessAndLess) {
    gathering_.committed(64, 0, 8ms);
    for (const int skipped : {1, 3, 7, 15, 31, 63, 63}) {
        ASSERT_TRUE(waits_for_nobody());
        for (int i = 0; i < skipped; ++i) {
            ASSERT_FALSE(waits_for_nobody()) << i << " of " << skipped;
        }
    }
}

TEST_F(GatheringTest, AWaitThatBroughtHalfIsTriedAgainAtOnce) {
    gathering_.committed(64, 0, 8ms);
    ASSERT_TRUE(waits(8, 35));  // 27 of 56
    ASSERT_FALSE(waits_for_all());
    ASSERT_TRUE(waits(8, 36));  // 28 of 56
    ASSERT_TRUE(waits_for_nobody());
    ASSERT_FALSE(waits_for_nobody());  // counted from one again
    ASSERT_TRUE(waits_for_all());
}

}  // namespace
}  // namespace ration
