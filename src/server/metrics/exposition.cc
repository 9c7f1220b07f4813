#include "server/metrics/exposition.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <initializer_list>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace ration {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Families = std::vector<MetricFamily>;
using Labels = std::vector<ClientMetric::Label>;

struct Name {
    std::string_view name;
    std::string_view help;
};

// The names of the fixed label values, in the order of their enumerators.
constexpr std::array<const char*, request_outcomes> outcome_names{
    "admitted", "refused", "replayed", "preflight", "malformed", "client_gone"};
constexpr std::array<const char*, status_classes> class_names{"none", "1xx", "2xx",
                                                              "3xx",  "4xx", "5xx"};

double as_double(std::uint64_t value) {
    return static_cast<double>(value);
}

double epoch_seconds(Wall at) {
    return static_cast<double>(at.time_since_epoch().count()) / 1e9;
}

MetricFamily& family(Families& families, Name name, MetricType type) {
    MetricFamily& made = families.emplace_back();
    made.name = name.name;
    made.help = name.help;
    made.type = type;
    return made;
}

void add_value(MetricFamily& to, Labels labels, double value) {
    ClientMetric& metric = to.metric.emplace_back();
    metric.label = std::move(labels);
    metric.counter.value = value;
    metric.gauge.value = value;
}

void counter(Families& families, Name name, std::uint64_t value) {
    add_value(family(families, name, MetricType::Counter), {}, as_double(value));
}

void gauge(Families& families, Name name, double value) {
    add_value(family(families, name, MetricType::Gauge), {}, value);
}

void histogram(Families& families, Name name, const HistogramCounts& counts,
               const HistogramScale& scale) {
    ClientMetric& metric = family(families, name, MetricType::Histogram).metric.emplace_back();
    std::uint64_t so_far = 0;
    for (std::size_t i = 0; i < scale.size; ++i) {
        so_far += counts.buckets[i];
        metric.histogram.bucket.push_back(
            {.cumulative_count = so_far,
             .upper_bound = static_cast<double>(scale.bounds[i]) / 1e9});
    }
    metric.histogram.sample_count = counts.total();
    metric.histogram.sample_sum = as_double(counts.sum) * static_cast<double>(scale.sum_unit) / 1e9;
}

// One family over all rules, one series for each of `events` and rule.
using Event = std::pair<RuleEvent, const char*>;

void by_rule(Families& families, Name name, const MetricsTotals& totals,
             std::pair<const char*, std::initializer_list<Event>> label) {
    MetricFamily& made = family(families, name, MetricType::Counter);
    for (const RuleTotals& rule : totals.rules) {
        for (const auto& [event, value] : label.second) {
            Labels labels{{"rule", rule.rule}};
            if (label.first != nullptr) {
                labels.push_back({label.first, value});
            }
            add_value(made, std::move(labels),
                      as_double(rule.events[static_cast<std::size_t>(event)]));
        }
    }
}

// What the counters said to the requests last judged.
void store_family(Families& families, const ProcessFacts& facts) {
    gauge(families,
          {"ration_counters_up",
           "1 while the counters answer, 0 while limits do what their store_down says."},
          facts.counters_up ? 1 : 0);
}

void request_families(Families& families, const MetricsTotals& totals) {
    MetricFamily& outcomes = family(
        families, {"ration_requests_total", "Finished requests by outcome."}, MetricType::Counter);
    for (std::size_t i = 0; i < request_outcomes; ++i) {
        add_value(outcomes, {{"outcome", outcome_names[i]}}, as_double(totals.requests[i]));
    }
    MetricFamily& classes =
        family(families,
               {"ration_responses_total", "Answers sent, by status class; none: nothing was sent."},
               MetricType::Counter);
    for (std::size_t i = 0; i < status_classes; ++i) {
        add_value(classes, {{"class", class_names[i]}}, as_double(totals.statuses[i]));
    }
    histogram(families,
              {"ration_request_duration_seconds", "Arrival to last byte handed to the socket."},
              totals.total, latency_scale);
    histogram(families,
              {"ration_upstream_duration_seconds",
               "Request sent to head of the upstream's answer, where it was asked."},
              totals.upstream, latency_scale);
}

