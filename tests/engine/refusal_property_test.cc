// Properties of whole decisions over random policies, times and costs: which limit speaks for a
// refusal, that it tells the truth, that a refused request leaves no trace, and that every ending
// settles once.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>

#include "engine/harness.h"

namespace ration::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Counters that say what a test wrote down.
class ScriptedCounters final : public Counters {
public:
    std::vector<Level> levels;

    void apply(std::span<const Transaction> transactions, Now /*now*/,
               std::span<Outcome> outcomes) override {
        std::size_t next = 0;
        for (std::size_t t = 0; t < transactions.size(); ++t) {
            Outcome& outcome = outcomes[t];
            outcome = {};
            outcome.admitted = true;
            for (std::size_t i = 0; i < transactions[t].charges.size(); ++i) {
                outcome.levels[outcome.count++] = levels[next];
                outcome.admitted &= levels[next++].verdict == Verdict::admitted;
            }
        }
    }
    void sweep(Now, std::size_t) override {}
    [[nodiscard]] CounterStats stats() const override { return {}; }
};

std::string policy_of(const std::vector<std::string>& limits) {
    std::string text = "policy: p\nroutes: {all: ANY /**}\nlimits:\n";
    for (std::size_t i = 0; i < limits.size(); ++i) {
        text += "  - {name: l" + std::to_string(i) + ", per: [address], " + limits[i] + "}\n";
    }
    return text;
}

rc::Gen<Level> any_level() {
    return rc::gen::map(rc::gen::tuple(rc::gen::inRange(0, 6), rc::gen::inRange(0, 5)),
                        [](const std::tuple<int, int>& drawn) {
                            Level level;
                            level.limit = 10;
                            const int verdict = std::get<0>(drawn);
                            if (verdict == 0) {
                                level.verdict = Verdict::never;
                            } else if (verdict <= 2) {
                                level.verdict = Verdict::refused;
                                level.wait = nanoseconds(1 + std::get<1>(drawn));
                            } else {
                                level.remaining = static_cast<std::uint64_t>(std::get<1>(drawn));
                            }
                            return level;
                        });
}

// The same rule said another way: sort by (never first, longer wait first, policy order).
std::optional<std::size_t> spokesman(const std::vector<Level>& levels) {
    for (std::size_t i = 0; i < levels.size(); ++i) {
        if (levels[i].verdict == Verdict::never) {
            return i;
        }
    }
    std::optional<std::size_t> best;
    for (std::size_t i = levels.size(); i-- > 0;) {
        if (levels[i].verdict == Verdict::refused &&
            (!best || levels[i].wait >= levels[*best].wait)) {
            best = i;
        }
    }
    return best;
}

RC_GTEST_PROP(Refusal, IsOfTheLimitThatClearsLastAndShowsItAlone, ()) {
    const auto levels = *rc::gen::container<std::vector<Level>>(
        static_cast<std::size_t>(*rc::gen::inRange(1, 9)), any_level());
    std::vector<std::string> limits;
    std::vector<bool> declares;
    for (std::size_t i = 0; i < levels.size(); ++i) {
        declares.push_back(*rc::gen::arbitrary<bool>());
        limits.push_back(std::string("token_bucket: 10/min, headers: ") +
                         (declares[i] ? "x_ratelimit" : "none"));
    }
    ScriptedCounters counters;
    counters.levels = levels;
    Engine engine(counters,
                  Snapshot::prepare(read_policy(policy_of(limits)), read_directory(""), {}));
    const Flight flight(engine, {}, "id", {});
    const Reply reply = flight.reply();

    if (const auto by = spokesman(levels)) {
        RC_ASSERT(reply.status == 429);
        RC_ASSERT(reply.rule == "l" + std::to_string(*by));
        RC_ASSERT(reply.has("X-RateLimit-Limit") == declares[*by]);
        const bool never = levels[*by].verdict == Verdict::never;
        RC_ASSERT(reply.has("Retry-After") == !never);
        RC_ASSERT(reply.decision.wait.has_value() == !never);
        return;
    }
    RC_ASSERT(reply.admitted);
    RC_ASSERT(!reply.has("Retry-After"));
    std::optional<std::size_t> shown;
    for (std::size_t i = 0; i < levels.size(); ++i) {
        if (declares[i] && (!shown || levels[i].remaining < levels[*shown].remaining)) {
            shown = i;
        }
    }
    RC_ASSERT(reply.has("X-RateLimit-Remaining") == shown.has_value());
    if (shown) {
        RC_ASSERT(reply.rule == "l" + std::to_string(*shown));
        RC_ASSERT(reply.header("X-RateLimit-Remaining") ==
                  std::to_string(levels[*shown].remaining));
    }
}

// Limits of which a refusal is free.
std::string any_free_limit() {
    const int amount = *rc::gen::inRange(1, 6);
    const int period = *rc::gen::inRange(1, 20);
    const auto rate = std::to_string(amount) + " per " + std::to_string(period) + "s";
    const std::string kind = *rc::gen::element<std::string>("token_bucket", "fixed_window",
                                                            "sliding_window", "sliding_counter");
    const int cost = *rc::gen::inRange(1, 4);
    return kind + ": " + rate + ", headers: x_ratelimit, cost: " + std::to_string(cost);
}

