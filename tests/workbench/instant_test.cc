#include "workbench/instant.h"

#include <gtest/gtest.h>

#include "workbench/stepped_clock.h"

namespace ration {
namespace {

using namespace std::chrono_literals;

struct SecondsRow {
    const char* text;
    std::int64_t ns;
};

void PrintTo(const SecondsRow& row, std::ostream* out) {
    *out << row.text;
}

class SecondsTest : public ::testing::TestWithParam<SecondsRow> {};

TEST_P(SecondsTest, AreExact) {
    const auto parsed = parse_seconds(GetParam().text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->count(), GetParam().ns);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, SecondsTest,
    ::testing::Values(SecondsRow{"0", 0}, SecondsRow{"0.1", 100'000'000},
                      SecondsRow{"1772366400.25", 1'772'366'400'250'000'000},
                      SecondsRow{"1700000000.123456789", 1'700'000'000'123'456'789},
                      SecondsRow{"-1.5", -1'500'000'000}, SecondsRow{"1e3", 1'000'000'000'000},
                      SecondsRow{"1.5E+1", 15'000'000'000}, SecondsRow{"25e-10", 3},
                      SecondsRow{"0.30000000000000004", 300'000'000},
                      SecondsRow{"1.2999999999999998", 1'300'000'000},
                      SecondsRow{"0.0000000004", 0}, SecondsRow{"0.0000000005", 1},
                      SecondsRow{"0e99999", 0}, SecondsRow{"1e-99999", 0}));

TEST(Seconds, RefuseWhatIsNoNumber) {
    for (const char* text :
         {"", "-", ".5", "5.", "01", "1e", "+1", "1 ", "0x1", "1e9999999", "nan", "1,5", "1e400"}) {
        EXPECT_FALSE(parse_seconds(text).ok()) << text;
    }
}

TEST(Instant, DatesAndNumbersMeanTheSame) {
    const Wall quarter = *read_instant("1772366400.25");
    for (const char* text : {"2026-03-01T12:00:00.25Z", "2026-03-01T13:00:00.250+01:00",
                             "2026-03-01t06:30:00.25-05:30", "1.77236640025e9"}) {
        const auto parsed = read_instant(text);
        ASSERT_TRUE(parsed.ok()) << text;
        EXPECT_EQ(*parsed, quarter) << text;
    }
    EXPECT_EQ(rfc3339(quarter), "2026-03-01T12:00:00.25Z");
}

TEST(Instant, DatesFinerThanANanosecondAreRounded) {
    const struct {
        const char* text;
        const char* seconds;
    } rows[] = {
        {"2026-03-01T12:00:00.1234567894Z", "1772366400.123456789"},
        {"2026-03-01T12:00:00.1234567895Z", "1772366400.123456790"},
        {"2026-03-01T12:00:00.9999999996Z", "1772366401"},
        {"2026-03-01T12:00:00.00000000049999999999Z", "1772366400"},
        {"2026-12-31T23:59:59.9999999999+00:00", "1798761600"},
    };
    for (const auto& row : rows) {
        const auto parsed = read_instant(row.text);
        ASSERT_TRUE(parsed.ok()) << row.text << parsed.status();
        EXPECT_EQ(*parsed, *read_instant(row.seconds)) << row.text;
    }
}

TEST(Instant, RefusesWhatIsNoMoment) {
    for (const char* text : {"yesterday", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00",
                             "2026-01-01", "2026-01-01T24:00:00Z", "-1", "1969-12-31T23:59:59Z",
                             "2200-01-01T00:00:00Z", "7258118400"}) {
        EXPECT_FALSE(read_instant(text).ok()) << text;
    }
    EXPECT_TRUE(read_instant("7258118399.999999999").ok());
}

TEST(Span, UnitsAndClocks) {
    EXPECT_EQ(*parse_span("1.5s"), 1500ms);
    EXPECT_EQ(*parse_span("250ms"), 250ms);
    EXPECT_EQ(*parse_span("10us"), 10us);
    EXPECT_EQ(*parse_span("1ns"), 1ns);
    EXPECT_EQ(*parse_span("2min"), 2min);
    EXPECT_EQ(*parse_span("1h30m"), 90min);
    EXPECT_EQ(*parse_span("3653d"), 24h * 3653);
    EXPECT_EQ(*parse_span("0:01:00"), 1min);
    EXPECT_EQ(*parse_span("100:00:00.5"), 100h + 500ms);
    EXPECT_EQ(*parse_span("-2d"), -48h);
    EXPECT_EQ(*parse_span("12"), 12s);
    for (const char* text : {"", "s", "1x", "1s2", "0:60:00", "0:1:00", "--1s", "1 s", "300000d"}) {
        EXPECT_FALSE(parse_span(text).ok()) << text;
    }
}

TEST(Span, IsWrittenInAsFewDigitsAsAreExact) {
    EXPECT_EQ(decimal_seconds(800ms), "0.8");
    EXPECT_EQ(decimal_seconds(20s), "20");
    EXPECT_EQ(decimal_seconds(1ns), "0.000000001");
    EXPECT_EQ(decimal_seconds(-1500ms), "-1.5");
}

TEST(SteppedClock, TheWallReadingNeverGoesBack) {
    const Wall start{std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}};
    SteppedClock clock({Mono(1h), start});
    clock.step_wall(-10s);
    EXPECT_EQ(clock.now().wall, start);
    clock.move_to(Mono(1h + 4s));
    EXPECT_EQ(clock.now(), (Now{Mono(1h + 4s), start}));
    clock.step_wall(2s);  // four seconds behind are left
    clock.move_to(Mono(1h + 9s));
    EXPECT_EQ(clock.now().wall, start + 1s);
    clock.step_wall(1h);
    EXPECT_EQ(clock.now().wall, start + 1s + 1h);
    clock.move_to(Mono(1h));  // an older reading: no time passed
    EXPECT_EQ(clock.now().mono, Mono(1h + 9s));
}

}  // namespace
}  // namespace ration
