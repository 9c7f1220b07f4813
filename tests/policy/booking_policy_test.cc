// The shipped booking policy, read whole: what a request needs of it is there and says what the
// "Rate limits" page says.
#include <gtest/gtest.h>

#include <algorithm>

#include "policy/directory.h"
#include "policy/policy.h"

namespace ration {
namespace {

class BookingPolicy : public ::testing::Test {
protected:
    void SetUp() override {
        policy_ = Policy::load(std::string(RATION_SOURCE_DIR) + "/examples/booking/policy.yaml",
                               nullptr, problems_);
        ASSERT_NE(policy_, nullptr) << problems_.status();
    }

    const LimitRule& limit(std::string_view name) const {
        for (const LimitRule& rule : policy_->limits) {
            if (rule.name == name) {
                return rule;
            }
        }
        ADD_FAILURE() << "no limit " << name;
        return policy_->limits.front();
    }

    RouteIndex route(std::string_view method, std::string_view path) const {
        return policy_->table.match(method, path).route;
    }

    Problems problems_;
    std::shared_ptr<const Policy> policy_;
};

TEST_F(BookingPolicy, LoadsWithoutAWarning) {
    for (const Problem& warning : problems_.warnings()) {
        ADD_FAILURE() << warning.text();
    }
}

TEST_F(BookingPolicy, BudgetsByRouteApplyToTheRoutesTheyName) {
    const LimitRule& workspace = limit("workspace budget");
    const RouteIndex quote = route("GET", "/v1/quote");
    const RouteIndex create = route("POST", "/v1/bookings");
    EXPECT_TRUE(workspace.covers(quote));
    EXPECT_TRUE(workspace.covers(create));
    EXPECT_FALSE(workspace.covers(route("GET", "/v1/public/x")));
    EXPECT_FALSE(workspace.covers(no_route));
    for (const auto& [index, numbers] : workspace.numbers.by_route) {
        const std::uint64_t amount =
            index == create || index == route("POST", "/v1/bookings/b1/verify") ? 60 : 300;
        EXPECT_EQ(numbers->kind, LimitKind::token_bucket);
        EXPECT_EQ(numbers->amount, amount);
        EXPECT_EQ(numbers->capacity, amount);
        EXPECT_EQ(numbers->period, std::chrono::minutes(1));
    }
    EXPECT_EQ(workspace.numbers.by_route.size(), 4U);
    ASSERT_EQ(workspace.key.size(), 2U);
    EXPECT_EQ(workspace.key[0].source, Selector::Source::route);
    EXPECT_EQ(workspace.key[1].source, Selector::Source::entity);
    EXPECT_EQ(workspace.key[1].name, "workspace");
}

TEST_F(BookingPolicy, BackstopsCoverEveryRequestOfTheirKind) {
    const LimitRule& secret = limit("secret keys");
    EXPECT_TRUE(secret.covers(no_route));
    EXPECT_TRUE(secret.covers(route("GET", "/v1/quote")));
    ASSERT_TRUE(secret.numbers.fixed.has_value());
    EXPECT_EQ((*secret.numbers.fixed)->amount, 3000U);
    const LimitRule& account = limit("account keys");
    EXPECT_FALSE(account.covers(no_route));
    EXPECT_TRUE(account.covers(route("POST", "/v1/account/workspaces")));
    EXPECT_EQ((*account.numbers.fixed)->amount, 600U);
}

TEST_F(BookingPolicy, RoutesAcceptTheirKinds) {
    const auto accepts = [&](RouteIndex index, std::string_view kind) {
        const auto found = std::find(policy_->kinds.begin(), policy_->kinds.end(), kind);
        const auto kind_index = static_cast<KindIndex>(found - policy_->kinds.begin());
        return (policy_->routes[index].accepts & kind_bit(kind_index)) != 0;
    };
    EXPECT_TRUE(accepts(route("GET", "/v1/public/x"), "anonymous"));
    EXPECT_TRUE(accepts(route("GET", "/v1/quote"), "publishable"));
    EXPECT_TRUE(accepts(route("GET", "/v1/quote"), "secret"));
    EXPECT_FALSE(accepts(route("GET", "/v1/quote"), "account"));
    EXPECT_FALSE(accepts(route("GET", "/v1/quote"), "anonymous"));
    EXPECT_TRUE(accepts(route("POST", "/v1/calendars"), "secret"));
    EXPECT_FALSE(accepts(route("POST", "/v1/calendars"), "publishable"));
    EXPECT_TRUE(accepts(route("GET", "/v1/account/usage"), "account"));
}

TEST_F(BookingPolicy, TheRefusalIsThePagesBodyToTheLetter) {
    const Refusal& refusal = policy_->refusals[limit("public routes").refusal];
    EXPECT_EQ(refusal.name, "rate_limited");
    EXPECT_EQ(refusal.status, 429);
    std::string body;
    ASSERT_TRUE(refusal.body.append_to(body, {}));
    EXPECT_EQ(body, R"({"error":{"type":"rate_limited","message":"Too many requests."}})");
    ASSERT_EQ(refusal.headers.size(), 1U);
    std::string value;
    HoleValues values;
    values.retry_after = 3;
    EXPECT_TRUE(refusal.headers[0].second.append_to(value, values));
    EXPECT_EQ(value, "3");
}

TEST_F(BookingPolicy, EveryBuiltInAnswerHasThePolicysShape) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(BuiltIn::count); ++i) {
        const Refusal& answer = policy_->answer(static_cast<BuiltIn>(i));
        std::string body;
        HoleValues values;
        values.type = answer.type;
        values.message = answer.message;
        ASSERT_TRUE(answer.body.append_to(body, values));
        EXPECT_EQ(body, R"({"error":{"type":")" + answer.name + R"(","message":")" +
                            answer.message + R"("}})");
    }
    EXPECT_EQ(policy_->answer(BuiltIn::store_unavailable).status, 503);
    EXPECT_EQ(policy_->answer(BuiltIn::store_unavailable).name, "rate_limiter_unavailable");
}

}  // namespace
}  // namespace ration
