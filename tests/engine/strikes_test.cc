// Strikes beside what the scenario files show: stores that fail, threads, keys of every length, and
// the book of blocks.
#include "engine/strikes.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/text.h"
#include "engine/block_book.h"
#include "engine/harness.h"

namespace ration::testing {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

std::string policy_with(const std::string& more) {
    return R"(
policy: p
routes: {login: POST /login, other: ANY /other}
identify: {address: {ipv6_prefix: 64}}
strikes:
  - {name: sign-ins, routes: [login], failures: 3 per 10 min, block: {first: 10 min, at_most: 1h}, blocks: [other], )" +
           more + "}\n";
}

const std::string per_address = policy_with("per: [address]");
const Ask login{.method = "POST", .path = "/login"};

int fail(World& world, const Ask& ask, int times) {
    int admitted = 0;
    for (int i = 0; i < times; ++i) {
        const auto flight = world.begin(ask);
        if (flight->reply().admitted) {
            ++admitted;
            world.end(*flight, 401);
        }
    }
    return admitted;
}

TEST(Strikes, ADroppedAttemptGivesItsPlaceBack) {
    World world(per_address, "");
    for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(world.begin(login)->reply().admitted);
    }
    EXPECT_EQ(fail(world, login, 5), 3);
}

TEST(Strikes, WithoutCountersTheRuleSaysWhatHappens) {
    World open(per_address, "");
    open.faults().down = true;
    EXPECT_EQ(fail(open, login, 5), 5);
    open.faults().down = false;
    EXPECT_EQ(fail(open, login, 5), 3) << "nothing was counted meanwhile";

    World closed(policy_with("per: [address], store_down: closed"), "");
    closed.faults().down = true;
    const Reply reply = closed.ask(login);
    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(reply.rule, "sign-ins");
}

TEST(Strikes, CountersThatFailBeforeTheAnswerLoseNothingElse) {
    World world(per_address, "");
    const auto flight = world.begin(login);
    world.faults().down = true;
    world.end(*flight, 401);
    world.faults().down = false;
    EXPECT_EQ(fail(world, login, 5), 2) << "its place stays taken, as a failure's does";
}

TEST(Strikes, TheStandInCountsByItself) {
    World world(policy_with("per: [address], store_down: local"), "", {.with_local = true});
    world.faults().down = true;
    EXPECT_EQ(fail(world, login, 5), 3);
    EXPECT_EQ(world.ask(login).decision.wait, Nanos(minutes(10)));
    world.faults().down = false;
    EXPECT_TRUE(world.ask(login).admitted);
}

TEST(Strikes, ThreadsThatGuessAtOnceGetTheThresholdAndNoMore) {
    for (int round = 0; round < 50; ++round) {
        World world(per_address, "");
        std::atomic<int> admitted{0};
        std::atomic<bool> go{false};
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] {
                while (!go) {
                }
                for (int i = 0; i < 10; ++i) {
                    Flight flight(world.engine(), login, std::to_string(t * 100 + i), world.now());
                    if (flight.reply().admitted) {
                        ++admitted;
                        flight.finish({Ending::Kind::answered, 401, {}}, world.now());
                    }
                }
            });
        }
        go = true;
        for (std::thread& thread : threads) {
            thread.join();
        }
        EXPECT_EQ(admitted, 3);
        EXPECT_EQ(world.ask(login).decision.wait, Nanos(minutes(10))) << "one block, not two";
    }
}

TEST(Strikes, NamesOfEveryLengthAreBlocked) {
    World world(policy_with("per: [header.X-Who]"), "");
    for (std::size_t size = 1; size<600; size += size> 150 && size < 260 ? 1 : 49) {
        Ask ask = login;
        ask.headers = {{"X-Who", std::string(size, 'n')}};
        EXPECT_EQ(fail(world, ask, 5), 3) << size;
        EXPECT_EQ(world.ask(ask).decision.wait, Nanos(minutes(10))) << size;
    }
}

TEST(Strikes, OnlyItsOwnBlockOutranksALongerWait) {
    World world(R"(
policy: p
routes: {login: POST /login}
limits: [{name: slow, per: [address], token_bucket: 1 per 1h}]
strikes: [{name: sign-ins, per: [address], failures: 1 per 10 min, block: 10 s, refuse: rate_limited}]
)",
                "");
    EXPECT_EQ(fail(world, login, 1), 1);
    const Reply reply = world.ask(login);
    EXPECT_EQ(reply.rule, "sign-ins");
    EXPECT_EQ(reply.retry_after(), 10);
}

// ---- the book ----

class Kept final : public BlockStore {
public:
    void keep(const Block& block) override { blocks[block.key] = block; }
    void drop(std::string_view key) override { blocks.erase(std::string(key)); }

