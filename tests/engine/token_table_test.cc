// Tokens made at run time: their secrets, their table, and what a request with one is.
#include "engine/token_table.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "engine/harness.h"

namespace ration::testing {
namespace {

using std::chrono::seconds;

// Different bytes at each call, the same in each run.
void count_up(std::span<std::uint8_t> out) {
    static std::atomic<std::uint8_t> next{1};
    const std::uint8_t seed = next++;
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = static_cast<std::uint8_t>(seed * 31 + i * 7);
    }
}

NewToken token_of(std::string owner, std::int64_t per_minute) {
    NewToken made = make_token("axp_", count_up);
    made.token.kind = "personal_token";
    made.token.owner_kind = "user";
    made.token.owner = std::move(owner);
    made.token.numbers = {{"rate_limit_per_min", per_minute}};
    return made;
}

constexpr const char* policy = R"(
policy: p
unmatched: forward
identify:
  credentials: {personal_token: {bearer: axp_*}}
  accepts: {else: [personal_token]}
limits:
  - {name: tokens, credentials: [personal_token], per: [credential], headers: x_ratelimit,
     fixed_window: {limit: credential.rate_limit_per_min, every: minute, count: attempts}}
  - {name: plans, per: [account], token_bucket: account.plan.calls per minute}
)";
constexpr const char* directory = R"(
entities:
  plan: {small: {calls: 3}}
  account: {acc_1: {plan: small}}
  user: {u_ana: {account: acc_1}}
credentials:
  axp_of_the_file: {kind: personal_token, user: u_ana}
)";

TEST(NewTokens, AreTheirPrefixAndRandomBytesInAUrlsAlphabet) {
    std::set<std::string> secrets;
    std::set<std::string> ids;
    for (int i = 0; i < 100; ++i) {
        const NewToken made = make_token(
            "axp_", [](std::span<std::uint8_t> out) { randombytes_buf(out.data(), out.size()); });
        EXPECT_EQ(made.secret.size(), 4 + issued_random_characters);
        EXPECT_EQ(
            made.secret.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                          "0123456789-_"),
            std::string::npos);
        EXPECT_TRUE(made.secret.starts_with("axp_"));
        EXPECT_EQ(made.token.digest, digest_of(made.secret));
        EXPECT_EQ(made.token.id.size(), 20U);
        secrets.insert(made.secret);
        ids.insert(made.token.id);
    }
    EXPECT_EQ(secrets.size(), 100U);
    EXPECT_EQ(ids.size(), 100U);
}

TEST(NewTokens, HaveTheirBytesEncodedAsRfc4648Says) {
    const NewToken zero = make_token("x_", [](std::span<std::uint8_t> out) {
        std::fill(out.begin(), out.end(), std::uint8_t{0});
    });
    EXPECT_EQ(zero.secret, "x_" + std::string(43, 'A'));
    const NewToken ones = make_token("x_", [](std::span<std::uint8_t> out) {
        std::fill(out.begin(), out.end(), std::uint8_t{0xff});
    });
    EXPECT_EQ(ones.secret, "x_" + std::string(42, '_') + "8");
    EXPECT_EQ(ones.token.id, "tok_ffffffffffffffff");
}

TEST(TokenTable, ServesBesideTheDirectory) {
    TokenTable table;
    World world(policy, directory);
    world.engine().use_issued(&table);
    const NewToken made = token_of("u_ana", 2);
    EXPECT_EQ(world.ask({.bearer = made.secret}).status, 401);
    ASSERT_TRUE(table.add(made.token));
    EXPECT_EQ(world.ask({.bearer = made.secret}).header("X-RateLimit-Limit"), "2");
    EXPECT_EQ(world.ask({.bearer = made.secret}).header("X-RateLimit-Remaining"), "0");
    EXPECT_EQ(world.ask({.bearer = made.secret}).status, 429);
    const Reply of_file = world.ask({.bearer = "axp_of_the_file"});
    EXPECT_EQ(of_file.header("X-RateLimit-Limit"), "60") << "a window of its own";
    EXPECT_EQ(world.ask({.bearer = "axp_of_the_file"}).rule, "plans")
        << "but one account: 2 calls were the token's";
    ASSERT_TRUE(table.remove(made.token.id));
    EXPECT_EQ(world.ask({.bearer = made.secret}).status, 401) << "from the next request on";
    EXPECT_FALSE(table.remove(made.token.id));
}

