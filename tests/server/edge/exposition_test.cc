#include "server/metrics/exposition.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace ration {
namespace {

ProcessFacts some_facts() {
    ProcessFacts facts;
    facts.totals.requests = {5, 4, 6, 3, 2, 1};
    facts.totals.statuses = {1, 0, 5, 0, 9, 0};
    facts.totals.rules = {{.rule = "caller budget", .events = {7, 3, 2, 1, 0, 4}},
                          {.rule = "odd \"name\"\\ \n", .events = {1, 0, 0, 0, 0, 0}}};
    Histogram total(latency_scale);
    total.add(std::chrono::microseconds(10));
    total.add(std::chrono::milliseconds(3));
    total.add(std::chrono::seconds(200));
    total.merge_into(facts.totals.total);
    Histogram wait(wait_scale);
    wait.add(std::chrono::milliseconds(850));
    wait.merge_into(facts.totals.wait);
    facts.counters = {.keys = 11, .capacity = 100, .bytes = 4096, .evictions = 6, .overflowed = 2};
    facts.gateway.accepted = 77;
    facts.reload = {.succeeded = 2,
                    .failed = 1,
                    .last_succeeded = false,
                    .last_success = Wall(std::chrono::milliseconds(1'800'000'000'500))};
    facts.log_lines_dropped = 9;
    facts.started = Wall(std::chrono::seconds(1'800'000'000));
    facts.version = "0.1.0";
    LedgerMeter ledger;
    ledger.on_batch({.size = 3, .took = std::chrono::milliseconds(2), .status = absl::OkStatus()});
    ledger.on_batch({.size = 1000, .took = {}, .status = absl::OkStatus()});
    LedgerReply contended;
    contended.reserved.verdict = ReserveVerdict::contended;
    ledger.on_reserved(contended);
    LedgerReply unanswered;
    unanswered.status = absl::UnavailableError("disk I/O error");
    ledger.on_batch({.size = 1, .took = {}, .status = unanswered.status});
    ledger.on_reserved(unanswered);
    ledger.on_held();
    LedgerStats stats;
    stats.doubtful = 4;
    stats.file_bytes = 4096;
    stats.log_bytes = 1000;
    ledger.on_stats(stats);
    facts.ledger = ledger.totals();
    facts.ledger->queued = 6;
    return facts;
}

bool has_line(const std::string& text, const std::string& line) {
    return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(Exposition, NumbersStandWhereTheyBelong) {
    const std::string text = exposition(some_facts());
    for (const char* line : {
             R"(ration_requests_total{outcome="admitted"} 5)",
             R"(ration_requests_total{outcome="client_gone"} 1)",
             R"(ration_responses_total{class="none"} 1)",
             R"(ration_responses_total{class="4xx"} 9)",
             R"(ration_decisions_total{rule="caller budget",outcome="admitted"} 7)",
             R"(ration_decisions_total{rule="caller budget",outcome="refused"} 3)",
             R"(ration_shadow_refusals_total{rule="caller budget"} 2)",
             R"(ration_store_down_total{rule="caller budget",choice="open"} 1)",
             R"(ration_store_down_total{rule="caller budget",choice="local"} 4)",
             R"(ration_decisions_total{rule="odd \"name\"\\ \n",outcome="admitted"} 1)",
             R"(ration_request_duration_seconds_bucket{le="1e-05"} 1)",
             R"(ration_request_duration_seconds_bucket{le="0.003"} 2)",
             R"(ration_request_duration_seconds_bucket{le="100"} 2)",
             R"(ration_request_duration_seconds_bucket{le="+Inf"} 3)",
             R"(ration_request_duration_seconds_count 3)",
             R"(ration_refusal_wait_seconds_sum 0.85)",
             R"(ration_refusal_wait_seconds_bucket{le="0.5"} 0)",
             R"(ration_refusal_wait_seconds_bucket{le="1"} 1)",
             R"(ration_counters_keys 11)",
             R"(ration_counters_capacity_keys 100)",
             R"(ration_counters_bytes 4096)",
             R"(ration_counters_evictions_total 6)",
             R"(ration_counters_overflow_total 2)",
             R"(ration_connections_accepted_total 77)",
             R"(ration_reloads_total{result="success"} 2)",
             R"(ration_reloads_total{result="failure"} 1)",
             R"(ration_reload_last_succeeded 0)",
             R"(ration_reload_last_success_timestamp_seconds 1800000000.5)",
             R"(ration_access_log_dropped_total 9)",
             R"(ration_ledger_reservations_total{verdict="started"} 0)",
             R"(ration_ledger_reservations_total{verdict="contended"} 1)",
             R"(ration_ledger_reservations_total{verdict="unavailable"} 1)",
             R"(ration_ledger_commits_total 2)",
             R"(ration_ledger_failures_total 1)",
             R"(ration_ledger_batch_size_bucket{le="2"} 0)",
             R"(ration_ledger_batch_size_bucket{le="5"} 1)",
             R"(ration_ledger_batch_size_bucket{le="1000"} 2)",
             R"(ration_ledger_batch_size_sum 1003)",
             R"(ration_ledger_commit_duration_seconds_bucket{le="0.002"} 2)",
             R"(ration_ledger_up 0)",
             R"(ration_ledger_queue 6)",
             R"(ration_ledger_holds_total 1)",
             R"(ration_ledger_in_doubt 4)",
             R"(ration_ledger_bytes 5096)",
             R"(process_start_time_seconds 1800000000)",
             R"(ration_build_info{version="0.1.0"} 1)",
         }) {
        EXPECT_TRUE(has_line(text, line)) << line << "\nin\n" << text;
    }
}

// Prometheus' text format 0.0.4, line by line: HELP and TYPE once before a family's samples, known
// types, well-formed names, labels and numbers, no sample twice.
TEST(Exposition, EveryLineIsWellFormed) {
    const std::regex help(R"(# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) \S.*)");
    const std::regex type(R"(# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram))");
    const std::regex sample(
        R"rx(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\})? (\S+))rx");
    std::map<std::string, std::string> types;
    std::set<std::string> helped;
    std::set<std::string> samples;
    std::string family;
    std::istringstream lines(exposition(some_facts()));
    std::string line;
    while (std::getline(lines, line)) {
        std::smatch match;
        if (std::regex_match(line, match, help)) {
            EXPECT_TRUE(helped.insert(match[1]).second) << line;
        } else if (std::regex_match(line, match, type)) {
            family = match[1];
            EXPECT_TRUE(helped.contains(family)) << line;
            EXPECT_TRUE(types.emplace(family, match[2]).second) << line;
        } else {
            ASSERT_TRUE(std::regex_match(line, match, sample)) << line;
            EXPECT_TRUE(match[1].str().starts_with(family)) << line;
            EXPECT_TRUE(samples.insert(match[1].str() + match[2].str()).second) << line;
            std::size_t used = 0;
            static_cast<void>(std::stod(match[3].str(), &used));
            EXPECT_EQ(used, match[3].length()) << line;
        }
    }
    EXPECT_EQ(types.size(), helped.size());
    for (const auto& [name, kind] : types) {
        EXPECT_EQ(kind == "counter", name.ends_with("_total")) << name;
    }
}

TEST(Exposition, WithoutALedgerNothingIsSaidOfOne) {
    ProcessFacts facts = some_facts();
    facts.ledger.reset();
    EXPECT_EQ(exposition(facts).find("ledger"), std::string::npos);
}

TEST(Exposition, BucketsNeverFall) {
    std::istringstream lines(exposition(some_facts()));
    std::string line;
    std::string family;
    double last = 0;
    int seen = 0;
    while (std::getline(lines, line)) {
        const std::size_t bucket = line.find("_bucket{");
        if (bucket == std::string::npos) {
            continue;
        }
        const double value = std::stod(line.substr(line.rfind(' ')));
        if (line.substr(0, bucket) != family) {
            family = line.substr(0, bucket);
            last = 0;
        }
        EXPECT_GE(value, last) << line;
        last = value;
        ++seen;
    }
    EXPECT_GT(seen, 150);
}

}  // namespace
}  // namespace ration