    [[nodiscard]] std::vector<Block> all() const {
        std::vector<Block> list;
        for (const auto& [key, block] : blocks) {
            list.push_back(block);
        }
        return list;
    }

    std::map<std::string, Block> blocks;
};

TEST(BlockBook, ListsAndLifts) {
    World world(per_address, "");
    Kept kept;
    BlockBook book(world.engine(), &kept);
    world.engine().watch_blocks(&book);
    const Ask other{.method = "POST", .path = "/login", .peer = "2001:db8:1:2::99"};
    fail(world, login, 3);
    fail(world, other, 3);
    const auto listed = book.list(10, world.now().wall);
    ASSERT_EQ(listed.size(), 2U);
    EXPECT_EQ(listed[0].rule, "sign-ins");
    EXPECT_EQ(listed[0].subject, std::vector<std::string>{"2001:db8:1:2::"});
    EXPECT_EQ(listed[1].subject, std::vector<std::string>{"203.0.113.7"});
    EXPECT_EQ(listed[1].until - world.now().wall, Nanos(minutes(10)));
    EXPECT_EQ(book.list(1, world.now().wall).size(), 1U);
    EXPECT_EQ(kept.blocks.size(), 2U);

    EXPECT_EQ(book.lift("203.0.113.8", "", world.now()), 0U);
    EXPECT_EQ(book.lift("203.0.113.7", "another rule", world.now()), 0U);
    EXPECT_FALSE(world.ask(login).admitted);
    EXPECT_EQ(book.lift("203.0.113.7", "sign-ins", world.now()), 1U);
    EXPECT_EQ(book.lift("2001:db8:1:2::1", "", world.now()), 1U) << "any address of the network";
    EXPECT_TRUE(book.list(10, world.now().wall).empty());
    EXPECT_TRUE(kept.blocks.empty());
    EXPECT_EQ(fail(world, login, 5), 3) << "as if there had been no failure";
    EXPECT_EQ(world.ask(login).decision.wait, Nanos(minutes(10))) << "a first block again";
    EXPECT_EQ(fail(world, other, 5), 3);
}

TEST(BlockBook, LiftsNothingWhileTheCountersGiveNoAnswer) {
    World world(per_address, "");
    Kept kept;
    BlockBook book(world.engine(), &kept);
    world.engine().watch_blocks(&book);
    fail(world, login, 3);
    world.faults().down = true;
    EXPECT_EQ(book.lift("203.0.113.7", "", world.now()), std::nullopt);
    world.faults().down = false;
    EXPECT_FALSE(world.ask(login).admitted);
    EXPECT_EQ(book.list(10, world.now().wall).size(), 1U);
    EXPECT_EQ(kept.blocks.size(), 1U);
    EXPECT_EQ(book.lift("203.0.113.7", "", world.now()), 1U);
    EXPECT_TRUE(world.ask(login).admitted);
    EXPECT_TRUE(kept.blocks.empty());
}

TEST(BlockBook, ListsWhatIsInForceAndNothingElse) {
    World world(per_address, "");
    BlockBook book(world.engine(), nullptr);
    world.engine().watch_blocks(&book);
    fail(world, login, 3);
    world.clock.advance(minutes(10) - Nanos(1));
    EXPECT_EQ(book.list(10, world.now().wall).size(), 1U);
    world.clock.advance(Nanos(1));
    EXPECT_TRUE(book.list(10, world.now().wall).empty());
}

TEST(BlockBook, ListsUpToItsBoundAndBlocksBeyondIt) {
    World world(per_address, "");
    Kept kept;
    BlockBook book(world.engine(), &kept, 2);
    world.engine().watch_blocks(&book);
    const auto asks = [](int i) {
        return Ask{.method = "POST", .path = "/login", .peer = "203.0.113." + std::to_string(i)};
    };
    for (int i = 1; i <= 3; ++i) {
        fail(world, asks(i), 3);
    }
    EXPECT_EQ(book.list(10, world.now().wall).size(), 2U);
    EXPECT_FALSE(world.ask(asks(3)).admitted);
    EXPECT_EQ(kept.blocks.size(), 3U);
    EXPECT_EQ(book.lift("203.0.113.3", "", world.now()), 1U) << "what is not listed can be lifted";
    world.clock.advance(minutes(10));
    fail(world, asks(4), 3);
    EXPECT_EQ(book.list(10, world.now().wall).size(), 1U) << "blocks that ended make room";
}

