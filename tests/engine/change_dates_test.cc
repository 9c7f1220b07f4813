// A reload dates only what it changes: between a change of numbers and the next request, reloads
// that change other things make no difference to anybody.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "engine/harness.h"

namespace ration {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Ask;
using testing::Reply;
using testing::World;

std::string policy_of(std::string_view numbers, std::string_view more = "") {
    return cat(R"(policy: p
routes: {r: GET /r, s: GET /s, team: "GET /teams/{teamId}"}
identify:
  credentials: {key: {bearer: k_*}}
  attributes: {team: path.teamId}
limits:
)",
               more, "  - {name: l, routes: [r, team], headers: x_ratelimit, ", numbers, "}\n");
}

// What a directory says of two keys, their plans and teams, with as many other keys.
struct Numbers {
    int key = 5;
    int other_key = 5;
    int plan = 5;
    int other_plan = 5;
    int team = 5;
    int other_team = 5;
};

std::string directory_of(const Numbers& numbers, int others = 0) {
    std::string text =
        cat("entities:\n  plan: {a: {calls: ", numbers.plan, "}, b: {calls: ", numbers.other_plan,
            "}}\n  team: {t: {calls: ", numbers.team, "}, u: {calls: ", numbers.other_team,
            "}}\n  account: {x: {plan: a}, y: {plan: b}}\ncredentials:\n"
            "  k_a: {kind: key, account: x, calls: ",
            numbers.key, "}\n  k_b: {kind: key, account: y, calls: ", numbers.other_key, "}\n");
    for (int i = 0; i < others; ++i) {
        text += cat("  k_other_", i, ": {kind: key, account: y, calls: 7}\n");
    }
    return text;
}

Ask ask_of(std::string_view path = "/r") {
    return {.path = std::string(path), .bearer = "k_a"};
}

// What callers see of an answer.
std::string seen(const Reply& reply) {
    return cat(reply.status, " ", reply.header("X-RateLimit-Remaining"), " ",
               reply.header("X-RateLimit-Reset"), " ",
               reply.retry_after() ? cat(*reply.retry_after()) : "", " ",
               reply.decision.wait ? cat(reply.decision.wait->count()) : "");
}

struct Rules {
    std::string policy;
    std::string directory;
};

struct Change {
    const char* name;
    Rules before;
    Rules after;
    std::vector<Rules> unrelated;  // as `after`, but for what has nothing to do with the caller
    const char* path = "/r";
};

void expect_no_difference(const Change& change, seconds pause) {
    SCOPED_TRACE(cat(change.name, ", paused ", pause.count(), " s"));
    World quiet(change.before.policy, change.before.directory);
    World busy(change.before.policy, change.before.directory);
    std::vector<std::string> expected;
    std::vector<std::string> got;
    const auto both = [&](auto step) {
        step(quiet, expected);
        step(busy, got);
    };
    const auto ask = [&](World& world, std::vector<std::string>& into) {
        into.push_back(seen(world.ask(ask_of(change.path))));
    };
    for (int i = 0; i < 6; ++i) {
        both(ask);
    }
    both([](World& world, auto&) { world.clock.advance(milliseconds(2300)); });
    both([&](World& world, auto&) { world.reload(change.after.policy, change.after.directory); });
    both(ask);
    for (int round = 0; round < 4; ++round) {
        both([&](World& world, auto&) { world.clock.advance(pause); });
        for (const Rules& rules : change.unrelated) {
            busy.reload(rules.policy, rules.directory);
        }
        both(ask);
        both(ask);
    }
    EXPECT_EQ(got, expected);
    EXPECT_NE(expected.back().substr(0, 4), "404 ");
}

