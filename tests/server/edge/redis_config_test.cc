// The `redis` section of serve.yaml.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/text.h"
#include "server/config/redis_config.h"
#include "server/config/serve_config.h"
#include "server/edge/support.h"

namespace ration {
namespace {

const char* environment(const char* name) {
    return std::string_view(name) == "REDIS_PASSWORD" ? "pass word" : nullptr;
}

std::optional<ServeConfig> read(std::string_view counters, Problems& problems) {
    return ServeConfig::parse(
        "/etc/ration/serve.yaml",
        cat("policy: p.yaml\nupstream: http://127.0.0.1:1\ncounters:\n", counters), environment,
        problems);
}

ServeConfig good(std::string_view counters) {
    Problems problems;
    const auto config = read(counters, problems);
    EXPECT_TRUE(config.has_value()) << problems.status();
    return config.value_or(ServeConfig{});
}

TEST(RedisConfig, AnAddressIsEnough) {
    const ServeConfig config = good("  redis: redis.internal:6380\n");
    ASSERT_TRUE(config.redis.has_value());
    EXPECT_EQ(config.redis->host, "redis.internal");
    EXPECT_EQ(config.redis->port, 6380);
    EXPECT_EQ(config.redis->deadline, std::chrono::milliseconds(50));
    EXPECT_EQ(config.redis->prefix, "{ration}:");
    EXPECT_EQ(config.replicas, 1U);
    EXPECT_FALSE(good("  memory: 1MiB\n").redis.has_value());
}

TEST(RedisConfig, EverySetting) {
    testing::Folder folder;
    for (const char* name : {"ca", "cert", "key"}) {
        folder.write(name, "x");
    }
    const RedisOptions redis =
        *good(cat("  replicas: 3\n  redis:\n    address: \"[::1]:6379\"\n    tls: {ca: ",
                  folder.path("ca"), ", verify: false, certificate: ", folder.path("cert"),
                  ", key: ", folder.path("key"),
                  "}\n    user: gateway\n    password: env.REDIS_PASSWORD\n    database: 3\n"
                  "    prefix: \"shop:\"\n    deadline: 20ms\n    connect: 1s\n    lease: 10min\n"
                  "    waiting: 500\n"))
             .redis;
    EXPECT_EQ(redis.host, "::1");
    EXPECT_TRUE(redis.tls.enabled);
    EXPECT_FALSE(redis.tls.verify);
    EXPECT_EQ(redis.tls.ca_file, folder.path("ca"));
    EXPECT_EQ(redis.tls.certificate_file, folder.path("cert"));
    EXPECT_EQ(redis.tls.key_file, folder.path("key"));
    EXPECT_EQ(redis.user, "gateway");
    EXPECT_EQ(redis.password, "pass word");
    EXPECT_EQ(redis.database, 3U);
    EXPECT_EQ(redis.prefix, "shop:");
    EXPECT_EQ(redis.deadline, std::chrono::milliseconds(20));
    EXPECT_EQ(redis.connect_timeout, std::chrono::seconds(1));
    EXPECT_EQ(redis.lease, std::chrono::minutes(10));
    EXPECT_EQ(redis.max_waiting, 500U);
}

TEST(RedisConfig, ASocketIsSeenFromTheFile) {
    EXPECT_EQ(good("  redis: unix:run/redis.sock\n").redis->host,
              "unix:/etc/ration/run/redis.sock");
    EXPECT_TRUE(good("  redis: {address: \"a:1\", tls: true}\n").redis->tls.enabled);
}

TEST(RedisConfig, APasswordFromAFile) {
    testing::Folder folder;
    folder.write("password", "from a file\n");
    EXPECT_EQ(
        good(cat("  redis: {address: \"a:1\", password_file: ", folder.path("password"), "}\n"))
            .redis->password,
        "from a file");
}

struct Bad {
    std::string counters;
    std::string reason;  // part of it
};

TEST(RedisConfig, MistakesAreToldWhereTheyStand) {
    const std::vector<Bad> rows{
        {"  redis: redis.internal\n", "4:10: "},
        {"  redis: redis.internal:0\n", "has a port"},
        {"  redis: {tls: true}\n", "needs an 'address'"},
        {"  redis: {address: \"a:1\", password: secret}\n", "write env.NAME"},
        {"  redis: {address: \"a:1\", password: env.NONE}\n", "no NONE"},
        {"  redis: {address: \"a:1\", password: env.REDIS_PASSWORD, password_file: x}\n",
         "exclude"},
        {"  redis: {address: \"a:1\", password_file: /nowhere}\n", "cannot be read"},
        {"  redis: {address: \"a:1\", user: u}\n", "needs a 'password'"},
        {"  redis: {address: \"a:1\", tls: {key: /nowhere}}\n", "cannot be read"},
        {"  redis: {address: \"a:1\", tls: {certificate: /dev/null}}\n", "both"},
        {"  redis: {address: \"a:1\", deadline: 0ms}\n", "deadline"},
        {"  redis: {address: \"a:1\", deadline: 11s}\n", "deadline"},
        {"  redis: {address: \"a:1\", connect: 9ms}\n", "connect"},
        {"  redis: {address: \"a:1\", lease: 999ms}\n", "lease"},
        {"  redis: {address: \"a:1\", lease: 169h}\n", "lease"},
        {"  redis: {address: \"a:1\", waiting: 0}\n", "waiting"},
        {"  redis: {address: \"a:1\", database: 1000001}\n", "database"},
        {cat("  redis: {address: \"a:1\", prefix: ", std::string(65, 'p'), "}\n"), "64 bytes"},
        {"  redis: {address: \"a:1\", adress: b}\n", "adress"},
        {"  redis: [a]\n", "redis"},
        {"  redis: a:1\n  replicas: 0\n", "replicas"},
        {"  redis: a:1\n  replicas: 10001\n", "replicas"},
        {"  replicas: 2\n", "share"},
    };
    for (const Bad& row : rows) {
        Problems problems;
        EXPECT_FALSE(read(row.counters, problems).has_value()) << row.counters;
        EXPECT_NE(std::string(problems.status().message()).find(row.reason), std::string::npos)
            << row.counters << problems.status();
        EXPECT_EQ(std::string(problems.status().message()).find("pass word"), std::string::npos);
    }
}

TEST(RedisConfig, AChangeNeedsARestart) {
    const ServeConfig running = good("  redis: a:1\n");
    EXPECT_EQ(restart_needed(running, good("  redis: a:1\n")), "");
    for (const char* other :
         {"  redis: a:2\n", "  memory: 1MiB\n", "  redis: {address: \"a:1\", deadline: 60ms}\n",
          "  redis: a:1\n  replicas: 2\n", "  redis: {address: \"a:1\", tls: true}\n"}) {
        EXPECT_EQ(restart_needed(running, good(other)), "counters") << other;
    }
}

}  // namespace
}  // namespace ration
