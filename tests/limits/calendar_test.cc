// Local days and billing periods against a table of instants, and properties that hold everywhere.
#include "limits/calendar.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace ration {
namespace {

struct Row {
    std::string line;
    std::vector<std::string> fields;  // kind, zone, anchor, now, start, end
};

std::vector<Row> read_rows() {
    std::ifstream file(std::string(RATION_SOURCE_DIR) + "/tests/data/calendar_vectors.csv");
    std::vector<Row> rows;
    bool header = true;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with('#')) {
            continue;
        }
        if (std::exchange(header, false)) {
            continue;
        }
        Row row{line, {}};
        std::stringstream cells(line);
        for (std::string cell; std::getline(cells, cell, ',');) {
            row.fields.push_back(cell);
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

// Seconds with up to three decimals.
Wall instant(const std::string& seconds) {
    const std::size_t dot = seconds.find('.');
    Nanos nanos = std::chrono::seconds(std::stoll(seconds));
    if (dot != std::string::npos) {
        nanos +=
            std::chrono::milliseconds(std::stoll((seconds.substr(dot + 1) + "00").substr(0, 3)));
    }
    return Wall(nanos);
}

absl::TimeZone zone(const std::string& name) {
    absl::TimeZone zone;
    EXPECT_TRUE(absl::LoadTimeZone(name, &zone)) << name;
    return zone;
}

CalendarWindow window_of(const Row& row) {
    const std::string& kind = row.fields[0];
    const Wall now = instant(row.fields[3]);
    if (kind == "local_day") {
        return local_day(zone(row.fields[1]), now);
    }
    BillingAnchor anchor;
    anchor.zone = zone(row.fields[1]);
    EXPECT_TRUE(absl::ParseCivilTime(row.fields[2], &anchor.local)) << row.line;
    anchor.length = kind == "month"     ? PeriodLength::month
                    : kind == "quarter" ? PeriodLength::quarter
                                        : PeriodLength::year;
    return billing_period(anchor, now);
}

TEST(Calendar, EveryRowOfTheTable) {
    const std::vector<Row> rows = read_rows();
    ASSERT_GT(rows.size(), 120U);
    for (const Row& row : rows) {
        const CalendarWindow window = window_of(row);
        EXPECT_EQ(window.start.has_value(), !row.fields[4].empty()) << row.line;
        if (window.start) {
            EXPECT_EQ(*window.start, instant(row.fields[4])) << row.line;
        }
        EXPECT_EQ(window.end, instant(row.fields[5])) << row.line;
    }
}

// Walking from boundary to boundary: half-open, no gap, no day twice, and both sides of each edge
// fall into the right window.
TEST(Calendar, DaysTileTheTimeLineInEveryZone) {
    for (const char* name : {"UTC", "Africa/Cairo", "America/Havana", "America/Santiago",
                             "America/St_Johns", "Antarctica/Casey", "Antarctica/Troll",
                             "Asia/Beirut", "Australia/Lord_Howe", "Pacific/Apia"}) {
        const absl::TimeZone here = zone(name);
        Wall at = instant("1262304000");  // 2010-01-01
        const Wall last = instant("1483228800");
        CalendarWindow day = local_day(here, at);
        while (day.end < last) {
            const CalendarWindow next = local_day(here, day.end);
            ASSERT_EQ(*next.start, day.end) << name;
            ASSERT_EQ(local_day(here, day.end - Nanos(1)), day) << name;
            ASSERT_GE(next.end - *next.start, std::chrono::hours(19)) << name;
            ASSERT_LE(next.end - *next.start, std::chrono::hours(28)) << name;
            day = next;
        }
    }
}

TEST(Calendar, PeriodsTileTheTimeLineFromEveryAnchorDay) {
    for (int day = 1; day <= 31; ++day) {
        BillingAnchor anchor{absl::CivilSecond(2024, 1, day, 13, 45, 30), absl::UTCTimeZone(),
                             PeriodLength::month};
        CalendarWindow period = billing_period(anchor, instant("1706800000"));
        for (int i = 0; i < 60; ++i) {
            const CalendarWindow next = billing_period(anchor, period.end);
            ASSERT_EQ(next.start, period.end);
            ASSERT_EQ(billing_period(anchor, period.end - Nanos(1)), period);
            const absl::CivilSecond local = absl::ToCivilSecond(
                absl::FromUnixNanos(period.end.time_since_epoch().count()), absl::UTCTimeZone());
            ASSERT_LE(local.day(), day);
            ASSERT_EQ(local.hour(), 13);
            period = next;
        }
    }
}

TEST(Calendar, AnchorsReadAsInstantsInTheirOwnOffset) {
    const auto anchor = parse_anchor("2026-01-31T00:00:00+02:00");
    const absl::TimeZone utc = absl::UTCTimeZone();
    ASSERT_TRUE(anchor);
    EXPECT_EQ(anchor->local, absl::CivilSecond(2026, 1, 31));
    EXPECT_TRUE(parse_anchor("2026-01-31T00:00:00Z"));
    const absl::Time instant = absl::FromCivil(absl::CivilSecond(2026, 1, 31, 5, 30), utc);
    for (const char* text : {"2026-01-31T05:30:00Z", "2026-01-31T00:00:00-05:30",
                             "2026-01-31T00:00:00-0530", "2026-01-31T11:15:00.25+05:45"}) {
        const auto same = parse_anchor(text);
        ASSERT_TRUE(same) << text;
        EXPECT_EQ(absl::FromCivil(same->local, same->zone), instant) << text;
    }
    for (const char* bad : {"", "2026-01-31", "2026-02-30T00:00:00Z", "yesterday", "Z"}) {
        EXPECT_FALSE(parse_anchor(bad)) << bad;
    }
}

// 00:00 in New York is another instant of the UTC day in winter and in summer.
TEST(Calendar, AnAnchorCanBeCountedInAZonesOwnTime) {
    absl::TimeZone zone;
    ASSERT_TRUE(absl::LoadTimeZone("America/New_York", &zone));
    const auto instant_of = [](const char* text) {
        absl::Time time;
        EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) << text;
        return Wall(Nanos(absl::ToUnixNanos(time)));
    };
    for (const char* text : {"2026-01-31T05:00:00Z", "2026-01-31T00:00:00-05:00"}) {
        const BillingAnchor anchor = in_zone(*parse_anchor(text), zone);
        const CalendarWindow march = billing_period(anchor, instant_of("2026-03-15T00:00:00Z"));
        EXPECT_EQ(march.start, instant_of("2026-02-28T00:00:00-05:00"));
        EXPECT_EQ(march.end, instant_of("2026-03-31T00:00:00-04:00"));
    }
}

}  // namespace
}  // namespace ration