void rule_families(Families& families, const MetricsTotals& totals) {
    by_rule(families,
            {"ration_decisions_total",
             "Judgements by rule: admitted counts every rule that let a request pass, refused the "
             "one that refused it."},
            totals,
            {"outcome", {{RuleEvent::admitted, "admitted"}, {RuleEvent::refused, "refused"}}});
    by_rule(families,
            {"ration_shadow_refusals_total", "Requests that a rule in shadow would have refused."},
            totals, {nullptr, {{RuleEvent::shadow_refused, ""}}});
    by_rule(families,
            {"ration_store_down_total",
             "Judgements that the counters did not give, by what the rule says to do then."},
            totals,
            {"choice",
             {{RuleEvent::down_open, "open"},
              {RuleEvent::down_closed, "closed"},
              {RuleEvent::down_local, "local"}}});
    histogram(families,
              {"ration_refusal_wait_seconds", "Exact waits told with refusals that can clear."},
              totals.wait, wait_scale);
}

void counter_families(Families& families, const CounterStats& stats) {
    gauge(families, {"ration_counters_keys", "Keys tracked now."}, as_double(stats.keys));
    gauge(families, {"ration_counters_capacity_keys", "Keys that fit."}, as_double(stats.capacity));
    gauge(families, {"ration_counters_bytes", "Memory reserved for keys."}, as_double(stats.bytes));
    counter(families,
            {"ration_counters_evictions_total", "Keys dropped because they were unused again."},
            stats.evictions);
    counter(families,
            {"ration_counters_overflow_total", "Charges that went to a shared overflow bucket."},
            stats.overflowed);
}

void ledger_families(Families& families, const LedgerTotals& ledger) {
    MetricFamily& reserved =
        family(families,
               {"ration_ledger_reservations_total",
                "What the ledger said to requests, by verdict; unavailable: it gave no answer."},
               MetricType::Counter);
    for (std::size_t i = 0; i < verdict_names.size(); ++i) {
        add_value(reserved, {{"verdict", verdict_names[i]}}, as_double(ledger.reserved[i]));
    }
    counter(families, {"ration_ledger_commits_total", "Batches written durably."}, ledger.commits);
    counter(families, {"ration_ledger_failures_total", "Batches and sweeps that failed."},
            ledger.failures);
    histogram(families, {"ration_ledger_batch_size", "Jobs in one commit."}, ledger.batch_size,
              batch_scale);
    histogram(families, {"ration_ledger_commit_duration_seconds", "How long a commit took."},
              ledger.commit, latency_scale);
    gauge(families, {"ration_ledger_up", "1 when the last batch or sweep was written, else 0."},
          ledger.healthy ? 1 : 0);
    gauge(families, {"ration_ledger_queue", "Jobs waiting for the next commit."},
          as_double(ledger.queued));
    gauge(families, {"ration_ledger_holding", "Contended reservations that wait for a place now."},
          as_double(ledger.holding));
    counter(families, {"ration_ledger_holds_total", "Contended reservations that had to wait."},
            ledger.held);
    gauge(families, {"ration_ledger_running", "Attempts in flight."},
          as_double(ledger.stats.running));
    gauge(families, {"ration_ledger_in_doubt", "Attempts whose outcome is unknown."},
          as_double(ledger.stats.doubtful));
    counter(families, {"ration_ledger_sweeps_total", "Looks for expired records."}, ledger.sweeps);
    counter(families, {"ration_ledger_swept_total", "Expired records removed."},
            ledger.stats.swept);
    gauge(families, {"ration_ledger_bytes", "Size of the file and its write-ahead log."},
          as_double(ledger.stats.file_bytes + ledger.stats.log_bytes));
}

