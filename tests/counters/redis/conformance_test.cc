// The Redis counters pass the conformance suite, on every server there is.
#include "counters/conformance.h"

#include <map>

#include "counters/redis/server.h"

namespace ration {
namespace {

// One server for all tests of a program; a fresh store is an empty one.
RedisServer& server_of(const std::string& program) {
    static std::map<std::string, std::unique_ptr<RedisServer>> servers;
    std::unique_ptr<RedisServer>& server = servers[program];
    if (server == nullptr) {
        server = std::make_unique<RedisServer>(RedisServerOptions{.program = program});
    }
    return *server;
}

std::vector<StoreUnderTest> stores() {
    std::vector<StoreUnderTest> stores;
    for (const std::string& program : redis_programs()) {
        stores.push_back({.name = program_name(program),
                          .tick = std::chrono::microseconds(1),
                          .open = [program] {
                              RedisServer& server = server_of(program);
                              server.command({"FLUSHALL"});
                              RedisOptions options = server.options();
                              options.time_from_calls = true;
                              options.lease = std::chrono::hours(10'000);
                              auto made = open_redis_counters(options);
                              EXPECT_TRUE(made.ok()) << made.status();
                              return *std::move(made);
                          }});
    }
    return stores;
}

INSTANTIATE_TEST_SUITE_P(Redis, CountersConformance, testing::ValuesIn(stores()), store_name);

}  // namespace
}  // namespace ration
