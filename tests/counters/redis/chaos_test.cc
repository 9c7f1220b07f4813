// Whatever happens to the server or on the way to it: every call ends, with its own answer or with
// none, and when the trouble is over answers come again by themselves.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "counters/redis/proxy.h"
#include "counters/redis/redis_counters.h"
#include "counters/redis/server.h"

namespace ration {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

LimitRef bucket(std::uint64_t capacity) {
    return *LimitRef::of(token_bucket(capacity, std::chrono::hours(1)));
}

class RedisChaos : public testing::TestWithParam<std::string> {
protected:
    RedisChaos() : proxy(server.socket()) {
        RedisOptions options;
        options.host = "127.0.0.1";
        options.port = proxy.port();
        // What a slow machine under a sanitizer still meets, and short enough to wait for.
        options.deadline = milliseconds(300);
        counters = *RedisCounters::open(*RedisStore::open(options));
        EXPECT_TRUE(recovers());
    }

    Outcome take(std::string_view key = "r/k", LimitRef limit = bucket(1000),
                 std::uint32_t cost = 1, std::uint64_t lease = 0) {
        const Charge charge{.key = key, .rule_bytes = 2, .cost = cost, .limit = limit};
        return counters->apply_one({.charges = {&charge, 1}, .lease = lease}, clock.now());
    }
    bool answers() { return take("r/any").status == absl::StatusCode::kOk; }
    bool wait_for(const std::function<bool()>& done) {
        for (int i = 0; i < 2000; ++i) {
            if (done()) {
                return true;
            }
            std::this_thread::sleep_for(milliseconds(10));
        }
        return false;
    }
    bool recovers() {
        return wait_for([this] { return answers(); });
    }
    bool fails() {
        return wait_for([this] { return !answers(); });
    }
    RedisStats stats() { return counters->store().monitor().stats(); }
    std::uint64_t failed(RedisFailure why) { return stats().failed[static_cast<std::size_t>(why)]; }

