// A world for tests of whole decisions: real policy text, memory counters, a clock that moves only
// when told.
//
//   World world(policy_yaml, directory_yaml);
//   Reply reply = world.ask({.path = "/v1/quote", .bearer = "pk_1"});
//   EXPECT_TRUE(reply.admitted);
//   world.clock.advance(std::chrono::seconds(1));
//
// `ask` is a request whose upstream answers 200 at once; `begin` leaves it in flight. Bad policy or
// directory text stops the test program with the parser's own words. One thread, save where a test
// gives each thread an Exchange of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/manual_clock.h"
#include "engine/engine.h"
#include "ration/counters.h"

namespace ration::testing {

using Fields = std::vector<std::pair<std::string, std::string>>;

// One request as a test writes it.
struct Ask {
    std::string method = "GET";
    std::string path = "/";
    std::string bearer = "";           // Authorization: Bearer <this>, unless empty
    std::string peer = "203.0.113.7";  // "unix": a Unix socket
    Fields headers = {};
};

// How it came out: ration's own answer, or what an admitted request's answer gets added.
struct Reply {
    bool admitted = false;
    int status = 0;
    Fields headers = {};
    std::string body = "";
    std::string rule = "";  // the binding rule's name, empty: none
    Decision decision = {};

    // The value of that field, "" when absent; fails the test when it occurs twice.
    [[nodiscard]] std::string header(std::string_view name) const;
    [[nodiscard]] bool has(std::string_view name) const;
    // Retry-After as a number, nullopt when absent.
    [[nodiscard]] std::optional<int> retry_after() const;
};

// Counters that go wrong on command and otherwise pass on to others.
class FaultyCounters final : public Counters {
public:
    explicit FaultyCounters(Counters& behind) : behind_(behind) {}

    std::atomic<bool> down{false};
    std::atomic<bool> nonsense{false};  // answers that contradict themselves
    std::atomic<std::uint64_t> calls{0};

    void apply(std::span<const Transaction> transactions, Now now,
               std::span<Outcome> outcomes) override;
    void sweep(Now now, std::size_t budget) override { behind_.sweep(now, budget); }
    [[nodiscard]] CounterStats stats() const override { return behind_.stats(); }

private:
    Counters& behind_;
};

struct WorldOptions {
    Now start = {Mono(std::chrono::hours(1)), Wall(std::chrono::seconds(1'800'000'000))};
    bool with_local = false;  // stand-in counters for `store_down: local`
    unsigned replicas = 1;
    Policy::Environment environment = nullptr;
};

// A request in flight: keeps its own bytes. Ended as a client that left when dropped.
class Flight {
public:
    Flight(Engine& engine, Ask ask, std::string id, Now now);

    [[nodiscard]] const Exchange& exchange() const { return exchange_; }
    [[nodiscard]] Reply reply() const;
    void finish(Ending ending, Now now) {
        if (ending.kind == Ending::Kind::answered) {
            engine_.answered(exchange_, ending.status, now);
        }
        engine_.finish(exchange_, ending, now);
    }

private:
    Engine& engine_;
    Ask ask_;
    std::string id_;
    std::vector<Header> headers_;
    Exchange exchange_;
};

class World {
public:
    World(std::string_view policy, std::string_view directory, WorldOptions options = {});

    ManualClock clock;

    [[nodiscard]] Engine& engine() { return *engine_; }
    [[nodiscard]] FaultyCounters& faults() { return *faulty_; }
    [[nodiscard]] Counters& counters() { return *memory_; }
    [[nodiscard]] Now now() const { return clock.now(); }

    Reply ask(const Ask& ask);
    // The same `times` over; the last reply.
    Reply ask(const Ask& ask, int times);
    // How many of `times` are admitted.
    int admitted(const Ask& ask, int times);
    [[nodiscard]] std::unique_ptr<Flight> begin(const Ask& ask);
    void end(Flight& flight, int status = 200, const Fields& response_headers = {});
    void reload(std::string_view policy, std::string_view directory);

private:
    std::string next_id();

    std::unique_ptr<Counters> memory_;
    std::unique_ptr<Counters> local_;
    std::unique_ptr<FaultyCounters> faulty_;
    std::unique_ptr<Engine> engine_;
    Policy::Environment environment_;
    std::uint64_t sent_ = 0;
};

[[nodiscard]] std::shared_ptr<const Policy> read_policy(std::string_view text,
                                                        Policy::Environment environment = nullptr);
// An empty text is a directory of nobody.
[[nodiscard]] std::shared_ptr<const Directory> read_directory(std::string_view text);

// A file of the source tree, as text.
[[nodiscard]] std::string source_file(std::string_view path);

}  // namespace ration::testing