void redis_families(Families& families, const RedisStats& stats) {
    counter(families, {"ration_redis_calls_total", "Calls that Redis answered."}, stats.answered);
    MetricFamily& failures =
        family(families,
               {"ration_redis_failures_total",
                "Calls without an answer that counts. down: not sent, there was no connection; "
                "broken: their connection ended."},
               MetricType::Counter);
    for (std::size_t i = 0; i < redis_failures; ++i) {
        add_value(failures, {{"cause", redis_failure_names[i]}}, as_double(stats.failed[i]));
    }
    counter(families, {"ration_redis_connects_total", "Connections that became ready."},
            stats.connects);
    gauge(families, {"ration_redis_connections", "Connections wanted: one a thread, one more."},
          as_double(stats.connections));
    gauge(families, {"ration_redis_connections_ready", "Of these, ready now."},
          as_double(stats.ready));
    gauge(families, {"ration_redis_waiting", "Calls that wait for their answer now."},
          as_double(stats.waiting));
    counter(families, {"ration_redis_script_loads_total", "Times that Redis had lost the script."},
            stats.script_loads);
    ClientMetric& metric =
        family(families, {"ration_redis_call_duration_seconds", "From asking to the answer."},
               MetricType::Histogram)
            .metric.emplace_back();
    std::uint64_t so_far = 0;
    for (std::size_t i = 0; i < redis_latency_buckets; ++i) {
        so_far += stats.latency[i];
        metric.histogram.bucket.push_back(
            {.cumulative_count = so_far,
             .upper_bound = static_cast<double>(redis_latency_bounds[i]) / 1e9});
    }
    metric.histogram.sample_count = stats.answered;
    metric.histogram.sample_sum = as_double(stats.latency_sum) / 1e9;
}

void gateway_families(Families& families, const GatewayStats& stats) {
    gauge(families, {"ration_client_connections", "Client connections open now."},
          as_double(stats.client_connections));
    gauge(families, {"ration_upstream_connections", "Upstream connections open now."},
          as_double(stats.upstream_connections));
    gauge(families, {"ration_upstream_connections_idle", "Of these, kept for the next request."},
          as_double(stats.upstream_idle));
    counter(families, {"ration_connections_accepted_total", "Client connections accepted."},
            stats.accepted);
    counter(families,
            {"ration_connections_refused_total", "Client connections closed at the bound."},
            stats.refused_connections);
}

void process_families(Families& families, const ProcessFacts& facts) {
    MetricFamily& reloads =
        family(families, {"ration_reloads_total", "Reloads by result."}, MetricType::Counter);
    add_value(reloads, {{"result", "success"}}, as_double(facts.reload.succeeded));
    add_value(reloads, {{"result", "failure"}}, as_double(facts.reload.failed));
    gauge(families,
          {"ration_reload_last_succeeded", "1 when the last load of the rules succeeded, else 0."},
          facts.reload.last_succeeded ? 1 : 0);
    gauge(families,
          {"ration_reload_last_success_timestamp_seconds", "When rules were last read well."},
          epoch_seconds(facts.reload.last_success));
    counter(families, {"ration_access_log_lines_total", "Access log lines written."},
            facts.log_lines_written);
    counter(families,
            {"ration_access_log_dropped_total", "Access log lines lost to a slow or full disk."},
            facts.log_lines_dropped);
    gauge(families, {"ration_draining", "1 while the last requests finish before the end."},
          facts.draining ? 1 : 0);
    gauge(families,
          {"process_start_time_seconds", "Start of the process, in seconds since the epoch."},
          epoch_seconds(facts.started));
    MetricFamily& build =
        family(families, {"ration_build_info", "Always 1; the version is in the label."},
               MetricType::Gauge);
    add_value(build, {{"version", facts.version}}, 1);
}

}  // namespace

std::string exposition(const ProcessFacts& facts) {
    Families families;
    request_families(families, facts.totals);
    rule_families(families, facts.totals);
    counter_families(families, facts.counters);
    store_family(families, facts);
    if (facts.redis) {
        redis_families(families, *facts.redis);
    }
    gateway_families(families, facts.gateway);
    if (facts.ledger) {
        ledger_families(families, *facts.ledger);
    }
    process_families(families, facts);
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, families);
    return std::move(out).str();
}

}  // namespace ration
