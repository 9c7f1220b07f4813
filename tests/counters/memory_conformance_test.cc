// The memory counters pass the conformance suite, in one shard and in many.
#include "counters/conformance.h"

namespace ration {
namespace {

StoreUnderTest memory(std::string name, MemoryCountersOptions options) {
    return {.name = std::move(name), .tick = Nanos(1), .open = [options] {
                absl::StatusOr<std::unique_ptr<Counters>> made = open_memory_counters(options);
                EXPECT_TRUE(made.ok()) << made.status();
                return *std::move(made);
            }};
}

INSTANTIATE_TEST_SUITE_P(Memory, CountersConformance,
                         testing::Values(memory("smallest", {.max_bytes = min_counter_bytes,
                                                             .log_bytes = min_log_bytes}),
                                         memory("default", {}),
                                         memory("sharded", {.max_bytes = 16U << 20, .shards = 64})),
                         store_name);

}  // namespace
}  // namespace ration
