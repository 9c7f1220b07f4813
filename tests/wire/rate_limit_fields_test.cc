// Each header family, field by field; the structured ones through a strict parser.
#include "wire/rate_limit_fields.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "wire/structured_field.h"

namespace ration {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// "Name: value" a line.
std::string fields(HeaderFamily family, const RateLimitNumbers& numbers) {
    std::string lines;
    render_rate_limit_fields(family, numbers,
                             [&lines](std::string_view name, std::string_view value) {
                                 lines += std::string(name) + ": " + std::string(value) + "\n";
                             });
    return lines;
}

RateLimitNumbers window_numbers() {
    RateLimitNumbers numbers;
    numbers.name = "personal token";
    numbers.limit = 60;
    numbers.remaining = 59;
    numbers.window = minutes(1);
    numbers.next = seconds(25);
    numbers.reset = seconds(25);
    numbers.now = Wall(seconds(1'700'000'015));
    return numbers;
}

TEST(RateLimitFields, OnRefusalOnly) {
    RateLimitNumbers numbers = window_numbers();
    EXPECT_EQ(fields(HeaderFamily::ratelimit_remaining_on_refusal, numbers), "");
    numbers.refused = true;
    numbers.remaining = 0;
    EXPECT_EQ(fields(HeaderFamily::ratelimit_remaining_on_refusal, numbers),
              "RateLimit-Remaining: 0\n");
    EXPECT_EQ(fields(HeaderFamily::none, numbers), "");
}

TEST(RateLimitFields, EpochReset) {
    EXPECT_EQ(fields(HeaderFamily::x_ratelimit, window_numbers()),
              "X-RateLimit-Limit: 60\nX-RateLimit-Remaining: 59\nX-RateLimit-Reset: 1700000040\n");
    // Between two seconds the reset is still the edge of the minute.
    RateLimitNumbers numbers = window_numbers();
    numbers.now += milliseconds(300);
    numbers.reset -= milliseconds(300);
    EXPECT_NE(fields(HeaderFamily::x_ratelimit, numbers).find("Reset: 1700000040\n"),
              std::string::npos);
    // A bucket's reset may fall between two seconds: told is the later.
    numbers.reset += Nanos(1);
    EXPECT_NE(fields(HeaderFamily::x_ratelimit, numbers).find("Reset: 1700000041\n"),
              std::string::npos);
}

TEST(RateLimitFields, Draft03) {
    EXPECT_EQ(fields(HeaderFamily::ietf_draft_03, window_numbers()),
              "RateLimit-Limit: 60, 60;w=60\nRateLimit-Remaining: 59\nRateLimit-Reset: 25\n");
    RateLimitNumbers bucket = window_numbers();
    bucket.limit = 40;
    bucket.amount = 10;
    bucket.window = seconds(13);
    bucket.reset = milliseconds(500);
    EXPECT_EQ(fields(HeaderFamily::ietf_draft_03, bucket),
              "RateLimit-Limit: 40, 10;w=13\nRateLimit-Remaining: 59\nRateLimit-Reset: 1\n");
    bucket.window = milliseconds(1500);
    EXPECT_EQ(fields(HeaderFamily::ietf_draft_03, bucket),
              "RateLimit-Limit: 40\nRateLimit-Remaining: 59\nRateLimit-Reset: 1\n");
}

TEST(RateLimitFields, Draft10) {
    RateLimitNumbers numbers = window_numbers();
    EXPECT_EQ(fields(HeaderFamily::ietf_draft_10, numbers),
              "RateLimit-Policy: \"personal token\";q=60;w=60\n"
              "RateLimit: \"personal token\";r=59;t=25\n");
    numbers.next = milliseconds(800);
    EXPECT_NE(fields(HeaderFamily::ietf_draft_10, numbers).find(";r=59;t=1\n"), std::string::npos);
    // Full: nothing more is coming.
    numbers.next = Nanos(0);
    EXPECT_NE(fields(HeaderFamily::ietf_draft_10, numbers).find(";r=59\n"), std::string::npos);
    numbers.next = std::nullopt;
    EXPECT_NE(fields(HeaderFamily::ietf_draft_10, numbers).find(";r=59\n"), std::string::npos);
    // A burst beyond the quota of a window; a window that is not whole seconds.
    numbers.limit = 40;
    numbers.amount = 10;
    numbers.window = milliseconds(2500);
    EXPECT_EQ(fields(HeaderFamily::ietf_draft_10, numbers),
              "RateLimit-Policy: \"personal token\";q=10;ration-burst=40\n"
              "RateLimit: \"personal token\";r=59\n");
}

TEST(RateLimitFields, UnitsInFlightHaveNeitherWindowNorReset) {
    RateLimitNumbers numbers = window_numbers();
    numbers.concurrent = true;
    numbers.window = Nanos(0);
    numbers.next = std::nullopt;
    EXPECT_EQ(fields(HeaderFamily::ietf_draft_10, numbers),
              "RateLimit-Policy: \"personal token\";q=60;qu=\"concurrent-requests\"\n"
              "RateLimit: \"personal token\";r=59\n");
    EXPECT_EQ(fields(HeaderFamily::ietf_draft_03, numbers),
              "RateLimit-Limit: 60\nRateLimit-Remaining: 59\n");
    EXPECT_EQ(fields(HeaderFamily::x_ratelimit, numbers),
              "X-RateLimit-Limit: 60\nX-RateLimit-Remaining: 59\n");
}

TEST(RateLimitFields, NumbersAreHeldToFifteenDigits) {
    RateLimitNumbers numbers = window_numbers();
    numbers.limit = max_field_integer;
    numbers.remaining = max_field_integer + 1;
    EXPECT_EQ(fields(HeaderFamily::ietf_draft_10, numbers),
              "RateLimit-Policy: \"personal token\";q=999999999999999;w=60\n"
              "RateLimit: \"personal token\";r=999999999999999;t=25\n");
    numbers.limit = ~std::uint64_t{0};
    EXPECT_NE(fields(HeaderFamily::x_ratelimit, numbers).find("Limit: 999999999999999\n"),
              std::string::npos);
}

TEST(RateLimitFields, AnyNameGetsThroughAStrictParserOrIsNotSent) {
    std::string longest(max_field_name_bytes, '"');
    const std::string names[] = {"a", "a \"b\" \\c", "~ !", longest};
    for (const std::string& name : names) {
        RateLimitNumbers numbers = window_numbers();
        numbers.name = name;
        numbers.limit = numbers.remaining = ~std::uint64_t{0};
        numbers.amount = max_field_integer - 1;
        numbers.next = Nanos::max();
        numbers.window = minutes(60 * 24 * 3653);
        int sent = 0;
        render_rate_limit_fields(
            HeaderFamily::ietf_draft_10, numbers, [&](std::string_view, std::string_view value) {
                const auto list = parse_sf_list(value);
                ASSERT_TRUE(list.ok()) << value << list.status();
                ASSERT_EQ(list->size(), 1U);
                EXPECT_EQ(std::get<SfItem>((*list)[0]).value, SfBareItem(name));
                EXPECT_EQ(serialize_sf_list(*list).value(), value);
                ++sent;
            });
        EXPECT_EQ(sent, 2) << name;
    }
    const std::string bad[] = {"", "caf\xc3\xa9", "a\nb", longest + "x"};
    for (const std::string& name : bad) {
        RateLimitNumbers numbers = window_numbers();
        numbers.name = name;
        EXPECT_FALSE(is_field_name_text(name));
        EXPECT_EQ(fields(HeaderFamily::ietf_draft_10, numbers), "") << name;
    }
}

TEST(RateLimitFields, NamesAreThoseThatAreSent) {
    for (const HeaderFamily family :
         {HeaderFamily::none, HeaderFamily::ratelimit_remaining_on_refusal,
          HeaderFamily::x_ratelimit, HeaderFamily::ietf_draft_03, HeaderFamily::ietf_draft_10}) {
        RateLimitNumbers numbers = window_numbers();
        numbers.refused = true;
        std::string sent;
        render_rate_limit_fields(family, numbers, [&sent](std::string_view name, std::string_view) {
            sent += std::string(name) + " ";
        });
        std::string named;
        for (const std::string_view name : rate_limit_field_names(family).names) {
            named += name.empty() ? "" : std::string(name) + " ";
        }
        EXPECT_EQ(sent, named);
    }
}

}  // namespace
}  // namespace ration