    SystemClock clock;
    RedisServer server{{.program = GetParam()}};
    RedisProxy proxy;
    std::unique_ptr<RedisCounters> counters;
};

TEST_P(RedisChaos, AKilledServerIsNoAnswerAndAStartedOneIsAnswersAgain) {
    EXPECT_EQ(take().levels[0].used, 1U);
    server.kill();
    EXPECT_TRUE(fails());
    EXPECT_EQ(take().status, absl::StatusCode::kUnavailable);
    EXPECT_EQ(stats().ready, 0U);
    EXPECT_NE(stats().trouble.find("127.0.0.1"), std::string::npos) << stats().trouble;
    server.start();
    EXPECT_TRUE(recovers());
    EXPECT_EQ(stats().ready, 1U);
    EXPECT_EQ(take().levels[0].used, 1U) << "what it kept in memory is gone";
}

TEST_P(RedisChaos, AllLimitsOfARequestAreOneRoundTrip) {
    std::vector<std::string> keys;
    std::vector<Charge> charges;
    for (std::size_t i = 0; i < max_charges; ++i) {
        keys.push_back("r/" + std::to_string(i));
    }
    for (const std::string& key : keys) {
        charges.push_back({.key = key, .rule_bytes = 2, .limit = bucket(10)});
    }
    const std::uint64_t before = proxy.script_runs();
    EXPECT_TRUE(counters->apply_one({.charges = charges}, clock.now()).admitted);
    EXPECT_EQ(proxy.script_runs(), before + 1);
}

TEST_P(RedisChaos, AFlushedScriptIsLoadedAgain) {
    const std::uint64_t before = stats().connects;
    for (int i = 1; i <= 5; ++i) {
        server.command({"SCRIPT", "FLUSH"});
        server.command({"FLUSHALL"});
        const Outcome outcome = take();
        EXPECT_EQ(outcome.status, absl::StatusCode::kOk);
        EXPECT_EQ(outcome.levels[0].used, 1U);
    }
    EXPECT_EQ(stats().script_loads, 5U);
    EXPECT_EQ(stats().connects, before) << "that is no reason to leave";
}

TEST_P(RedisChaos, APausedServerIsAFailedOneAndDoesNothingLate) {
    EXPECT_EQ(take("r/paused").levels[0].used, 1U);
    server.pause();
    EXPECT_EQ(take("r/paused").status, absl::StatusCode::kUnavailable);
    EXPECT_EQ(failed(RedisFailure::deadline), 1U);
    EXPECT_EQ(take("r/paused").status, absl::StatusCode::kUnavailable);
    server.go_on();
    EXPECT_TRUE(recovers());
    EXPECT_EQ(take("r/paused").levels[0].used, 2U)
        << "the server met the call when its time was over, and left it";
}

TEST_P(RedisChaos, AnAnswerCutOffInTheMiddleIsNone) {
    for (const int bytes : {0, 1, 5, 12, 30}) {
        EXPECT_TRUE(recovers());
        proxy.cut_next_answer_after(bytes);
        EXPECT_EQ(take().status, absl::StatusCode::kUnavailable) << bytes;
    }
    EXPECT_TRUE(recovers());
    EXPECT_GE(failed(RedisFailure::broken), 5U);
}

TEST_P(RedisChaos, ASlowAnswerIsNoneAndReachesNobody) {
    proxy.delay(600);
    EXPECT_EQ(take("r/slow", bucket(111)).status, absl::StatusCode::kUnavailable);
    proxy.pass();
    EXPECT_TRUE(recovers());
    EXPECT_EQ(take("r/other", bucket(222)).levels[0].limit, 222U);
}

TEST_P(RedisChaos, ASwallowedCommandEndsAtTheDeadline) {
    proxy.swallow();
    EXPECT_EQ(take().status, absl::StatusCode::kUnavailable);
    EXPECT_EQ(failed(RedisFailure::deadline), 1U);
    proxy.pass();
    EXPECT_TRUE(recovers());
}

TEST_P(RedisChaos, ErrorAnswersAreNone) {
    const std::vector<std::string> errors{
        "-OOM command not allowed when used memory > 'maxmemory'.",
        "-READONLY You can't write against a read only replica.",
        "-LOADING Redis is loading the dataset in memory",
        "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
        "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "-NOPERM this user has no permissions to run the 'evalsha' command",
        "-ERR anything else",
        "-NOSCRIPT No matching script. Please use EVAL."};
    for (const std::string& error : errors) {
        EXPECT_TRUE(recovers());
        proxy.answer_scripts(error);
        EXPECT_EQ(take().status, absl::StatusCode::kUnavailable) << error;
        EXPECT_NE(stats().trouble.find(error.substr(1, 4)), std::string::npos) << stats().trouble;
        proxy.answer_scripts("");
    }
    EXPECT_TRUE(recovers());
    EXPECT_GE(failed(RedisFailure::error), errors.size());
}

TEST_P(RedisChaos, NonsenseIsNone) {
    for (const char* nonsense :
         {"+OK", ":7", "*0", "*2\r\n:1\r\n:2", "*2\r\n$1\r\nx\r\n:5", "$-1",
          "HTTP/1.1 400 Bad Request", "*8\r\n:1\r\n:2\r\n:9\r\n:10\r\n:1\r\n:0\r\n:0\r\n:0",
          "*8\r\n:1\r\n:2\r\n:0\r\n:-10\r\n:1\r\n:0\r\n:0\r\n:0", "*1\r\n*1\r\n:1"}) {
        EXPECT_TRUE(recovers());
        proxy.answer_scripts(nonsense);
        EXPECT_EQ(take().status, absl::StatusCode::kUnavailable) << nonsense;
        proxy.answer_scripts("");
    }
    EXPECT_TRUE(recovers());
}

TEST_P(RedisChaos, WrongTypesUnderOurKeysConcernNobodyElse) {
    const Limit kinds[] = {token_bucket(10, seconds(60)), fixed_window(10, seconds(60)),
                           sliding_window(10, seconds(60)), sliding_counter(10, seconds(60)),
                           concurrency(10)};
    const std::vector<std::vector<std::string>> wrong{{"LPUSH", "", "x"},
                                                      {"HSET", "", "a", "b"},
                                                      {"SADD", "", "x"},
                                                      {"ZADD", "", "1", "x"},
                                                      {"SET", "", "hello"},
                                                      {"SET", "", std::string(41, '\xff')},
                                                      {"SET", "", std::string(70, '\x7f')}};
    const RedisCodec codec{RedisOptions{}};
    for (const Limit& kind : kinds) {
        for (std::vector<std::string> command : wrong) {
            SCOPED_TRACE(to_string(kind) + " over " + command[0] + " " + command.back());
            server.command({"FLUSHALL"});
            command[1] = codec.redis_key("r/k", 2);
            server.command(command);
            const LimitRef limit = *LimitRef::of(kind);
            EXPECT_EQ(take("r/k", limit, 1, 5).status, absl::StatusCode::kUnavailable);
            EXPECT_EQ(take("r/other", limit, 1, 5).status, absl::StatusCode::kOk);
        }
    }
    EXPECT_EQ(stats().connects, 1U) << "no connection was lost over it";
}

TEST_P(RedisChaos, NoMoreWaitThanMay) {
    RedisOptions options = counters->store().options();
    options.max_waiting = 4;
    options.deadline = max_redis_deadline;
    const auto bounded = *RedisCounters::open(*RedisStore::open(options));
    const Charge charge{.key = "r/k", .rule_bytes = 2, .limit = bucket(10)};
    const Transaction transaction{.charges = {&charge, 1}};
    EXPECT_EQ(bounded->apply_one(transaction, clock.now()).status, absl::StatusCode::kOk);
    proxy.swallow();
    std::vector<std::jthread> callers;
    for (int i = 0; i < 7; ++i) {
        callers.emplace_back([&] {
            EXPECT_EQ(bounded->apply_one(transaction, clock.now()).status,
                      absl::StatusCode::kUnavailable);
        });
    }
    const auto bounded_failed = [&](RedisFailure why) {
        return bounded->store().monitor().stats().failed[static_cast<std::size_t>(why)];
    };
    EXPECT_TRUE(wait_for([&] { return bounded_failed(RedisFailure::queue) == 3; }));
    proxy.refuse();
    callers.clear();
    EXPECT_EQ(bounded_failed(RedisFailure::broken), 4U);
    EXPECT_EQ(bounded->store().monitor().stats().waiting, 0U);
}

TEST_P(RedisChaos, WhileItRefusesConnectionsCallsFailWithoutWaiting) {
    proxy.refuse();
    EXPECT_TRUE(fails());
    const std::uint64_t before = failed(RedisFailure::down);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(take().status, absl::StatusCode::kUnavailable);
    }
    EXPECT_GT(failed(RedisFailure::down), before) << "most were not even sent";
    proxy.pass();
    EXPECT_TRUE(recovers());
}