// Units in use of every charge of the flight, without changing them.
std::vector<std::uint64_t> used(World& world, const Exchange& exchange) {
    auto charges = exchange.charges;
    for (Charge& charge : charges) {
        charge.op = ChargeOp::observe;
    }
    const Outcome outcome = world.counters().apply_one(
        {.charges = std::span(charges).first(exchange.charge_count)}, world.now());
    std::vector<std::uint64_t> units;
    for (std::size_t i = 0; i < outcome.count; ++i) {
        units.push_back(outcome.levels[i].used);
    }
    return units;
}

RC_GTEST_PROP(Refusal, TellsTheTrueWaitAndLeavesNoTrace, ()) {
    std::vector<std::string> limits;
    const int count = *rc::gen::inRange(1, 5);
    for (int i = 0; i < count; ++i) {
        limits.push_back(any_free_limit());
    }
    World world(policy_of(limits), "");
    const auto probe = world.begin({});  // names the charges
    for (int step = 0; step < 30; ++step) {
        world.clock.advance(milliseconds(*rc::gen::inRange(0, 3000)));
        const auto before = used(world, probe->exchange());
        const Reply reply = world.ask({});
        if (reply.admitted) {
            continue;
        }
        RC_ASSERT(used(world, probe->exchange()) == before);
        if (!reply.decision.wait) {
            RC_ASSERT(!reply.has("Retry-After"));
            continue;
        }
        const Nanos wait = *reply.decision.wait;
        RC_ASSERT(wait > Nanos(0));
        RC_ASSERT(reply.retry_after() ==
                  static_cast<int>((wait + std::chrono::seconds(1) - Nanos(1)) /
                                   std::chrono::seconds(1)));
        world.clock.advance(wait - Nanos(1));
        RC_ASSERT(!world.ask({}).admitted);
        world.clock.advance(Nanos(1));
        const Reply after = world.ask({});
        RC_ASSERT(after.admitted);
    }
}

constexpr std::string_view settled_policy = R"(
policy: p
routes: {all: ANY /**}
limits:
  - {name: in flight, per: [address], concurrency: 4}
  - {name: units, per: [address], fixed_window: 1000 per 365 days, cost: {units: 5, settle: {header: X-Cost}}}
  - {name: shadow slots, per: [address], concurrency: 2, shadow: true}
)";

RC_GTEST_PROP(Settlement, HappensOnceWhateverTheEnding, ()) {
    World world(settled_policy, "");
    std::vector<std::unique_ptr<Flight>> flights;
    std::uint64_t owed = 0;
    int in_flight = 0;
    for (int step = 0; step < 40; ++step) {
        if (*rc::gen::arbitrary<bool>() || flights.empty()) {
            flights.push_back(world.begin({}));
            const bool admitted = flights.back()->reply().admitted;
            RC_ASSERT(admitted == (in_flight < 4 && owed + 5 <= 1000));
            if (!admitted) {
                flights.pop_back();
                continue;
            }
            ++in_flight;
            owed += 5;
            continue;
        }
        const auto which =
            static_cast<std::ptrdiff_t>(*rc::gen::inRange<std::size_t>(0, flights.size()));
        Flight& flight = *flights[static_cast<std::size_t>(which)];
        switch (*rc::gen::inRange(0, 5)) {
            case 0: {
                const auto cost = *rc::gen::inRange<std::uint64_t>(0, 400);
                world.end(flight, 200, {{"X-Cost", std::to_string(cost)}});
                owed = owed - 5 + cost;
                break;
            }
            case 1:
                world.end(flight, 500);
                break;
            case 2:
                flight.finish({.kind = Ending::Kind::timed_out}, world.now());
                break;
            case 3:
                flight.finish({.kind = Ending::Kind::lost}, world.now());
                break;
            default:
                break;  // dropped while open
        }
        if (*rc::gen::arbitrary<bool>() && !flight.exchange().open) {
            world.end(flight, 200, {{"X-Cost", "77"}});  // a second time: nothing happens
        }
        flights.erase(flights.begin() + which);
        --in_flight;
    }
    flights.clear();
    const auto probe = world.begin({});
    const Exchange& exchange = probe->exchange();
    const auto units = used(world, exchange);
    const bool admitted = probe->reply().admitted;
    RC_ASSERT(admitted == (owed + 5 <= 1000));
    RC_ASSERT(units[0] == (admitted ? 1U : 0U));
    RC_ASSERT(units[1] == owed + (admitted ? 5 : 0));
    RC_ASSERT(units[2] == 1U);  // the probe's own; shadow is charged whatever the others say
}

RC_GTEST_PROP(Keys, DifferentPartsNeverShareABucket, ()) {
    World world(R"(
policy: p
routes:
  r: ANY /r/{a}/{b}
limits:
  - {name: pair, per: [path.a, path.b, query.c, header.D], fixed_window: 1/min}
)",
                "");
    const auto text =
        rc::gen::container<std::string>(rc::gen::element('a', 'b', '1', '-', '.', '~'));
    const auto part = rc::gen::map(text, [](std::string drawn) { return "x" + drawn; });
    std::map<std::vector<std::string>, int> seen;
    for (int i = 0; i < 20; ++i) {
        const std::vector<std::string> parts = {*part, *part, *text, *text};
        const Reply reply = world.ask({.path = "/r/" + parts[0] + "/" + parts[1] + "?c=" + parts[2],
                                       .headers = {{"D", parts[3]}}});
        RC_ASSERT(reply.admitted == (seen[parts]++ == 0));
    }
}

}  // namespace
}  // namespace ration::testing
