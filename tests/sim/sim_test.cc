// Thousands of lives, each from its seed. RATION_SIM_SEED=N runs that one alone and tells its
// story; RATION_SIM_SEEDS=N says how many.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/mutants.h"
#include "sim/simulation.h"

namespace ration::sim {
namespace {

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(Simulation, EveryLifeHolds) {
    if (std::getenv("RATION_SIM_SEED") != nullptr) {
        const std::uint64_t seed = setting("RATION_SIM_SEED", 0);
        const Outcome outcome = simulate(seed, {});
        std::printf("%s", outcome.text.c_str());
        EXPECT_EQ(outcome.violation, "");
        return;
    }
    Outcome all;
    const std::uint64_t lives = setting("RATION_SIM_SEEDS", RATION_SIM_LIVES);
    for (std::uint64_t seed = 1; seed <= lives; ++seed) {
        const Outcome outcome = simulate(seed, {});
        ASSERT_EQ(outcome.violation, "") << "RATION_SIM_SEED=" << seed << " tells\n"
                                         << outcome.text;
        all += outcome;
    }
    std::printf(
        "%llu lives: %llu requests, %llu effects, %llu replays, %llu crashes, %llu torn, "
        "%llu second tries, %llu daily, %llu contended, %llu settled by hand\n",
        static_cast<unsigned long long>(lives), static_cast<unsigned long long>(all.requests),
        static_cast<unsigned long long>(all.effects), static_cast<unsigned long long>(all.replays),
        static_cast<unsigned long long>(all.crashes),
        static_cast<unsigned long long>(all.torn_commits),
        static_cast<unsigned long long>(all.second_tries),
        static_cast<unsigned long long>(all.ceilings),
        static_cast<unsigned long long>(all.contended),
        static_cast<unsigned long long>(all.settled_by_hand));
    if (lives < 50) {
        return;
    }
    // What it is about has happened, over and over.
    EXPECT_GT(all.requests, lives * 20);
    EXPECT_GT(all.effects, lives);
    EXPECT_GT(all.replays, lives);
    EXPECT_GT(all.second_tries, lives / 5);
    EXPECT_GT(all.ceilings, lives / 10);
    EXPECT_GT(all.contended, lives / 50);
    EXPECT_GT(all.crashes, lives);
    EXPECT_GT(all.torn_commits, lives / 5);
    EXPECT_GT(all.settled_by_hand, lives / 10);
}

TEST(Simulation, ASeedReplaysExactly) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const Outcome first = simulate(seed, {});
        const Outcome second = simulate(seed, {});
        EXPECT_EQ(first.text, second.text);
        EXPECT_EQ(first.fingerprint, second.fingerprint);
        EXPECT_NE(first.fingerprint, simulate(seed + 100, {}).fingerprint);
    }
}

// A simulation that finds nothing must be one that would find something.
constexpr std::uint64_t within = 60;

bool is_caught(const SimulationOptions& options) {
    for (std::uint64_t seed = 1; seed <= within; ++seed) {
        if (!simulate(seed, options).violation.empty()) {
            return true;
        }
    }
    return false;
}

class Mutants : public testing::TestWithParam<Mutant> {};

TEST_P(Mutants, AreCaughtByTheModel) {
    SimulationOptions options;
    options.wrap = mutant(GetParam());
    EXPECT_TRUE(is_caught(options)) << to_string(GetParam());
}

TEST_P(Mutants, AreCaughtFromOutside) {
    SimulationOptions options;
    options.compare = false;
    options.wrap = mutant(GetParam());
    EXPECT_TRUE(is_caught(options)) << to_string(GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, Mutants, testing::ValuesIn(all_mutants),
                         [](const auto& test) { return to_string(test.param); });

TEST(Simulation, ADiskThatLiesIsCaught) {
    for (const bool compare : {true, false}) {
        SimulationOptions options;
        options.compare = compare;
        options.lying_disk = true;
        EXPECT_TRUE(is_caught(options)) << compare;
    }
}

TEST(Simulation, AnAnswerBeforeItsRecordIsCaught) {
    SimulationOptions options;
    options.answers_first = true;
    EXPECT_TRUE(is_caught(options));
}

}  // namespace
}  // namespace ration::sim
