// Calendar windows: the local day of a zone, and billing periods from an anchor.
//
// A local day starts at the first instant whose local date is that day or later: local midnight if
// it exists once, the earlier one if it occurs twice, the transition if it does not exist. The
// current day is the latest one that has started, so it never goes backwards, even where the wall
// clock crosses midnight twice. Windows are half-open: the boundary belongs to the new one.
//
// A billing period k starts k months (quarters, years) after the anchor, its day clamped to the
// month's length from the anchor's own day, so 31 January leads to 28 February and 31 March. The
// anchor's time of day is part of it.
//
// Units: nanoseconds since the epoch; zone rules come from the system's zone files through
// absl::TimeZone and know no leap seconds. Pure; thread rule: share freely.
//
//   CalendarWindow day = local_day(zone, now.wall);
//   Nanos wait = day.end - now.wall;
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/time/time.h"
#include "ration/ledger.h"
#include "ration/time.h"

namespace ration {

enum class PeriodLength : std::uint8_t { month, quarter, year };

// Where billing periods are counted from: a date and time of day in a zone.
struct BillingAnchor {
    absl::CivilSecond local;
    absl::TimeZone zone;
    PeriodLength length = PeriodLength::month;
};

[[nodiscard]] CalendarWindow local_day(const absl::TimeZone& zone, Wall now);

// Before the anchor: no start, and the anchor itself as end.
[[nodiscard]] CalendarWindow billing_period(const BillingAnchor& anchor, Wall now);

// An RFC 3339 instant ("2026-01-31T00:00:00Z"), read as an anchor in UTC or in its own offset.
[[nodiscard]] std::optional<BillingAnchor> parse_anchor(std::string_view text);

// The same instant as an anchor in that zone's own time, which shifts twice a year where it does.
[[nodiscard]] BillingAnchor in_zone(const BillingAnchor& anchor, const absl::TimeZone& zone);

}  // namespace ration
