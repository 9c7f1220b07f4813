// Directories: who a key belongs to, and what is refused in the file.
#include "policy/directory.h"

#include <gtest/gtest.h>

namespace ration {
namespace {

std::shared_ptr<const Directory> parse(std::string_view text, Problems& problems) {
    return Directory::parse("d.yaml", text, problems);
}

constexpr std::string_view two_accounts = R"(
entities:
  plan:      {starter: {calendars: 1, workspaces: 1}}
  account:   {acc_1: {plan: starter, billing_anchor: "2026-01-31T00:00:00Z", booking_volume: 5000}, acc_2: {}}
  workspace: {ws_1: {account: acc_1, timezone: America/New_York}}
credentials:
  pk_live_abc: {kind: publishable, workspace: ws_1}
  sk_live_abc: {kind: secret, workspace: ws_1, account: acc_2}
  axp_abc:     {kind: personal_token, user: u_1, rate_limit_per_min: 100, label: My key}
  axt_abc:     {kind: team_key, team: 42}
)";

TEST(Directory, ACredentialLeadsToEveryEntityBehindIt) {
    Problems problems;
    const auto directory = parse(two_accounts, problems);
    ASSERT_NE(directory, nullptr) << problems.status();
    const Credential* key = directory->find("publishable", "pk_live_abc");
    ASSERT_NE(key, nullptr);
    EXPECT_EQ(key->entity("workspace")->id, "ws_1");
    EXPECT_EQ(key->entity("account")->id, "acc_1");
    EXPECT_EQ(key->entity("plan")->id, "starter");
    EXPECT_EQ(std::get<std::int64_t>(*key->entity("plan")->find("calendars")), 1);
    EXPECT_EQ(std::get<std::string>(*key->entity("workspace")->find("timezone")),
              "America/New_York");
    EXPECT_EQ(key->entity("timezone"), nullptr);
    EXPECT_EQ(key->entity("team"), nullptr);
}

TEST(Directory, TheNearerEntityOfAKindWins) {
    Problems problems;
    const auto directory = parse(two_accounts, problems);
    ASSERT_NE(directory, nullptr) << problems.status();
    EXPECT_EQ(directory->find("secret", "sk_live_abc")->entity("account")->id, "acc_2");
    EXPECT_EQ(directory->find("secret", "sk_live_abc")->entity("plan"), nullptr);
}

TEST(Directory, AKindWithoutASectionMakesImplicitEntities) {
    Problems problems;
    const auto directory = parse(two_accounts, problems);
    ASSERT_NE(directory, nullptr) << problems.status();
    const Credential* token = directory->find("personal_token", "axp_abc");
    EXPECT_EQ(token->entity("user")->id, "u_1");
    EXPECT_EQ(token->entity("label"), nullptr);
    EXPECT_EQ(directory->entity("user", "u_1"), token->entity("user"));
    EXPECT_EQ(directory->find("team_key", "axt_abc")->entity("team")->id, "42");
}

TEST(Directory, TokensGetTheirDefaultRate) {
    Problems problems;
    const auto directory = parse(two_accounts, problems);
    ASSERT_NE(directory, nullptr) << problems.status();
    const auto rate = [&](std::string_view kind, std::string_view secret) {
        return std::get<std::int64_t>(
            *directory->find(kind, secret)->self.find("rate_limit_per_min"));
    };
    EXPECT_EQ(rate("personal_token", "axp_abc"), 100);
    EXPECT_EQ(rate("team_key", "axt_abc"), 60);
    EXPECT_EQ(directory->find("publishable", "pk_live_abc")->self.find("rate_limit_per_min"),
              nullptr);
}

TEST(Directory, AKeyIsFoundOnlyUnderItsKind) {
    Problems problems;
    const auto directory = parse(two_accounts, problems);
    ASSERT_NE(directory, nullptr) << problems.status();
    EXPECT_EQ(directory->find("secret", "pk_live_abc"), nullptr);
    EXPECT_EQ(directory->find("publishable", "pk_live_ab"), nullptr);
    EXPECT_EQ(directory->entity("workspace", "ws_2"), nullptr);
}

// SHA-256("abc") is the first example of FIPS 180-2, appendix B.1.
TEST(Directory, FingerprintsAreTheFirstDigitsOfSha256) {
    Problems problems;
    const auto directory = parse("credentials: {abc: {kind: k}}", problems);
    ASSERT_NE(directory, nullptr) << problems.status();
    EXPECT_EQ(directory->find("k", "abc")->fingerprint, "ba7816bf8f01");
    EXPECT_EQ(directory->find("k", "abc")->self.id, "ba7816bf8f01");
}

struct Bad {
    const char* name;
    const char* text;
    const char* problem;
};

class BadDirectory : public ::testing::TestWithParam<Bad> {};

TEST_P(BadDirectory, IsRefusedWithItsPosition) {
    Problems problems;
    EXPECT_EQ(parse(GetParam().text, problems), nullptr);
    ASSERT_EQ(problems.errors().size(), 1U) << problems.status();
    EXPECT_EQ(problems.errors()[0].text(), GetParam().problem);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadDirectory,
    ::testing::Values(
        Bad{"UnknownSection", "entitys: {}\n",
            "d.yaml:1:1: unknown key of a directory 'entitys'; did you mean 'entities'?"},
        Bad{"UnknownReference",
            "entities:\n  workspace: {ws_1: {}}\ncredentials:\n  k: {kind: s, workspace: ws_l}\n",
            "d.yaml:4:27: unknown workspace 'ws_l'; did you mean 'ws_1'?"},
        Bad{"UnknownReferenceOfAnEntity",
            "entities:\n  account: {}\n  workspace:\n    ws_1: {account: acc_1}\n",
            "d.yaml:4:21: unknown account 'acc_1'"},
        Bad{"RateTooHigh", "credentials:\n  k: {kind: personal_token, rate_limit_per_min: 1001}\n",
            "d.yaml:2:49: 'rate_limit_per_min' is a whole number from 1 to 1000"},
        Bad{"RateZero", "credentials:\n  k: {kind: personal_token, rate_limit_per_min: 0}\n",
            "d.yaml:2:49: 'rate_limit_per_min' is a whole number from 1 to 1000"},
        Bad{"RateNegative", "credentials:\n  k: {kind: personal_token, rate_limit_per_min: -1}\n",
            "d.yaml:2:49: 'rate_limit_per_min' is a whole number from 1 to 1000"},
        Bad{"RateNotWhole", "credentials:\n  k: {kind: personal_token, rate_limit_per_min: 1.5}\n",
            "d.yaml:2:49: not a whole number; in quotes it would be text"},
        Bad{"Zone", "entities:\n  workspace: {w: {timezone: Mars/Base}}\n",
            "d.yaml:2:29: not a time zone of the IANA database, such as America/New_York"},
        Bad{"Anchor", "entities:\n  account: {a: {billing_anchor: \"2026-02-30T00:00:00Z\"}}\n",
            "d.yaml:2:33: not a time such as \"2026-01-31T00:00:00Z\" (RFC 3339)"},
        Bad{"Volume", "entities:\n  account: {a: {booking_volume: -5}}\n",
            "d.yaml:2:33: 'booking_volume' is a whole number, 0 or more"},
        Bad{"Calendars", "entities:\n  plan: {p: {calendars: many}}\n",
            "d.yaml:2:25: 'calendars' is a whole number, 0 or more"},
        Bad{"NoKind", "credentials:\n  k: {workspace: w}\n",
            "d.yaml:2:6: a credential needs 'kind'"},
        Bad{"List", "entities:\n  plan: {p: {features: [a, b]}}\n",
            "d.yaml:2:24: 'features' is text, a whole number, true or false, not a list"},
        Bad{"KindIsAWordOfRequests", "entities:\n  address: {}\n",
            "d.yaml:2:3: a kind of entity is one word, and none of route, method, address, "
            "credential"},
        Bad{"SameKeyTwice", "credentials:\n  k: {kind: a}\n  k: {kind: b}\n",
            "d.yaml:3:3: this key is there already, on line 2"},
        Bad{"BlankInSecret", "credentials:\n  \"my key\": {kind: a}\n",
            "d.yaml:2:3: a secret is 1 to 512 printable ASCII characters without blanks"}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(Directory, SeveralErrorsComeAtOnceAndNoneTellsASecret) {
    Problems problems;
    EXPECT_EQ(parse("entities: {workspace: {}}\ncredentials:\n  hush_1: {workspace: x}\n"
                    "  hush_2: {kind: a, workspace: w_9}\n  hush_3: plain\n",
                    problems),
              nullptr);
    EXPECT_EQ(problems.errors().size(), 3U);
    EXPECT_EQ(std::string(problems.status().message()).find("hush"), std::string::npos);
}

TEST(Directory, BoundsHoldAtTheBoundAndOnePastIt) {
    const auto secret_of = [](std::size_t bytes) {
        Problems problems;
        return parse("credentials:\n  " + std::string(bytes, 'k') + ": {kind: a}\n", problems) !=
               nullptr;
    };
    EXPECT_TRUE(secret_of(512));
    EXPECT_FALSE(secret_of(513));
    const auto attributes_of = [](int count) {
        std::string text = "entities:\n  plan:\n    p:\n";
        for (int i = 0; i < count; ++i) {
            text += "      a" + std::to_string(i) + ": 1\n";
        }
        Problems problems;
        return parse(text, problems) != nullptr;
    };
    EXPECT_TRUE(attributes_of(64));
    EXPECT_FALSE(attributes_of(65));
}

}  // namespace
}  // namespace ration