TEST(TokenTable, KeepsTheKindApart) {
    TokenTable table;
    NewToken made = token_of("u_ana", 2);
    made.token.kind = "team_key";
    table.add(made.token);
    World world(policy, directory);
    world.engine().use_issued(&table);
    EXPECT_EQ(world.ask({.bearer = made.secret}).status, 401);
}

TEST(TokenTable, ARequestUnderWayOutlivesTheRevocation) {
    TokenTable table;
    World world(policy, directory);
    world.engine().use_issued(&table);
    const NewToken made = token_of("u_ana", 5);
    table.add(made.token);
    const auto flight = world.begin({.bearer = made.secret});
    table.remove(made.token.id);
    world.reload(policy, "");
    EXPECT_EQ(flight->exchange().credential->entity("user")->id, "u_ana");
    world.end(*flight);
}

TEST(TokenTable, FollowsTheDirectoryOverReloads) {
    TokenTable table;
    World world(policy, directory);
    world.engine().use_issued(&table);
    const NewToken made = token_of("u_ana", 1000);
    table.add(made.token);
    EXPECT_EQ(world.admitted({.bearer = made.secret}, 10), 3) << "the plan's calls";
    for (int calls = 4; calls < 40; ++calls) {
        world.reload(policy, "entities:\n  plan: {small: {calls: " + std::to_string(calls) +
                                 "}}\n  account: {acc_1: {plan: small}}\n  user: {u_ana: {account: "
                                 "acc_1}}\ncredentials: {}\n");
        EXPECT_EQ(world.admitted({.bearer = made.secret}, 3), 1) << calls;
    }
    world.reload(policy, "");
    EXPECT_EQ(world.admitted({.bearer = made.secret}, 3), 3) << "no account, no plan";
}

TEST(TokenTable, AnOwnerWhoLeftTheDirectoryTakesTheTokenAlong) {
    TokenTable table;
    World world(policy, directory);
    world.engine().use_issued(&table);
    const NewToken made = token_of("u_ana", 1000);
    table.add(made.token);
    EXPECT_TRUE(world.ask({.bearer = made.secret}).admitted);
    EXPECT_EQ(table.take_uses(10).size(), 1U);
    world.reload(policy, "entities:\n  user: {u_ben: {}}\ncredentials: {}\n");
    EXPECT_EQ(world.ask({.bearer = made.secret}).status, 401);
    EXPECT_TRUE(table.take_uses(10).empty()) << "that was no use of it";
    world.reload(policy, directory);
    EXPECT_TRUE(world.ask({.bearer = made.secret}).admitted);
    world.reload(policy, "");
    EXPECT_TRUE(world.ask({.bearer = made.secret}).admitted) << "users are not listed there";
}

TEST(TokenTable, ListsInPagesAndByOwner) {
    TokenTable table;
    std::set<std::string> ids;
    for (int i = 0; i < 5; ++i) {
        const NewToken made = token_of(i % 2 == 0 ? "u_ana" : "u_ben", 60);
        ids.insert(made.token.id);
        ASSERT_TRUE(table.add(made.token));
        EXPECT_FALSE(table.add(made.token)) << "it is there";
    }
    EXPECT_EQ(table.size(), 5U);
    const auto first = table.list({.limit = 3});
    ASSERT_EQ(first.size(), 3U);
    EXPECT_EQ(first[0].id, *ids.begin());
    EXPECT_EQ(table.list({.after = first[2].id, .limit = 3}).size(), 2U);
    EXPECT_EQ(table.list({.owner = "u_ana"}).size(), 3U);
    EXPECT_TRUE(table.list({.kind = "team_key"}).empty());
    EXPECT_EQ(table.get(first[0].id)->owner_kind, "user");
    EXPECT_FALSE(table.get("tok_none").has_value());
}

