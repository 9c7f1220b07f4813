// A whole decision of the shipped booking policy: identify, match, plan, two limits charged in one
// step on memory counters, conclude, settle. Headers as a browser behind a proxy sends them; 256
// workspaces and 4096 visitors take turns; the clock is passed in and moves 1 ms per request, so
// every request is admitted.
//
// `allocations` is what one decision asks of the heap after warm-up. The rows of `Growth` have that
// many more limits in the policy, none of which applies; NoLedgerRule has the same limits and no
// ceiling, quota or key, of which none speaks about the measured route either.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "engine/counting_allocator.h"
#include "engine/engine.h"
#include "policy/problems.h"

namespace ration {
namespace {

constexpr std::size_t workspaces = 256;
constexpr std::size_t visitors = 4096;
constexpr Now start{Mono(std::chrono::hours(1)), Wall(std::chrono::seconds(1'800'000'000))};

const char* no_environment(const char*) {
    return nullptr;
}

struct Variant {
    std::int64_t more_limits = 0;
    bool ledger_rules = true;
};

// The sections of the ledger's rules stand one after the other.
void drop_ledger_rules(std::string& policy) {
    const std::size_t from = policy.find("ceilings:\n");
    policy.erase(from, policy.find("refusals:\n") - from);
}

std::string booking_policy(Variant variant) {
    std::ifstream in(RATION_SOURCE_DIR "/examples/booking/policy.yaml");
    std::stringstream text;
    text << in.rdbuf();
    std::string policy = text.str();
    if (!variant.ledger_rules) {
        drop_ledger_rules(policy);
    }
    std::string routes;
    std::string limits;
    for (std::int64_t i = 0; i < variant.more_limits; ++i) {
        const std::string n = std::to_string(i);
        routes += "  extra_" + n + ": GET /v1/extra/" + n + "\n";
        limits += "  - {name: extra " + n + ", routes: [extra_" + n +
                  "], per: [address], token_bucket: 60/min}\n";
    }
    policy.insert(policy.find("routes:\n") + 8, routes);
    policy.insert(policy.find("limits:\n") + 8, limits);
    return policy;
}

std::string directory_text() {
    std::string entities = "entities:\n  account: {acc_1: {}}\n  workspace:\n";
    std::string credentials = "credentials:\n";
    for (std::size_t i = 0; i < workspaces; ++i) {
        const std::string n = std::to_string(i);
        entities += "    ws_" + n + ": {account: acc_1, timezone: UTC}\n";
        credentials +=
            "  pk_live_4f9a1c2b7d_" + n + ": {kind: publishable, workspace: ws_" + n + "}\n";
    }
    return entities + credentials;
}

// The requests and everything that decides them.
class Bench {
public:
    explicit Bench(Variant variant) {
        Problems problems;
        const auto policy =
            Policy::parse("policy.yaml", booking_policy(variant), no_environment, problems);
        const auto directory = Directory::parse("directory.yaml", directory_text(), problems);
        auto counters = open_memory_counters({.max_bytes = 64 << 20});
        if (!problems.ok() || !counters.ok()) {
            std::fprintf(stderr, "%s\n", problems.status().ToString().c_str());
            std::exit(1);
        }
        counters_ = *std::move(counters);
        engine_ =
            std::make_unique<Engine>(*counters_, Snapshot::prepare(policy, directory, start.mono));
        for (std::size_t i = 0; i < workspaces; ++i) {
            tokens_.push_back("Bearer pk_live_4f9a1c2b7d_" + std::to_string(i));
        }
        for (std::size_t i = 0; i < visitors; ++i) {
            addresses_.push_back("198.51." + std::to_string(i / 256) + "." +
                                 std::to_string(i % 256));
        }
    }

    // One request from arrival to settlement; true when it was admitted.
    bool decide(std::uint64_t n) {
        const Now now = later(start, std::chrono::milliseconds(n));
        headers_[2].value = tokens_[n % workspaces];
        headers_[7].value = addresses_[n * 7 % visitors];
        engine_->begin(*exchange_,
                       {.method = "GET",
                        .target = "/v1/availability?from=2026-11-01&to=2026-11-30",
                        .headers = headers_,
                        .peer = peer_,
                        .id = "7c9e66797425"},
                       now);
        const bool admitted = exchange_->decision.kind == Decision::Kind::admit;
        engine_->finish(*exchange_, {.kind = Ending::Kind::answered, .status = 200}, now);
        return admitted;
    }

private:
    std::unique_ptr<Counters> counters_;
    std::unique_ptr<Engine> engine_;
    std::unique_ptr<Exchange> exchange_ = std::make_unique<Exchange>();
    std::vector<std::string> tokens_;
    std::vector<std::string> addresses_;
    Peer peer_{IpAddress::parse("127.0.0.1")};
    std::vector<Header> headers_ = {{"Host", "api.example"},
                                    {"User-Agent", "Mozilla/5.0 (X11; Linux x86_64)"},
                                    {"Authorization", ""},
                                    {"Accept", "application/json"},
                                    {"Accept-Language", "en-GB,en;q=0.7"},
                                    {"Origin", "https://shop.example"},
                                    {"Referer", "https://shop.example/book"},
                                    {"X-Forwarded-For", ""}};
};

void run(benchmark::State& state, Variant variant) {
    Bench bench(variant);
    std::uint64_t n = 0;
    std::uint64_t admitted = 0;
    for (; n < 2 * visitors; ++n) {
        bench.decide(n);
    }
    const std::uint64_t before = testing::allocations.load();
    for (auto _ : state) {
        admitted += bench.decide(n++) ? 1 : 0;
    }
    const auto rounds = static_cast<double>(state.iterations());
    state.counters["allocations"] =
        static_cast<double>(testing::allocations.load() - before) / rounds;
    state.counters["admitted"] = static_cast<double>(admitted) / rounds;
}

void booking_decision(benchmark::State& state) {
    run(state, {});
}
void growth(benchmark::State& state) {
    run(state, {.more_limits = state.range(0)});
}
void no_ledger_rule(benchmark::State& state) {
    run(state, {.ledger_rules = false});
}

BENCHMARK(booking_decision)->Name("BookingDecision");
BENCHMARK(no_ledger_rule)->Name("NoLedgerRule");
BENCHMARK(growth)->Name("Growth")->Arg(10)->Arg(200);

}  // namespace
}  // namespace ration

BENCHMARK_MAIN();
