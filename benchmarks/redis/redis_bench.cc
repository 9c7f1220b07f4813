// Decisions on Redis counters in a closed loop: two buckets each, keys at random, so many in flight
// on each of so many threads.
//
//   redis_bench unix:/path/to/socket DEPTH THREADS SECONDS
//
// Prints one JSON object: decisions a second, and the CPU microseconds of this process for each.
// With `memory` in the place of the address the memory counters do the same, one at a time.
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "counters/redis/link.h"

namespace ration {
namespace {

constexpr std::uint64_t keys = 100'000;

struct Pair {
    std::array<std::string, 2> names;
    std::array<Charge, 2> charges;
    Outcome outcome;

    explicit Pair(const std::array<LimitRef, 2>& limits) {
        for (std::size_t i = 0; i < charges.size(); ++i) {
            charges[i] = {.key = {}, .rule_bytes = 7, .limit = limits[i]};
        }
    }
    void choose(std::uint64_t& state) {
        for (std::size_t i = 0; i < charges.size(); ++i) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            names[i] = (i == 0 ? "budget:" : "caller:") + std::to_string((state >> 33) % keys);
            charges[i].key = names[i];
        }
    }
};

std::array<LimitRef, 2> limits() {
    return {*LimitRef::of(token_bucket(300, std::chrono::minutes(1))),
            *LimitRef::of(token_bucket(60, std::chrono::minutes(1)))};
}

// Keeps its place in the pipeline filled.
class Asker final : public CounterWaiter {
public:
    Asker(net::Loop& loop, RedisLink& link, std::uint64_t seed, std::atomic<std::uint64_t>& done)
        : loop_(loop), link_(link), pair_(limits()), state_(seed), done_(done) {}

    void ask() {
        pair_.choose(state_);
        const Transaction transaction{.charges = pair_.charges};
        if (!link_.ask({&transaction, 1}, loop_.now(), {&pair_.outcome, 1}, *this)) {
            std::fprintf(stderr, "no answer from Redis\n");
            std::exit(1);
        }
    }
    void counters_answered() override {
        if (pair_.outcome.status != absl::StatusCode::kOk) {
            std::fprintf(stderr, "a decision got no answer\n");
            std::exit(1);
        }
        done_.fetch_add(1, std::memory_order_relaxed);
        ask();
    }

private:
    net::Loop& loop_;
    RedisLink& link_;
    Pair pair_;
    std::uint64_t state_;
    std::atomic<std::uint64_t>& done_;
};

double cpu_micros() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
           static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

void report(std::uint64_t done, double cpu, double seconds) {
    std::printf("{\"rate\": %.0f, \"cpu_us\": %.3f}\n", static_cast<double>(done) / seconds,
                cpu / static_cast<double>(done));
}

void run_memory(double seconds) {
    const SystemClock clock;
    auto counters = *open_memory_counters({.max_bytes = 64 << 20});
    Pair pair(limits());
    std::uint64_t state = 1;
    std::uint64_t done = 0;
    const double cpu = cpu_micros();
    const Mono start = clock.now().mono;
    Now now = clock.now();
    while (now.mono - start < std::chrono::duration<double>(seconds)) {
        for (int i = 0; i < 1000; ++i) {
            pair.choose(state);
            pair.outcome = counters->apply_one({.charges = pair.charges}, now);
        }
        done += 1000;
        now = clock.now();
    }
    report(done, cpu_micros() - cpu, seconds);
}

void run_redis(const std::string& address, std::size_t depth, int threads, double seconds) {
    RedisOptions options;
    options.host = address;
    options.deadline = std::chrono::seconds(5);
    const std::shared_ptr<RedisStore> store = *RedisStore::open(options);
    std::atomic<std::uint64_t> done{0};
    std::atomic<bool> stop{false};
    std::vector<std::jthread> running;
    for (int thread = 0; thread < threads; ++thread) {
        running.emplace_back([&, thread] {
            const SystemClock clock;
            net::Loop loop(clock);
            RedisLink link(loop, store);
            if (!loop.open().ok() || !link.open().ok()) {
                std::exit(1);
            }
            std::vector<std::unique_ptr<Asker>> askers;
            for (std::size_t i = 0; i < depth; ++i) {
                askers.push_back(std::make_unique<Asker>(
                    loop, link, 1 + i + 1000 * static_cast<std::uint64_t>(thread), done));
                askers.back()->ask();
            }
            std::jthread watch([&] {
                while (!stop) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                }
                loop.stop();
            });
            loop.run();
        });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // warm
    const std::uint64_t before = done;
    const double cpu = cpu_micros();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    const std::uint64_t after = done;
    report(after - before, cpu_micros() - cpu, seconds);
    std::fflush(stdout);
    std::_Exit(0);  // what is in flight does not matter any more
}

}  // namespace
}  // namespace ration

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fprintf(stderr, "redis_bench unix:/socket|memory DEPTH THREADS SECONDS\n");
        return 2;
    }
    const std::string address = argv[1];
    if (address == "memory") {
        ration::run_memory(std::atof(argv[4]));
    } else {
        ration::run_redis(address, static_cast<std::size_t>(std::atoi(argv[2])), std::atoi(argv[3]),
                          std::atof(argv[4]));
    }
    return 0;
}