TEST(TokenTable, HoldsAtTheBoundAndNotOnePastIt) {
    TokenTable table(3);
    std::vector<IssuedToken> kept;
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(table.full());
        kept.push_back(token_of("u_ana", 60).token);
        EXPECT_TRUE(table.add(kept.back()));
    }
    EXPECT_TRUE(table.full());
    const NewToken fourth = token_of("u_ana", 60);
    EXPECT_FALSE(table.add(fourth.token));
    EXPECT_FALSE(table.get(fourth.token.id).has_value());
    ASSERT_TRUE(table.remove(kept[0].id));
    EXPECT_TRUE(table.add(fourth.token));
    EXPECT_FALSE(TokenTable(2).load(kept));
    EXPECT_TRUE(TokenTable(3).load(kept));
}

TEST(TokenTable, NotesWhenATokenWasUsedLast) {
    TokenTable table;
    World world(policy, directory);
    world.engine().use_issued(&table);
    const NewToken made = token_of("u_ana", 60);
    table.add(made.token);
    EXPECT_TRUE(table.take_uses(10).empty());
    world.ask({.bearer = made.secret}, 3);
    world.clock.advance(seconds(7));
    world.ask({.bearer = made.secret});
    EXPECT_EQ(table.get(made.token.id)->last_used, world.now().wall);
    const auto uses = table.take_uses(10);
    ASSERT_EQ(uses.size(), 1U);
    EXPECT_EQ(uses[0], std::pair(made.token.id, world.now().wall));
    EXPECT_TRUE(table.take_uses(10).empty());
    world.ask({.bearer = made.secret});
    EXPECT_EQ(table.take_uses(10).size(), 1U);
}

TEST(TokenTable, LooksAlikesUpForNobody) {
    TokenTable table;
    World world(policy, directory);
    world.engine().use_issued(&table);
    const NewToken made = token_of("u_ana", 60);
    table.add(made.token);
    for (std::size_t i = 0; i < made.secret.size(); ++i) {
        std::string other = made.secret;
        other[i] = other[i] == 'A' ? 'B' : 'A';
        EXPECT_EQ(world.ask({.bearer = other}).status, 401) << other;
    }
    for (const std::string& other :
         {made.secret + "A", made.secret.substr(0, made.secret.size() - 1), std::string("axp_")}) {
        EXPECT_EQ(world.ask({.bearer = other}).status, 401) << other;
    }
}

TEST(TokenTable, ThreadsMakeUseAndRevokeAtOnce) {
    TokenTable table;
    World world(policy, directory);
    world.engine().use_issued(&table);
    const NewToken lasting = token_of("u_ana", 1000);
    table.add(lasting.token);
    std::atomic<bool> over{false};
    std::vector<std::thread> readers;
    for (int t = 0; t < 3; ++t) {
        readers.emplace_back([&, t] {
            int n = 0;
            do {
                Flight flight(world.engine(), {.bearer = lasting.secret},
                              std::to_string(t * 1'000'000 + n++), world.now());
                EXPECT_NE(flight.exchange().credential, nullptr);
            } while (!over);
        });
    }
    for (int i = 0; i < 200; ++i) {
        const NewToken passing = token_of("u_ben", 60);
        ASSERT_TRUE(table.add(passing.token));
        static_cast<void>(table.take_uses(10));
        static_cast<void>(table.list({.limit = 5}));
        ASSERT_TRUE(table.remove(passing.token.id));
    }
    over = true;
    for (std::thread& reader : readers) {
        reader.join();
    }
}

}  // namespace
}  // namespace ration::testing
