#include <gtest/gtest.h>

#include <atomic>

#include "server/edge/support.h"
#include "server/process/port_check.h"
#include "server/process/store_watch.h"
#include "server/process/ticker.h"

namespace ration {
namespace {

using testing::RecordingLog;

TEST(StoreWatch, OneWarningAnOutage) {
    RecordingLog log;
    StoreWatch watch(log);
    watch.look({.judged = 100});
    EXPECT_EQ(log.text(), "");
    watch.look({.answers = false, .judged = 100, .failed = 5});
    watch.look({.answers = false, .judged = 100, .failed = 90});
    watch.look({.answers = false, .judged = 100, .failed = 90});  // nobody asked
    EXPECT_TRUE(watch.down());
    EXPECT_EQ(log.count("warning: the counters give no answer"), 1);
    watch.look({.judged = 100, .failed = 90});  // one answer may be luck
    EXPECT_EQ(log.count("answer again"), 0);
    watch.look(
        {.judged = 101, .failed = 150});  // how many failed before it ended makes it no longer
    EXPECT_FALSE(watch.down());
    EXPECT_EQ(log.count("info: the counters answer again"), 1);
    watch.look({.answers = false, .judged = 150, .failed = 151});
    EXPECT_EQ(log.count("warning: the counters give no answer"), 2);
    EXPECT_EQ(log.count("gave no answer"), 0);
}

TEST(StoreWatch, AnOutageNeedsNoRequestToBeginAndToEnd) {
    RecordingLog log;
    StoreWatch watch(log);
    watch.look({.answers = false, .trouble = "nobody there"});
    EXPECT_TRUE(watch.down());
    EXPECT_EQ(log.count(": nobody there"), 1);
    watch.look({});
    watch.look({});
    EXPECT_FALSE(watch.down());
    EXPECT_EQ(log.count("info: the counters answer again"), 1);
}

// Whoever asks: the metric, which is `down`, and what the asker is told are the same at each
// moment.
TEST(StoreWatch, QuestionsBetweenLooksBeginAndEndAnOutageToo) {
    RecordingLog log;
    StoreWatch watch(log);
    EXPECT_TRUE(watch.note(true, ""));
    EXPECT_FALSE(watch.note(false, "nobody there"));
    EXPECT_TRUE(watch.down());
    watch.look({.answers = false, .failed = 3});
    EXPECT_EQ(log.count("warning: the counters give no answer"), 1);
    EXPECT_FALSE(watch.note(true, ""));
    EXPECT_FALSE(watch.note(false, ""));  // now and then one comes: still the same outage
    EXPECT_FALSE(watch.note(true, ""));
    watch.look({.answers = false, .failed = 9});
    EXPECT_FALSE(watch.note(true, ""));
    EXPECT_EQ(log.count("answer again"), 0);
    EXPECT_TRUE(watch.note(true, ""));
    EXPECT_FALSE(watch.down());
    EXPECT_EQ(log.count("info: the counters answer again"), 1);
    EXPECT_EQ(log.count("warning"), 1);
    watch.look({.judged = 20, .failed = 40});  // of the outage, and said with it
    EXPECT_FALSE(watch.down());
    EXPECT_EQ(log.count("warning"), 1);
}

TEST(StoreWatch, OneBrokenKeyIsNoOutageAndIsSaidOnce) {
    RecordingLog log;
    StoreWatch watch(log);
    std::uint64_t judged = 0;
    std::uint64_t failed = 0;
    for (int second = 0; second <= 300; ++second) {
        judged += 7;
        failed += second % 3 == 0 ? 1U : 0U;
        watch.look({.judged = judged, .failed = failed, .trouble = "wrong type"});
        EXPECT_FALSE(watch.down());
    }
    EXPECT_EQ(log.count("warning: the counters gave no answer to 1 of 8 requests"), 1);
    EXPECT_EQ(log.count(": wrong type"), 1);
    EXPECT_EQ(log.count("info"), 0);
    for (int second = 0; second < 59; ++second) {
        watch.look({.judged = judged, .failed = failed});
    }
    watch.look({.judged = judged, .failed = ++failed});  // a minute is not over
    EXPECT_EQ(log.count("gave no answer"), 1);
    for (int second = 0; second < 60; ++second) {
        watch.look({.judged = judged, .failed = failed});
    }
    watch.look({.judged = judged, .failed = ++failed});
    EXPECT_EQ(log.count("gave no answer to 1 of 1 requests"), 1);
}

TEST(Ticker, CallsUntilItIsDestroyed) {
    std::atomic<int> calls{0};
    {
        const Ticker ticker(std::chrono::milliseconds(1), [&] { ++calls; });
        EXPECT_TRUE(testing::eventually([&] { return calls >= 3; }));
    }
    const int after = calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(calls, after);
}

TEST(Ticker, DestroyingItDoesNotWaitForTheNextCall) {
    std::atomic<int> calls{0};
    {
        const Ticker ticker(std::chrono::hours(1), [&] { ++calls; });
    }
    EXPECT_EQ(calls, 0);
}

TEST(PortCheck, APortThatIsListenedOnIsTaken) {
    std::uint16_t port = 0;
    {
        const testing::Upstream listening;
        port = listening.port();
        const auto status = check_port_free("127.0.0.1", port);
        EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
        EXPECT_NE(std::string(status.message()).find(std::to_string(port)), std::string::npos);
    }
    EXPECT_TRUE(check_port_free("127.0.0.1", port).ok());
    EXPECT_TRUE(check_port_free("127.0.0.1", 0).ok());
    EXPECT_TRUE(check_port_free("unix:/nowhere/x", 1).ok());
}

}  // namespace
}  // namespace ration