TEST_P(RedisChaos, ASlotWhoseTakingGotNoAnswerIsFreedWhenTheServerIsBack) {
    const LimitRef two = *LimitRef::of(concurrency(2));
    EXPECT_EQ(take("r/slots", two, 1, 41).levels[0].used, 1U);
    proxy.cut_next_answer_after(3);  // done by the server, but nobody knows
    EXPECT_EQ(take("r/slots", two, 1, 42).status, absl::StatusCode::kUnavailable);
    EXPECT_TRUE(recovers());
    EXPECT_TRUE(wait_for([&] {
        const Charge look{.key = "r/slots", .rule_bytes = 2, .op = ChargeOp::observe, .limit = two};
        const Outcome outcome = counters->apply_one({.charges = {&look, 1}}, clock.now());
        return outcome.status == absl::StatusCode::kOk && outcome.levels[0].used == 1;
    }));
}

TEST_P(RedisChaos, ASlotGivenBackWhileTheServerIsAwayIsFreedLater) {
    const LimitRef two = *LimitRef::of(concurrency(2));
    EXPECT_EQ(take("r/slots", two, 1, 41).levels[0].used, 1U);
    proxy.refuse();
    EXPECT_TRUE(fails());
    const Charge give{.key = "r/slots", .rule_bytes = 2, .op = ChargeOp::give_back, .limit = two};
    EXPECT_EQ(counters->apply_one({.charges = {&give, 1}, .lease = 41}, clock.now()).status,
              absl::StatusCode::kUnavailable);
    proxy.pass();
    EXPECT_TRUE(recovers());
    EXPECT_TRUE(wait_for([&] { return take("r/slots", two, 2, 43).admitted; }));
}

// The server meets what it was sent when its time is over, and leaves it; it is owed all the same.
TEST_P(RedisChaos, ASlotWhoseGivingBackGotNoAnswerIsFreedLater) {
    const LimitRef two = *LimitRef::of(concurrency(2));
    EXPECT_EQ(take("r/slots", two, 1, 41).levels[0].used, 1U);
    server.pause();
    const Charge give{.key = "r/slots", .rule_bytes = 2, .op = ChargeOp::give_back, .limit = two};
    EXPECT_EQ(counters->apply_one({.charges = {&give, 1}, .lease = 41}, clock.now()).status,
              absl::StatusCode::kUnavailable);
    EXPECT_EQ(failed(RedisFailure::deadline), 1U) << "it was sent";
    server.go_on();
    EXPECT_TRUE(recovers());
    EXPECT_TRUE(wait_for([&] { return take("r/slots", two, 2, 43).admitted; }));
}

// Places in a sliding window, taken one after the other and then given back.
class RedisPlaces : public RedisChaos {
protected:
    Now place() {
        const Outcome outcome = take("r/places", five_);
        EXPECT_TRUE(outcome.admitted);
        return outcome.at;
    }
    absl::StatusCode give_back(Now taken) {
        const Charge give{.key = "r/places",
                          .rule_bytes = 2,
                          .op = ChargeOp::give_back,
                          .limit = five_,
                          .taken = taken};
        return counters->apply_one({.charges = {&give, 1}}, clock.now()).status;
    }
    bool used(std::uint64_t units) {
        const Charge look{
            .key = "r/places", .rule_bytes = 2, .op = ChargeOp::observe, .limit = five_};
        const Outcome outcome = counters->apply_one({.charges = {&look, 1}}, clock.now());
        return outcome.status == absl::StatusCode::kOk && outcome.levels[0].used == units;
    }

private:
    const LimitRef five_ = *LimitRef::of(sliding_window(5, std::chrono::hours(1)));
};