// A block that others' failures led to is nobody's record, and a flood must not write a row for
// each of its addresses.
TEST(BlockBook, KeepsNoBlockThatNewcomersLedToTogether) {
    World world(per_address, "");
    Kept kept;
    BlockBook book(world.engine(), &kept);
    world.engine().watch_blocks(&book);
    const auto from = [](int i) {
        return Ask{.method = "POST", .path = "/login", .peer = cat("10.0.", i / 200, ".", i % 200)};
    };
    EXPECT_EQ(fail(world, login, 2), 2);
    for (int i = 0; i < 9000; ++i) {
        fail(world, from(i), 1);
    }
    EXPECT_GT(world.counters().stats().overflowed, 1000U);
    EXPECT_TRUE(kept.blocks.empty());
    EXPECT_TRUE(book.list(10, world.now().wall).empty());
    EXPECT_EQ(world.ask(from(8999)).decision.wait, Nanos(minutes(10))) << "it holds";
    EXPECT_EQ(fail(world, login, 2), 1) << "whose failures are known is counted as ever";
    EXPECT_EQ(kept.blocks.size(), 1U);
    EXPECT_EQ(book.list(10, world.now().wall).size(), 1U);
}

TEST(BlockBook, RestoresWhatWasKept) {
    Kept kept;
    WorldOptions later;
    {
        World world(policy_with("per: [address, header.X-Who]"), "");
        BlockBook book(world.engine(), &kept);
        world.engine().watch_blocks(&book);
        Ask ask = login;
        ask.headers = {{"X-Who", "tab\t, % and \xc3\xa9"}};
        fail(world, ask, 3);
        later.start = {world.now().mono, world.now().wall + minutes(4)};
    }
    World world(policy_with("per: [address, header.X-Who]"), "", later);
    BlockBook book(world.engine(), &kept);
    world.engine().watch_blocks(&book);
    std::vector<Block> blocks = kept.all();
    blocks.push_back({"a rule that is no more\t203.0.113.7", later.start.wall + minutes(1), 1,
                      later.start.wall + minutes(2)});
    blocks.push_back({"sign-ins\ttoo few parts", later.start.wall + minutes(1), 1,
                      later.start.wall + minutes(2)});
    book.restore(blocks, world.now());
    Ask ask = login;
    ask.headers = {{"X-Who", "tab\t, % and \xc3\xa9"}};
    EXPECT_EQ(world.ask(ask).decision.wait, Nanos(minutes(6)));
    EXPECT_EQ(book.list(10, world.now().wall).size(), 1U);
    world.clock.advance(minutes(6));
    EXPECT_EQ(fail(world, ask, 5), 3);
    EXPECT_EQ(world.ask(ask).decision.wait, Nanos(minutes(20))) << "the second block";
    EXPECT_EQ(book.lift("tab\t, % and \xc3\xa9", "", world.now()), 1U) << "by one of two values";
    EXPECT_TRUE(world.ask(ask).admitted);
}

// As many as several calls take, some over and remembered still.
TEST(BlockBook, PutsBackAllThatTheCountersLost) {
    constexpr int many = 200;
    World world(per_address, "");
    BlockBook book(world.engine(), nullptr);
    const Wall now = world.now().wall;
    std::vector<Block> kept;
    const auto address = [](int i) { return "203.0.113." + std::to_string(i); };
    for (int i = 0; i < many; ++i) {
        const Wall until = now + (i % 2 == 0 ? Nanos(minutes(i + 1)) : -Nanos(minutes(1)));
        kept.push_back({"sign-ins\t" + address(i), until, 1, now + hours(20)});
    }
    world.faults().down = true;
    EXPECT_EQ(book.restore(kept, world.now()), std::nullopt);
    world.faults().down = false;
    EXPECT_EQ(book.restore(kept, world.now()), std::size_t{many / 2});
    EXPECT_EQ(book.restore(kept, world.now()), 0U) << "they are there";
    for (int i = 0; i < many; ++i) {
        const Ask ask{.method = "POST", .path = "/login", .peer = address(i)};
        if (i % 2 == 0) {
            EXPECT_EQ(world.ask(ask).decision.wait, Nanos(minutes(std::min(i + 1, 60)))) << i;
        } else {
            EXPECT_EQ(fail(world, ask, 5), 3) << i;
            EXPECT_EQ(world.ask(ask).decision.wait, Nanos(minutes(20))) << "the second block";
        }
    }
    EXPECT_EQ(book.known().size(), std::size_t{many / 2});
}

TEST(BlockBook, RestoringWhatSharedCountersKeptChangesNothing) {
    World world(per_address, "");
    Kept kept;
    BlockBook book(world.engine(), &kept);
    world.engine().watch_blocks(&book);
    fail(world, login, 3);
    book.restore(kept.all(), world.now());
    EXPECT_EQ(world.ask(login).decision.wait, Nanos(minutes(10)));
}

}  // namespace
}  // namespace ration::testing
