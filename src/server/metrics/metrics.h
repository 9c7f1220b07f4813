// Counts what happens to requests, for /metrics.
//
// Units: requests; nanoseconds in histograms. Thread rule: `on_request` may be called from any
// number of threads and takes no lock once a thread has seen the policy in force: each thread adds
// to a shard of its own (threads beyond `shard_count` share one). `totals` sums the shards.
// Bounds: label values come from fixed sets and from rule names (see rule_names.h), never from a
// request. Nothing fails.
//
//   ration::Metrics metrics;
//   auto gateway = Gateway::start(options, engine, clock, metrics);
//   ration::MetricsTotals totals = metrics.totals();
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/metrics/histogram.h"
#include "server/metrics/rule_names.h"
#include "server/request_record.h"

namespace ration {

inline constexpr std::size_t shard_count = 64;

// What is counted for each rule.
enum class RuleEvent : std::uint8_t {
    admitted,        // judged the request and let it pass
    refused,         // is the rule that refused it
    shadow_refused,  // would have refused it, but is in shadow
    down_open,       // got no answer from the counters: passed
    down_closed,     // got no answer: refused
    down_local,      // got no answer: judged by this process's own counters
    count,
};

inline constexpr auto rule_events = static_cast<std::size_t>(RuleEvent::count);
inline constexpr std::size_t request_outcomes = 6;  // of RequestOutcome
inline constexpr std::size_t status_classes = 6;    // 0: nothing was sent; 1xx to 5xx

struct RuleTotals {
    std::string rule;
    std::array<std::uint64_t, rule_events> events{};
};

struct MetricsTotals {
    std::array<std::uint64_t, request_outcomes> requests{};  // by RequestOutcome
    std::array<std::uint64_t, status_classes> statuses{};
    std::uint64_t store_answers = 0;   // requests whose limits the counters judged
    std::uint64_t store_failures = 0;  // requests that got no answer from them
    HistogramCounts wait, total, upstream;
    std::vector<RuleTotals> rules;  // every rule ever in force, in the order of first sight
};

class Metrics final : public RequestObserver {
public:
    Metrics();
    ~Metrics() override;

    void on_request(const RequestRecord& record) override;
    // Makes the policy's rules appear with zeros before their first request.
    void announce(const std::shared_ptr<const Policy>& policy);
    [[nodiscard]] MetricsTotals totals() const;

private:
    struct Shard;
    [[nodiscard]] Shard& shard();
    void count_rules(Shard& shard, const Exchange& exchange);
    void count_durable(Shard& shard, const Exchange& exchange);

    RuleNames names_;
    std::array<std::atomic<Shard*>, shard_count> shards_{};
};

}  // namespace ration