TEST_P(RedisPlaces, GivenBackWhileTheServerIsAwayAreFreedLater) {
    const Now places[] = {place(), place(), place()};
    proxy.refuse();
    EXPECT_TRUE(fails());
    EXPECT_EQ(give_back(places[0]), absl::StatusCode::kUnavailable);
    EXPECT_EQ(give_back(places[2]), absl::StatusCode::kUnavailable);
    proxy.pass();
    EXPECT_TRUE(wait_for([&] { return used(1); }));
    EXPECT_EQ(give_back(places[1]), absl::StatusCode::kOk);
    EXPECT_TRUE(used(0)) << "the one that was left was the one that was not given back";
}

TEST_P(RedisPlaces, WhoseGivingBackMetAPausedServerAreFreedLater) {
    const Now places[] = {place(), place()};
    server.pause();
    EXPECT_EQ(give_back(places[0]), absl::StatusCode::kUnavailable);
    EXPECT_EQ(failed(RedisFailure::deadline), 1U) << "it was sent";
    EXPECT_EQ(give_back(places[1]), absl::StatusCode::kUnavailable);
    server.go_on();
    EXPECT_TRUE(wait_for([&] { return used(0); }));
}

// What was done and what is owed are the same places: nobody else's are given back with them.
TEST_P(RedisPlaces, GivenBackWithoutAnAnswerAreGivenBackOnce) {
    for (const bool alone : {false, true}) {  // alone: the window is empty in between
        const Now mine = place();
        const Now other = alone ? mine : place();
        proxy.cut_next_answer_after(3);
        EXPECT_EQ(give_back(mine), absl::StatusCode::kUnavailable);
        EXPECT_TRUE(recovers());
        const Now later = place();
        std::this_thread::sleep_for(milliseconds(50));  // for what is owed
        EXPECT_TRUE(used(alone ? 1 : 2));
        EXPECT_EQ(give_back(later), absl::StatusCode::kOk);
        EXPECT_EQ(give_back(other), absl::StatusCode::kOk);
        EXPECT_TRUE(used(0));
    }
}

// Every caller asks with a capacity of its own and must never see another's.
TEST_P(RedisChaos, NoAnswerReachesTheWrongCallWhateverHappens) {
    constexpr int callers = 8;
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    std::atomic<int> right{0};
    std::vector<std::jthread> threads;
    for (int caller = 0; caller < callers; ++caller) {
        threads.emplace_back([&, caller] {
            const std::string keys[] = {"a/" + std::to_string(caller),
                                        "b/" + std::to_string(caller)};
            for (std::uint64_t i = 0; !stop; ++i) {
                const std::uint64_t own = 1000 + static_cast<std::uint64_t>(caller) * 100 + i % 100;
                const Charge charges[] = {
                    {.key = keys[0], .rule_bytes = 2, .limit = bucket(own)},
                    {.key = keys[1], .rule_bytes = 2, .limit = bucket(own + 7)}};
                const Outcome outcome = counters->apply_one({.charges = charges}, clock.now());
                if (outcome.status == absl::StatusCode::kOk) {
                    const bool mine = outcome.levels[0].limit == own &&
                                      outcome.levels[1].limit == own + 7 && outcome.count == 2;
                    ++(mine ? right : wrong);
                }
            }
        });
    }
    for (int round = 0; round < 12; ++round) {
        proxy.cut_next_answer_after(round * 7);
        std::this_thread::sleep_for(milliseconds(20));
        proxy.delay(round % 3 == 0 ? 400 : 0);
        std::this_thread::sleep_for(milliseconds(30));
        proxy.pass();
        if (round % 4 == 0) {
            server.command({"SCRIPT", "FLUSH"});
        } else if (round % 4 == 1) {
            server.pause();
            std::this_thread::sleep_for(milliseconds(350));
            server.go_on();
        }
        EXPECT_TRUE(recovers());
        const int before = right;
        EXPECT_TRUE(wait_for([&] { return right > before; }));
    }
    stop = true;
    threads.clear();
    EXPECT_EQ(wrong, 0);
    EXPECT_TRUE(wait_for([&] { return stats().waiting == 0; }));
}

INSTANTIATE_TEST_SUITE_P(Servers, RedisChaos, testing::ValuesIn(redis_programs()),
                         [](const auto& server) { return program_name(server.param); });
INSTANTIATE_TEST_SUITE_P(Servers, RedisPlaces, testing::ValuesIn(redis_programs()),
                         [](const auto& server) { return program_name(server.param); });

}  // namespace
}  // namespace ration
