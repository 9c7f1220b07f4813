// Redis counters as they serve: the server's clock, the life of keys, ways to get in.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "counters/redis/redis_counters.h"
#include "counters/redis/server.h"

namespace ration {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// The time of the calls says nothing in service.
constexpr Now nonsense{Mono(hours(7)), Wall(hours(3))};

LimitRef ref(const Limit& limit) {
    return *LimitRef::of(limit);
}

std::unique_ptr<Counters> open(const RedisOptions& options) {
    auto made = open_redis_counters(options);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
}

Outcome apply(Counters& counters, std::string_view key, LimitRef limit, std::uint32_t cost = 1,
              ChargeOp op = ChargeOp::take, std::uint64_t lease = 0) {
    const Charge charge{.key = key, .rule_bytes = 2, .op = op, .cost = cost, .limit = limit};
    return counters.apply_one({.charges = {&charge, 1}, .lease = lease}, nonsense);
}

class RedisService : public testing::TestWithParam<std::string> {
protected:
    std::string key_of(std::string_view key) {
        return RedisCodec(server.options()).redis_key(key, 2);
    }
    RedisServer server{{.program = GetParam()}};
};

TEST_P(RedisService, TheServersClockDecidesAndIsTold) {
    const auto counters = open(server.options());
    const auto before = std::stoll(server.command({"TIME"}).substr(0, 10));
    const Outcome outcome = apply(*counters, "r/k", ref(fixed_window(5, minutes(1))));
    const auto after = std::stoll(server.command({"TIME"}).substr(0, 10));
    const auto told = std::chrono::floor<seconds>(outcome.at.wall).time_since_epoch().count();
    EXPECT_GE(told, before);
    EXPECT_LE(told, after);
    EXPECT_EQ(outcome.at.mono.time_since_epoch(), outcome.at.wall.time_since_epoch());
    // The window ends with the server's minute.
    const Wall end = outcome.at.wall + outcome.levels[0].reset;
    EXPECT_EQ(end.time_since_epoch() % Nanos(minutes(1)), Nanos(0));
}

TEST_P(RedisService, TheMarkerIsOneForAllAndGoesWithTheData) {
    const auto open_class = [&] {
        auto store = RedisStore::open(server.options());
        EXPECT_TRUE(store.ok()) << store.status();
        auto made = RedisCounters::open(*store);
        EXPECT_TRUE(made.ok()) << made.status();
        return *std::move(made);
    };
    const auto one = open_class();
    const auto two = open_class();
    const auto first = one->marker();
    ASSERT_TRUE(first.has_value());
    EXPECT_FALSE(first->empty());
    EXPECT_EQ(two->marker(), first);
    server.command({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_EQ(one->marker(), first) << "a look writes nothing";
    server.command({"CONFIG", "SET", "maxmemory", "0"});
    server.command({"FLUSHALL"});
    const auto second = two->marker();
    EXPECT_NE(second, first);
    EXPECT_NE(second, std::nullopt);
    EXPECT_EQ(one->marker(), second);
    server.command({"DEL", server.options().prefix + "marker"});
    server.command({"RPUSH", server.options().prefix + "marker", "x"});
    EXPECT_EQ(one->marker(), std::nullopt);
    server.kill();
    EXPECT_EQ(one->marker(), std::nullopt);
    server.start();
    std::optional<std::string> third;
    for (int i = 0; i < 1000 && !third; ++i) {
        third = one->marker();
        std::this_thread::sleep_for(milliseconds(10));
    }
    EXPECT_NE(third, std::nullopt);
    EXPECT_NE(third, second);
}

TEST_P(RedisService, UnitsAreGivenBackByTheTimeThatWasTold) {
    const auto counters = open(server.options());
    const LimitRef window = ref(fixed_window(10, hours(24)));
    const Outcome taken = apply(*counters, "r/k", window, 4);
    Charge give{
        .key = "r/k", .rule_bytes = 2, .op = ChargeOp::give_back, .cost = 3, .limit = window};
    give.taken = Now{taken.at.mono - hours(48), taken.at.wall - hours(48)};
    EXPECT_EQ(counters->apply_one({.charges = {&give, 1}}, nonsense).levels[0].used, 4U)
        << "another window's units";
    give.taken = taken.at;
    EXPECT_EQ(counters->apply_one({.charges = {&give, 1}}, nonsense).levels[0].used, 1U);
}

TEST_P(RedisService, KeysOutliveTheirStateByASecondAtMost) {
    const auto counters = open(server.options());
    const Limit kinds[] = {token_bucket(10, seconds(100)),  token_bucket(7, seconds(11), 3),
                           fixed_window(10, hours(1)),      sliding_window(10, seconds(90)),
                           sliding_counter(10, minutes(3)), fixed_window(2, minutes(1), true)};
    for (const Limit& kind : kinds) {
        SCOPED_TRACE(to_string(kind));
        server.command({"FLUSHALL"});
        for (int i = 0; i < 3; ++i) {
            const Outcome outcome = apply(*counters, "r/k", ref(kind));
            const Nanos state_end = outcome.at.wall.time_since_epoch() + outcome.levels[0].reset;
            const milliseconds key_end(std::stoll(server.command({"PEXPIRETIME", key_of("r/k")})));
            EXPECT_GT(key_end, state_end);
            EXPECT_LT(key_end, state_end + milliseconds(1100));
        }
    }
}

TEST_P(RedisService, AKeyIsGoneWhenItsStateIs) {
    const auto counters = open(server.options());
    EXPECT_EQ(apply(*counters, "r/k", ref(token_bucket(10, milliseconds(500))), 10).levels[0].used,
              10U);
    const LimitRef minute = ref(token_bucket(10, minutes(1)));
    EXPECT_EQ(apply(*counters, "r/l", minute, 5).levels[0].used, 5U);
    EXPECT_EQ(apply(*counters, "r/l", minute, 5, ChargeOp::give_back).levels[0].used, 0U);
    for (int i = 0; i < 1000 && server.command({"DBSIZE"}) != "0"; ++i) {
        std::this_thread::sleep_for(milliseconds(10));
    }
    EXPECT_EQ(server.command({"DBSIZE"}), "0");
}

TEST_P(RedisService, ALookLeavesNothing) {
    const auto counters = open(server.options());
    for (const Limit& kind :
         {token_bucket(10, minutes(1)), fixed_window(10, minutes(1)),
          sliding_window(10, minutes(1)), sliding_counter(10, minutes(1)), concurrency(10)}) {
        EXPECT_EQ(apply(*counters, "r/" + to_string(kind), ref(kind), 3, ChargeOp::observe)
                      .levels[0]
                      .remaining,
                  10U);
    }
    EXPECT_EQ(server.command({"DBSIZE"}), "0");
}

TEST_P(RedisService, ASlotIsALeaseThatEndsByItself) {
    RedisOptions options = server.options();
    options.lease = seconds(1);
    const LimitRef two = ref(concurrency(2));
    {
        const auto dying = open(options);
        EXPECT_TRUE(apply(*dying, "r/k", two, 1, ChargeOp::take, 11).admitted);
        EXPECT_TRUE(apply(*dying, "r/k", two, 1, ChargeOp::take, 12).admitted);
    }
    const auto counters = open(options);
    bool freed = false;
    for (int i = 0; i < 1000 && !freed; ++i) {
        freed = apply(*counters, "r/k", two, 1, ChargeOp::take, 13).admitted;
        std::this_thread::sleep_for(milliseconds(10));
    }
    EXPECT_TRUE(freed);
}

TEST_P(RedisService, ALeaseFreesWhatItTookAndOnce) {
    const auto counters = open(server.options());
    const LimitRef ten = ref(concurrency(10));
    EXPECT_EQ(apply(*counters, "r/k", ten, 3, ChargeOp::take, 1).levels[0].used, 3U);
    EXPECT_EQ(apply(*counters, "r/k", ten, 2, ChargeOp::take, 2).levels[0].used, 5U);
    EXPECT_EQ(apply(*counters, "r/k", ten, 3, ChargeOp::give_back, 3).levels[0].used, 5U)
        << "it never took any";
    EXPECT_EQ(apply(*counters, "r/k", ten, 1, ChargeOp::give_back, 1).levels[0].used, 4U);
    EXPECT_EQ(apply(*counters, "r/k", ten, 9, ChargeOp::give_back, 1).levels[0].used, 2U);
    EXPECT_EQ(apply(*counters, "r/k", ten, 9, ChargeOp::give_back, 1).levels[0].used, 2U);
    EXPECT_EQ(apply(*counters, "r/k", ten, 2, ChargeOp::give_back, 2).levels[0].used, 0U);
    EXPECT_EQ(server.command({"DBSIZE"}), "0");
}

TEST_P(RedisService, KeysShowTheLimitAndHideTheCaller) {
    RedisOptions options = server.options();
    options.prefix = "{shop}:";
    const auto counters = open(options);
    const std::string key = std::string("\x0d") + "caller budget\x0cpk_live_very";
    const Charge charge{.key = key, .rule_bytes = 14, .limit = ref(token_bucket(5, minutes(1)))};
    EXPECT_TRUE(counters->apply_one({.charges = {&charge, 1}}, nonsense).admitted);
    const std::string kept = server.command({"KEYS", "*"});
    EXPECT_EQ(kept.substr(0, 21), "{shop}:caller_budget:");
    EXPECT_EQ(kept.size(), 21 + 22U);
    EXPECT_EQ(kept.find("pk_live"), std::string::npos);
}

TEST_P(RedisService, LongSlidingWindowsKeepWorking) {
    RedisOptions options = server.options();
    options.time_from_calls = true;
    const auto counters = open(options);
    const LimitRef limit = ref(sliding_window(300, seconds(10)));
    // Twenty a second for a minute: records leave as others come, and the value is cut to size.
    Now now{Mono(hours(5)), Wall(seconds(1'700'000'000))};
    for (int i = 0; i < 1200; ++i) {
        const Charge charge{.key = "r/k", .rule_bytes = 2, .limit = limit};
        const Outcome outcome = counters->apply_one({.charges = {&charge, 1}}, now);
        ASSERT_EQ(outcome.levels[0].used, static_cast<std::uint64_t>(std::min(i + 1, 200)));
        now = later(now, milliseconds(50));
    }
    EXPECT_LT(std::stoi(server.command({"STRLEN", key_of("r/k")})), 65 + 16 * 420);
}

TEST_P(RedisService, BatchesLargerThanTheQueueAreAnsweredWhole) {
    RedisOptions options = server.options();
    options.max_waiting = 10;
    const auto counters = open(options);
    const LimitRef limit = ref(token_bucket(1000, hours(1)));
    const Charge charge{.key = "r/k", .rule_bytes = 2, .limit = limit};
    const std::vector<Transaction> batch(35, Transaction{.charges = {&charge, 1}});
    std::vector<Outcome> outcomes(35);
    counters->apply(batch, nonsense, outcomes);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        EXPECT_EQ(outcomes[i].levels[0].used, i + 1);
    }
}

TEST_P(RedisService, NumbersThatCannotBeExactAreRefused) {
    const auto counters = open(server.options());
    const Limit half_micros = fixed_window(1, Nanos(1500));
    EXPECT_FALSE(fits_redis(half_micros).ok());
    EXPECT_EQ(apply(*counters, "r/k", ref(half_micros)).status, absl::StatusCode::kInvalidArgument);
    EXPECT_FALSE(fits_redis(token_bucket(7, Nanos(1'234'567'890'123'457))).ok());
    for (const Limit& fine :
         {fixed_window(1, Nanos(2000)), token_bucket(1, Nanos(1500)), concurrency(3),
          token_bucket(0, Nanos(1)), token_bucket(1'000'000'000, hours(24)),
          token_bucket(999'999'937, max_period), sliding_counter(999'999'937, max_period)}) {
        EXPECT_TRUE(fits_redis(fine).ok()) << to_string(fine);
        EXPECT_EQ(apply(*counters, "r/" + to_string(fine), ref(fine)).status,
                  absl::StatusCode::kOk);
    }
}

INSTANTIATE_TEST_SUITE_P(Servers, RedisService, testing::ValuesIn(redis_programs()),
                         [](const auto& server) { return program_name(server.param); });

// ---- getting in ----

TEST(RedisAccess, APasswordIsNeeded) {
    RedisServer server({.arguments = {"--requirepass", "very secret"}});
    RedisOptions options = server.options();
    options.deadline = milliseconds(300);
    const LimitRef limit = ref(token_bucket(5, minutes(1)));
    auto store = *RedisStore::open(options);
    auto refused = *RedisCounters::open(store);
    EXPECT_EQ(apply(*refused, "r/k", limit).status, absl::StatusCode::kUnavailable);
    EXPECT_NE(store->monitor().stats().trouble.find("NOAUTH"), std::string::npos);
    options.password = "wrong secret";
    store = *RedisStore::open(options);
    refused = *RedisCounters::open(store);
    EXPECT_EQ(apply(*refused, "r/k", limit).status, absl::StatusCode::kUnavailable);
    EXPECT_NE(store->monitor().stats().trouble.find("WRONGPASS"), std::string::npos);
    EXPECT_EQ(store->monitor().stats().trouble.find("secret"), std::string::npos);
    options.password = "very secret";
    options.deadline = max_redis_deadline;
    EXPECT_TRUE(apply(*open(options), "r/k", limit).admitted);
}

TEST(RedisAccess, AUserOfAnAclAndADatabase) {
    RedisServer server;
    // What docs/operating.md says a user needs, and no more.
    EXPECT_EQ(
        server.command({"ACL",         "SETUSER",       "gateway",      "on",      ">pass word",
                        "~{ration}:*", "+evalsha",      "+script|load", "+time",   "+select",
                        "+dbsize",     "+get",          "+set",         "+del",    "+exists",
                        "+expire",     "+getrange",     "+setrange",    "+zscore", "+zadd",
                        "+zrem",       "+zrangebyscore"}),
        "OK");
    RedisOptions options = server.options();
    options.user = "gateway";
    options.password = "pass word";
    options.database = 3;
    const auto counters = open(options);
    for (const Limit& kind :
         {token_bucket(10, minutes(1)), fixed_window(10, minutes(1)),
          sliding_window(10, minutes(1)), sliding_counter(10, minutes(1)), concurrency(10)}) {
        const std::string key = "r/" + to_string(kind);
        for (int i = 0; i < 3; ++i) {
            EXPECT_TRUE(apply(*counters, key, ref(kind), 2, ChargeOp::take, 9).admitted);
            EXPECT_EQ(apply(*counters, key, ref(kind), 1, ChargeOp::give_back, 9).status,
                      absl::StatusCode::kOk);
        }
    }
    EXPECT_EQ(counters->stats().keys, 5U);
    EXPECT_EQ(server.command({"DBSIZE"}), "0") << "database 0";
}

TEST(RedisAccess, Tls) {
    RedisServer plain;  // its folder holds the certificate
    const std::string folder = plain.folder();
    const std::string made =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
        "/CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout " +
        folder + "/key -out " + folder + "/cert 2>/dev/null";
    ASSERT_EQ(std::system(made.c_str()), 0);
    const std::uint16_t port = free_port();
    RedisServer server(
        {.arguments = {"--tls-port", std::to_string(port), "--tls-cert-file", folder + "/cert",
                       "--tls-key-file", folder + "/key", "--tls-ca-cert-file", folder + "/cert"}});
    RedisOptions options;
    options.port = port;
    options.deadline = max_redis_deadline;
    options.tls = {.enabled = true,
                   .ca_file = folder + "/cert",
                   .certificate_file = folder + "/cert",
                   .key_file = folder + "/key"};
    EXPECT_TRUE(apply(*open(options), "r/k", ref(token_bucket(5, minutes(1)))).admitted);
    options.tls.ca_file.clear();
    options.deadline = milliseconds(500);
    auto store = *RedisStore::open(options);
    EXPECT_EQ(apply(**RedisCounters::open(store), "r/k", ref(token_bucket(5, minutes(1)))).status,
              absl::StatusCode::kUnavailable);
    EXPECT_NE(store->monitor().stats().trouble.find("certificate"), std::string::npos)
        << store->monitor().stats().trouble;
    options.tls.certificate_file = folder + "/none";
    EXPECT_EQ(RedisStore::open(options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(RedisAccess, OptionsHaveBounds) {
    const auto refused = [](const auto& change) {
        RedisOptions options;
        change(options);
        return open_redis_counters(options).status().code() == absl::StatusCode::kInvalidArgument;
    };
    EXPECT_TRUE(refused([](RedisOptions& o) { o.deadline = min_redis_deadline - Nanos(1); }));
    EXPECT_TRUE(refused([](RedisOptions& o) { o.deadline = max_redis_deadline + Nanos(1); }));
    EXPECT_TRUE(
        refused([](RedisOptions& o) { o.prefix = std::string(max_redis_prefix + 1, 'p'); }));
    EXPECT_TRUE(refused([](RedisOptions& o) { o.host = ""; }));
    EXPECT_TRUE(refused([](RedisOptions& o) { o.port = 0; }));
    EXPECT_TRUE(refused([](RedisOptions& o) { o.max_waiting = 0; }));
    EXPECT_TRUE(refused([](RedisOptions& o) { o.lease = milliseconds(999); }));
    EXPECT_FALSE(refused([](RedisOptions& o) {
        o.prefix = std::string(max_redis_prefix, 'p');
        o.deadline = min_redis_deadline;
    }));
}

}  // namespace
}  // namespace ration
