// Times as text, to the nanosecond and at the ends of the range.
#include "wire/decimal.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

namespace ration {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();

TEST(Decimal, WritesSecondsExactly) {
    const std::pair<std::int64_t, const char*> cases[] = {
        {0, "0"},
        {1, "0.000000001"},
        {800'000'000, "0.8"},
        {20'000'000'000, "20"},
        {20'500'000'000, "20.5"},
        {1'000'000'010, "1.00000001"},
        {-1, "-0.000000001"},
        {-1'500'000'000, "-1.5"},
        {most, "9223372036.854775807"},
        {least, "-9223372036.854775808"},
    };
    for (const auto& [nanos, text] : cases) {
        std::array<char, max_decimal_bytes> buffer;
        EXPECT_EQ(decimal_seconds(Nanos(nanos), buffer), text);
        EXPECT_EQ(parse_decimal_seconds(text).value().count(), nanos);
    }
}

TEST(Decimal, ReadsNumbersAsJsonWritesThem) {
    const std::pair<const char*, std::int64_t> good[] = {
        {"1.50", 1'500'000'000},
        {"-0", 0},
        {"0.1", 100'000'000},
        {"1700000015.123456789", 1'700'000'015'123'456'789},
        {"1.7e9", 1'700'000'000'000'000'000},
        {"1.5E+1", 15'000'000'000},
        {"1e-9", 1},
        {"25e-1", 2'500'000'000},
        {"0.0000000010000000000000000000", 1},
        {"0e99999999999", 0},
        {"0.0e-99999999999", 0},
    };
    for (const auto& [text, nanos] : good) {
        const auto read = parse_decimal_seconds(text);
        ASSERT_TRUE(read.ok()) << text << read.status();
        EXPECT_EQ(read->count(), nanos) << text;
    }
    for (const char* text :
         {"",     "-",   "+1",    "01",  "1.",  ".5",  "1e",  "1e+", "1.e5",  " 1",    "1 ",
          "0x10", "1,5", "1_000", "inf", "nan", "NaN", "--1", "1-",  "1.2.3", "1e5.5", "1s"}) {
        EXPECT_EQ(parse_decimal_seconds(text).status().code(), absl::StatusCode::kInvalidArgument)
            << text;
    }
    for (const char* text : {"0.0000000001", "1e-10", "1.0000000005", "0.1e-9"}) {
        EXPECT_EQ(parse_decimal_seconds(text).status().code(), absl::StatusCode::kInvalidArgument)
            << text;
    }
    for (const char* text : {"9223372036.854775808", "-9223372036.854775809", "1e10", "1e99999999",
                             "10000000000000000000000000000000000000000"}) {
        EXPECT_EQ(parse_decimal_seconds(text).status().code(), absl::StatusCode::kOutOfRange)
            << text;
    }
    EXPECT_TRUE(parse_decimal_seconds("0." + std::string(max_number_text_bytes - 2, '0')).ok());
    EXPECT_FALSE(parse_decimal_seconds("0." + std::string(max_number_text_bytes - 1, '0')).ok());
}

TEST(Instant, ReadsRfc3339) {
    const std::pair<const char*, std::int64_t> good[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01t00:00:00z", 0},
        {"1970-01-01T00:00:00.000000001Z", 1},
        {"1969-12-31T23:59:59.999999999Z", -1},
        {"2023-11-14T22:13:35Z", 1'700'000'015'000'000'000},
        {"2023-11-14T22:13:35.5Z", 1'700'000'015'500'000'000},
        {"2023-11-14T22:13:35.50000000000000Z", 1'700'000'015'500'000'000},
        {"2023-11-14T17:13:35-05:00", 1'700'000'015'000'000'000},
        {"2023-11-15T03:43:35+05:30", 1'700'000'015'000'000'000},
        {"2023-11-14T22:13:35-00:00", 1'700'000'015'000'000'000},
        {"2024-02-29T00:00:00Z", 1'709'164'800'000'000'000},
        {"2016-12-31T23:59:60Z", 1'483'228'800'000'000'000},
        {"2017-01-01T05:29:60.5+05:30", 1'483'228'800'500'000'000},
        {"1677-09-21T00:12:43.145224192Z", least},
        {"2262-04-11T23:47:16.854775807Z", most},
    };
    for (const auto& [text, nanos] : good) {
        const auto read = parse_instant(text);
        ASSERT_TRUE(read.ok()) << text << read.status();
        EXPECT_EQ(read->time_since_epoch().count(), nanos) << text;
    }
    for (const char* text : {"2262-04-11T23:47:16.854775808Z", "1677-09-21T00:12:43.145224191Z",
                             "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z"}) {
        EXPECT_EQ(parse_instant(text).status().code(), absl::StatusCode::kOutOfRange) << text;
    }
    for (const char* text : {"2023-02-29T00:00:00Z",
                             "2023-13-01T00:00:00Z",
                             "2023-00-01T00:00:00Z",
                             "2023-01-00T00:00:00Z",
                             "2023-04-31T00:00:00Z",
                             "2023-01-01T24:00:00Z",
                             "2023-01-01T00:60:00Z",
                             "2023-01-01T00:00:61Z",
                             "2023-01-01T00:00:60Z",
                             "2023-01-01T23:59:60+01:00",
                             "2023-01-01T00:00:00",
                             "2023-01-01 00:00:00Z",
                             "2023-01-01T00:00Z",
                             "2023-01-01",
                             "2023-1-1T00:00:00Z",
                             "2023-01-01T00:00:00.Z",
                             "2023-01-01T00:00:00,5Z",
                             "2023-01-01T00:00:00+0100",
                             "2023-01-01T00:00:00+24:00",
                             "2023-01-01T00:00:00+01:60",
                             "2023-01-01T00:00:00Zx",
                             "2023-01-01T00:00:00 Z",
                             "2023-01-01T00:00:00.0000000001Z",
                             "+2023-01-01T00:00:00Z",
                             "02023-01-01T00:00:00Z"}) {
        EXPECT_EQ(parse_instant(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
    }
}

TEST(Instant, ReadsEpochSeconds) {
    EXPECT_EQ(parse_instant("1700000015")->time_since_epoch().count(), 1'700'000'015'000'000'000);
    EXPECT_EQ(parse_instant("0.000000001")->time_since_epoch().count(), 1);
    EXPECT_EQ(parse_instant("-1.5")->time_since_epoch().count(), -1'500'000'000);
    EXPECT_FALSE(parse_instant("").ok());
    EXPECT_FALSE(parse_instant("now").ok());
    EXPECT_FALSE(parse_instant("1e300").ok());
}

TEST(Instant, IsWrittenBack) {
    const std::pair<std::int64_t, std::pair<const char*, const char*>> cases[] = {
        {0, {"1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 GMT"}},
        {-1, {"1969-12-31T23:59:59.999999999Z", "Wed, 31 Dec 1969 23:59:59 GMT"}},
        {784'111'777'000'000'000, {"1994-11-06T08:49:37Z", "Sun, 06 Nov 1994 08:49:37 GMT"}},
        {1'709'251'199'500'000'000, {"2024-02-29T23:59:59.5Z", "Thu, 29 Feb 2024 23:59:59 GMT"}},
        {1'700'000'015'000'000'010,
         {"2023-11-14T22:13:35.00000001Z", "Tue, 14 Nov 2023 22:13:35 GMT"}},
        {most, {"2262-04-11T23:47:16.854775807Z", "Fri, 11 Apr 2262 23:47:16 GMT"}},
        {least, {"1677-09-21T00:12:43.145224192Z", "Tue, 21 Sep 1677 00:12:43 GMT"}},
    };
    for (const auto& [nanos, texts] : cases) {
        std::array<char, max_decimal_bytes> buffer;
        EXPECT_EQ(rfc3339(Wall(Nanos(nanos)), buffer), texts.first);
        EXPECT_EQ(http_date(Wall(Nanos(nanos)), buffer), texts.second);
    }
}

TEST(WholeSeconds, AreRoundedUp) {
    struct Case {
        std::int64_t nanos;
        std::uint64_t seconds;
        std::uint64_t retry_after;
    };
    for (const Case& c : {Case{-5, 0, 1}, Case{0, 0, 1}, Case{1, 1, 1}, Case{100'000, 1, 1},
                          Case{800'000'000, 1, 1}, Case{1'000'000'000, 1, 1},
                          Case{1'000'000'001, 2, 2}, Case{59'999'999'999, 60, 60},
                          Case{most, 9'223'372'037, 9'223'372'037}, Case{least, 0, 1}}) {
        EXPECT_EQ(seconds_rounded_up(Nanos(c.nanos)), c.seconds) << c.nanos;
        EXPECT_EQ(retry_after_seconds(Nanos(c.nanos)), c.retry_after) << c.nanos;
        EXPECT_EQ(epoch_seconds_rounded_up(Wall(Nanos(c.nanos))), c.seconds) << c.nanos;
    }
    EXPECT_EQ(moment_after(Wall(Nanos(5)), Nanos(7)), Wall(Nanos(12)));
    EXPECT_EQ(moment_after(Wall(Nanos(most)), Nanos(1)), Wall(Nanos(most)));
    EXPECT_EQ(moment_after(Wall(Nanos(least)), Nanos(-1)), Wall(Nanos(least)));
}

}  // namespace
}  // namespace ration
