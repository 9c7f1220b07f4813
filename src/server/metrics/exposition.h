// /metrics: everything that is counted, in Prometheus' text format 0.0.4.
//
// Units: seconds, bytes and plain counts, as Prometheus' naming rules ask. Thread rule: a pure
// function of its argument. Nothing fails.
//
//   std::string text = ration::exposition({.totals = metrics.totals(), .version = "0.1.0"});
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "counters/redis/monitor.h"
#include "ration/counters.h"
#include "ration/time.h"
#include "server/gateway.h"
#include "server/metrics/ledger_meter.h"
#include "server/metrics/metrics.h"

namespace ration {

struct ReloadFacts {
    std::uint64_t succeeded = 0;
    std::uint64_t failed = 0;
    bool last_succeeded = true;
    Wall last_success{};
};

// All that one scrape tells.
struct ProcessFacts {
    MetricsTotals totals;
    CounterStats counters;
    std::optional<RedisStats> redis = {};  // when the counters are there
    GatewayStats gateway;
    std::optional<LedgerTotals> ledger;
    ReloadFacts reload;
    std::uint64_t log_lines_written = 0;
    std::uint64_t log_lines_dropped = 0;
    bool draining = false;
    bool counters_up = true;
    Wall started{};
    std::string version;
};

inline constexpr const char* exposition_content_type = "text/plain; version=0.0.4; charset=utf-8";

[[nodiscard]] std::string exposition(const ProcessFacts& facts);

}  // namespace ration
