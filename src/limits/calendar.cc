// Both kinds of window reduce to one question: at which instant does a local date begin. Days are
// then compared as instants, never by formatting `now`, which is what keeps a day from returning
// when a zone steps back over midnight.
#include "limits/calendar.h"

#include <algorithm>
#include <string>

namespace ration {

namespace {

Wall to_wall(absl::Time time) {
    return Wall(Nanos(absl::ToUnixNanos(time)));
}

absl::Time to_absl(Wall wall) {
    return absl::FromUnixNanos(wall.time_since_epoch().count());
}

// The instant at which a local time is first reached or passed.
absl::Time first_instant(const absl::TimeZone& zone, absl::CivilSecond local) {
    const absl::TimeZone::TimeInfo info = zone.At(local);
    switch (info.kind) {
        case absl::TimeZone::TimeInfo::SKIPPED:
            return info.trans;
        case absl::TimeZone::TimeInfo::UNIQUE:
        case absl::TimeZone::TimeInfo::REPEATED:
            return info.pre;
    }
    return info.pre;
}

absl::Time day_start(const absl::TimeZone& zone, absl::CivilDay day) {
    return first_instant(zone, absl::CivilSecond(day));
}

int months_of(PeriodLength length) {
    switch (length) {
        case PeriodLength::month:
            return 1;
        case PeriodLength::quarter:
            return 3;
        case PeriodLength::year:
            return 12;
    }
    return 1;
}

// The anchor's local time `steps` periods later, its day clamped to the month it falls in.
absl::CivilSecond anchor_after(const BillingAnchor& anchor, std::int64_t steps) {
    const absl::CivilMonth month =
        absl::CivilMonth(anchor.local) + steps * months_of(anchor.length);
    const absl::CivilDay last = absl::CivilDay(month + 1) - 1;
    const int day = std::min(anchor.local.day(), last.day());
    return absl::CivilSecond(month.year(), month.month(), day, anchor.local.hour(),
                             anchor.local.minute(), anchor.local.second());
}

absl::Time period_start(const BillingAnchor& anchor, std::int64_t steps) {
    return first_instant(anchor.zone, anchor_after(anchor, steps));
}

}  // namespace

CalendarWindow local_day(const absl::TimeZone& zone, Wall now) {
    const absl::Time instant = to_absl(now);
    // The wall clock may show the day before the current one (a step back over midnight), never a
    // later one, so the current day is among the shown date and its successors.
    absl::CivilDay day(zone.At(instant).cs);
    while (day_start(zone, day + 1) <= instant) {
        ++day;
    }
    const absl::Time start = day_start(zone, day);
    absl::CivilDay next = day + 1;
    while (day_start(zone, next) <= start) {
        ++next;
    }
    // A date that a zone skipped whole begins where the next one does.
    return {to_wall(start), to_wall(day_start(zone, next))};
}

CalendarWindow billing_period(const BillingAnchor& anchor, Wall now) {
    const absl::Time instant = to_absl(now);
    if (instant < period_start(anchor, 0)) {
        return {std::nullopt, to_wall(period_start(anchor, 0))};
    }
    const absl::CivilMonth here(anchor.zone.At(instant).cs);
    // A guess that is at most one period off either way, then corrected by comparing instants.
    std::int64_t steps = std::max<std::int64_t>(
        0, (here - absl::CivilMonth(anchor.local)) / months_of(anchor.length));
    while (steps > 0 && period_start(anchor, steps) > instant) {
        --steps;
    }
    while (period_start(anchor, steps + 1) <= instant) {
        ++steps;
    }
    return {to_wall(period_start(anchor, steps)), to_wall(period_start(anchor, steps + 1))};
}

std::optional<BillingAnchor> parse_anchor(std::string_view text) {
    absl::Time time;
    std::string error;
    if (!absl::ParseTime(absl::RFC3339_full, std::string(text), &time, &error)) {
        return std::nullopt;
    }
    // The offset stands at the end ("Z", "+hh:mm" and the like): what the text says without it,
    // read as UTC, is as far from the instant.
    absl::Time local;
    const std::string without(text.substr(0, text.find_last_of("+-Zz")));
    if (!absl::ParseTime(absl::RFC3339_full, without + "Z", &local, &error)) {
        return std::nullopt;
    }
    const auto offset = static_cast<int>(absl::ToInt64Seconds(local - time));
    BillingAnchor anchor;
    anchor.zone = offset == 0 ? absl::UTCTimeZone() : absl::FixedTimeZone(offset);
    anchor.local = absl::ToCivilSecond(time, anchor.zone);
    return anchor;
}

BillingAnchor in_zone(const BillingAnchor& anchor, const absl::TimeZone& zone) {
    const absl::Time instant = first_instant(anchor.zone, anchor.local);
    return {absl::ToCivilSecond(instant, zone), zone, anchor.length};
}

}  // namespace ration
