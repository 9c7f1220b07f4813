// The ledger's rules as /v1/policy shows them.
#include "server/admin/durable_json.h"

#include <gtest/gtest.h>

#include "engine/harness.h"

namespace ration {
namespace {

using Json = nlohmann::ordered_json;

class DurableJson : public ::testing::Test {
protected:
    std::shared_ptr<const Policy> booking_ =
        testing::read_policy(testing::source_file("examples/booking/policy.yaml"));
};

TEST_F(DurableJson, CeilingsOfADayAndOfABillingPeriod) {
    const Json ceilings = ceilings_json(*booking_);
    ASSERT_EQ(ceilings.size(), 2U);
    EXPECT_EQ(ceilings[0], Json::parse(R"({
        "name": "daily bookings", "routes": ["create_booking"], "credentials": ["publishable"],
        "per": ["workspace", "address"], "at_most": 15, "period": "day",
        "zone": {"from": "workspace.timezone"}, "refuse": "daily_booking_limit"})"));
    EXPECT_EQ(ceilings[1]["credentials"], "any");
    EXPECT_EQ(ceilings[1]["at_most"], Json::parse(R"({"from": "account.booking_volume"})"));
    EXPECT_EQ(ceilings[1]["period"], "month");
    EXPECT_EQ(ceilings[1]["anchor"], Json::parse(R"({"from": "account.billing_anchor"})"));
}

TEST_F(DurableJson, QuotasWithTheirObjectsAndRefusals) {
    const Json quotas = quotas_json(*booking_);
    ASSERT_EQ(quotas.size(), 2U);
    EXPECT_EQ(quotas[0]["name"], "active calendars");
    EXPECT_EQ(quotas[0]["at_most"], Json::parse(R"({"from": "account.plan.calendars"})"));
    EXPECT_EQ(quotas[0]["up"],
              Json::parse(R"([{"route": "create_calendar", "object": "body.id"}])"));
    EXPECT_EQ(quotas[0]["down"],
              Json::parse(R"([{"route": "delete_calendar", "object": "path.id"}])"));
    EXPECT_EQ(quotas[0]["refuse"],
              Json::parse(R"({"default": "plan_quota_numbers", "publishable": "plan_quota"})"));
}

TEST_F(DurableJson, IdempotencyWithItsBounds) {
    const Json rules = idempotency_json(*booking_);
    ASSERT_EQ(rules.size(), 1U);
    EXPECT_EQ(rules[0]["routes"], Json::parse(R"(["create_booking"])"));
    EXPECT_EQ(rules[0]["per"], Json::parse(R"(["workspace"])"));
    EXPECT_EQ(rules[0]["header"], "Idempotency-Key");
    EXPECT_EQ(rules[0]["required"], false);
    EXPECT_EQ(rules[0]["keep_seconds"], 86'400);
    EXPECT_EQ(rules[0]["doubt"], "forward");
    EXPECT_EQ(rules[0]["compare"], "by_value");
    EXPECT_EQ(rules[0]["max_body"], 1 << 20);
}

TEST_F(DurableJson, ZonesAndDoubtsOfTheirOwn) {
    const auto policy = testing::read_policy(R"(
policy: shop
routes: {buy: POST /buy}
ceilings:
  - {name: a day, routes: [buy], per: [address], at_most: 2 per day in Asia/Tokyo, refuse: no}
idempotency:
  - {routes: [buy], scope: [address], doubt: refuse, keep: 90s, compare: bytes}
refusals: {no: {status: 429}}
)");
    EXPECT_EQ(ceilings_json(*policy)[0]["zone"], "Asia/Tokyo");
    EXPECT_EQ(idempotency_json(*policy)[0]["doubt"], "refuse");
    EXPECT_EQ(idempotency_json(*policy)[0]["compare"], "bytes");
    EXPECT_EQ(idempotency_json(*policy)[0]["keep_seconds"], 90);
    EXPECT_EQ(quotas_json(*policy), Json::array());
}

}  // namespace
}  // namespace ration
