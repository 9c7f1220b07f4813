// The shipped booking policy with a small directory: two accounts, three workspaces, keys of each
// kind.
#pragma once

#include "engine/harness.h"

namespace ration::testing {

inline constexpr std::string_view booking_directory = R"(
entities:
  plan:
    starter: {calendars: 1, workspaces: 1}
  account:
    acc_1: {plan: starter, billing_anchor: "2026-01-31T00:00:00Z", booking_volume: 5000}
    acc_2: {plan: starter, billing_anchor: "2026-02-15T00:00:00Z", booking_volume: 5000}
  workspace:
    ws_1: {account: acc_1, timezone: America/New_York}
    ws_2: {account: acc_1, timezone: Europe/Paris}
    ws_3: {account: acc_2, timezone: Asia/Shanghai}
credentials:
  pk_1: {kind: publishable, workspace: ws_1}
  pk_2: {kind: publishable, workspace: ws_2}
  pk_3: {kind: publishable, workspace: ws_3}
  sk_1: {kind: secret, workspace: ws_1}
  sk_1_second: {kind: secret, workspace: ws_1}
  sk_2: {kind: secret, workspace: ws_2}
  ak_1: {kind: account, account: acc_1}
  ak_1_second: {kind: account, account: acc_1}
  ak_2: {kind: account, account: acc_2}
)";

class BookingWorld : public World {
public:
    BookingWorld() : World(source_file("examples/booking/policy.yaml"), booking_directory) {}
};

}  // namespace ration::testing