TEST(ChangeDates, AReloadOfSomethingElseMakesNoDifference) {
    const char* const written[][2] = {
        {"per: [credential], token_bucket: {rate: 60/min, burst: 5}",
         "per: [credential], token_bucket: {rate: 2/h, burst: 5}"},
        {"per: [credential], token_bucket: {rate: 2/h, burst: 5}",
         "per: [credential], token_bucket: {rate: 1/s, burst: 5}"},
        {"per: [credential], token_bucket: 5/h", "per: [credential], fixed_window: 5/min"},
        {"per: [credential], fixed_window: 5/min", "per: [credential], fixed_window: 5/h"},
        {"per: [credential], fixed_window: 5/h", "per: [credential], fixed_window: 9/min"},
        {"per: [credential], sliding_counter: 5/min", "per: [credential], sliding_counter: 5/h"},
        {"per: [credential], sliding_counter: 5/h", "per: [credential], sliding_counter: 6/min"},
        {"per: [credential], sliding_window: 5/min", "per: [credential], sliding_window: 5/h"},
        {"per: [credential], sliding_window: 5/h", "per: [credential], token_bucket: 5/min"},
        {"per: [credential], token_bucket: {r: 5/min, else: 5/s}",
         "per: [credential], token_bucket: {r: 5/h, else: 5/s}"}};
    const std::string directory = directory_of({});
    for (const auto& [before, after] : written) {
        const Rules changed{policy_of(after), directory};
        // Another name in front moves every index.
        const std::string other = "  - {name: other, per: [address], token_bucket: 1000/s}\n";
        const Change change{after,
                            {policy_of(before), directory},
                            changed,
                            {{changed.policy, directory_of({.other_key = 9}, 3)},
                             {policy_of(after, other), directory},
                             changed}};
        for (const seconds pause : {seconds(1), seconds(20), seconds(300)}) {
            expect_no_difference(change, pause);
        }
    }
}

TEST(ChangeDates, AnAttributeChangesForItsOwnSubjectsAlone) {
    const struct {
        const char* attribute;
        Numbers after;
        Numbers others;
        const char* path;
    } rows[] = {
        {"credential.calls", {.key = 3}, {.key = 3, .other_key = 9, .plan = 8}, "/r"},
        {"account.plan.calls", {.plan = 3}, {.plan = 3, .other_plan = 9, .team = 8}, "/r"},
        {"account.plan.calls", {.plan = 50}, {.plan = 50, .other_plan = 9, .team = 8}, "/r"},
        {"team.calls", {.team = 3}, {.key = 9, .team = 3, .other_team = 9}, "/teams/t"}};
    for (const auto& row : rows) {
        for (const std::string kind : {"token_bucket: ", "sliding_counter: "}) {
            const bool team = std::string_view(row.attribute).starts_with("team");
            const std::string policy = policy_of(cat(team ? "per: [team], " : "per: [credential], ",
                                                     kind, row.attribute, " per min"));
            const Change change{row.attribute,
                                {policy, directory_of({})},
                                {policy, directory_of(row.after)},
                                {{policy, directory_of(row.others)},
                                 {policy, directory_of(row.others, 5)},
                                 {policy, directory_of(row.after, 2)}},
                                row.path};
            for (const seconds pause : {seconds(1), seconds(7), seconds(90)}) {
                expect_no_difference(change, pause);
            }
        }
    }
}

// The plan that an account has is as good as the number in it.
TEST(ChangeDates, AnotherPlanIsAChange) {
    const std::string policy =
        policy_of("per: [credential], token_bucket: account.plan.calls per min");
    std::string moved = directory_of({.other_plan = 60});
    moved.replace(moved.find("x: {plan: a}"), 12, "x: {plan: b}");
    World world(policy, directory_of({.other_plan = 60}));
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(world.ask(ask_of()).status, 200);
    }
    EXPECT_EQ(world.ask(ask_of()).decision.wait, seconds(12));
    world.clock.advance(seconds(6));
    world.reload(policy, moved);
    // Half a unit was earned at 5 a minute; the other half takes half a second at 60.
    world.clock.advance(milliseconds(499));
    world.reload(policy, moved + "  k_more: {kind: key, account: y, calls: 1}\n");
    // It holds 60 now, of which 5 are owed.
    EXPECT_EQ(world.ask(ask_of()).header("X-RateLimit-Remaining"), "54");
    world.clock.advance(milliseconds(1));
    EXPECT_EQ(world.ask(ask_of()).header("X-RateLimit-Remaining"), "54");
}

// What a request of the old rules is charged at its end reckons from the change, too.
TEST(ChangeDates, ARequestOfTheOldRulesReckonsFromTheChange) {
    const auto numbers = [](std::string_view period) {
        return policy_of(cat("per: [credential], token_bucket: 60 per ", period,
                             ", cost: {units: 1, settle: {header: X-Cost}}"));
    };
    World world(numbers("hour"), directory_of({}));
    EXPECT_EQ(world.admitted(ask_of(), 59), 59);
    auto flight = world.begin(ask_of());
    world.clock.advance(seconds(1801));
    world.reload(numbers("3000 days"), directory_of({}));
    EXPECT_EQ(world.ask(ask_of()).header("X-RateLimit-Remaining"), "29");
    world.end(*flight, 200, {{"X-Cost", "2"}});
    EXPECT_EQ(world.ask(ask_of()).header("X-RateLimit-Remaining"), "27");
}

}  // namespace
}  // namespace ration
