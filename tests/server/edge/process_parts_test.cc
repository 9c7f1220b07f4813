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
    watch.look(100, 0);
    EXPECT_EQ(log.text(), "");
    watch.look(100, 5);
    watch.look(100, 90);
    watch.look(100, 90);  // nobody asked
    EXPECT_EQ(log.count("warning: the counters give no answer"), 1);
    EXPECT_EQ(log.count("answer again"), 0);
    watch.look(101, 91);  // some shards answer, some do not: not over yet
    EXPECT_EQ(log.count("answer again"), 0);
    watch.look(150, 91);
    EXPECT_EQ(log.count("info: the counters answer again"), 1);
    watch.look(150, 92);
    EXPECT_EQ(log.count("warning: the counters give no answer"), 2);
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
