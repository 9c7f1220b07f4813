// Decimal text to nanoseconds without a floating-point step: the digits before and after the point
// are one run of digits, and the exponent only says where in that run the nanosecond ends.
#include "workbench/instant.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "base/text.h"
#include "wire/decimal.h"

namespace ration {

namespace {

constexpr std::int64_t ns_per_second = 1'000'000'000;
constexpr std::int64_t max_span_ns = 230LL * 365 * 86'400 * ns_per_second;
constexpr std::size_t max_number_bytes = 400;

absl::Status wrong(std::string_view text, std::string_view reason) {
    return absl::InvalidArgumentError(cat("\"", text.substr(0, 60), "\" ", reason));
}

// Takes the digits at the front of `text`.
std::string_view take_digits(std::string_view& text) {
    std::size_t count = 0;
    while (count < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[count]))) {
        ++count;
    }
    const std::string_view digits = text.substr(0, count);
    text.remove_prefix(count);
    return digits;
}

// A whole number with an optional sign, all of `text`.
bool parse_small(std::string_view text, std::int64_t& out) {
    if (text.size() > 1 && text[0] == '+' && text[1] != '-') {
        text.remove_prefix(1);
    }
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, out);
    return error == std::errc() && stop == end;
}

struct Decimal {
    std::string digits;      // before and after the point, in one run
    std::int64_t point = 0;  // how many of them stand before it
};

// The unsigned part of a JSON number, all of `text`; nullopt when it is not one.
std::optional<Decimal> parse_decimal(std::string_view text) {
    const std::string_view whole = take_digits(text);
    if (whole.empty() || (whole.size() > 1 && whole[0] == '0')) {
        return std::nullopt;
    }
    Decimal decimal{std::string(whole), static_cast<std::int64_t>(whole.size())};
    if (!text.empty() && text[0] == '.') {
        text.remove_prefix(1);
        const std::string_view fraction = take_digits(text);
        if (fraction.empty()) {
            return std::nullopt;
        }
        decimal.digits += fraction;
    }
    if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
        text.remove_prefix(1);
        std::int64_t exponent = 0;
        if (text.size() > 6 || !parse_small(text, exponent)) {
            return std::nullopt;
        }
        text = {};
        decimal.point += exponent;
    }
    return text.empty() ? std::optional(std::move(decimal)) : std::nullopt;
}

// `decimal` times `unit` nanoseconds, rounded to the nearest; nullopt past max_span_ns. `unit` is a
// power of ten times a small number, so the product is exact in 128 bits.
std::optional<Nanos> scale(const Decimal& decimal, std::int64_t unit) {
    __extension__ using i128 = __int128;
    constexpr std::int64_t kept_fraction = 12;  // enough for half a nanosecond of one second
    i128 value = 0;
    const std::int64_t last = decimal.point + kept_fraction;
    const auto have = static_cast<std::int64_t>(decimal.digits.size());
    const i128 most = static_cast<i128>(max_span_ns) * 1'000'000'000'000;
    for (std::int64_t i = 0; i < last; ++i) {
        value = value * 10 + (i < have ? decimal.digits[static_cast<std::size_t>(i)] - '0' : 0);
        if (value > most) {
            return std::nullopt;
        }
        if (value == 0 && i >= have) {
            break;
        }
    }
    i128 denominator = 1;
    for (std::int64_t i = 0; i < kept_fraction; ++i) {
        denominator *= 10;
    }
    if (value > most / unit) {
        return std::nullopt;
    }
    const i128 rounded = (value * unit + denominator / 2) / denominator;
    return rounded > max_span_ns ? std::nullopt
                                 : std::optional(Nanos(static_cast<std::int64_t>(rounded)));
}

bool take_two(std::string_view& text, int& out) {
    if (text.size() < 2 || !absl::ascii_isdigit(static_cast<unsigned char>(text[0])) ||
        !absl::ascii_isdigit(static_cast<unsigned char>(text[1]))) {
        return false;
    }
    out = (text[0] - '0') * 10 + (text[1] - '0');
    text.remove_prefix(2);
    return true;
}

bool take_char(std::string_view& text, std::string_view any_of) {
    if (text.empty() || any_of.find(text[0]) == std::string_view::npos) {
        return false;
    }
    text.remove_prefix(1);
    return true;
}

std::int64_t unit_of(std::string_view name) {
    if (name == "ns") {
        return 1;
    }
    if (name == "us") {
        return 1'000;
    }
    if (name == "ms") {
        return 1'000'000;
    }
    if (name == "s" || name == "sec") {
        return ns_per_second;
    }
    if (name == "m" || name == "min") {
        return 60 * ns_per_second;
    }
    if (name == "h") {
        return 3'600 * ns_per_second;
    }
    return name == "d" ? 86'400 * ns_per_second : 0;
}

std::string_view take_word(std::string_view& text) {
    std::size_t count = 0;
    while (count < text.size() && absl::ascii_isalpha(static_cast<unsigned char>(text[count]))) {
        ++count;
    }
    const std::string_view word = text.substr(0, count);
    text.remove_prefix(count);
    return word;
}

// "1h30m", "1.5s".
std::optional<Nanos> parse_units(std::string_view text) {
    Nanos total{0};
    while (!text.empty()) {
        std::size_t count = 0;
        while (
            count < text.size() &&
            (text[count] == '.' || absl::ascii_isdigit(static_cast<unsigned char>(text[count])))) {
            ++count;
        }
        const auto number = parse_decimal(text.substr(0, count));
        text.remove_prefix(count);
        const std::int64_t unit = unit_of(take_word(text));
        const auto part = number && unit != 0 ? scale(*number, unit) : std::nullopt;
        if (!part || total + *part > Nanos(max_span_ns)) {
            return std::nullopt;
        }
        total += *part;
    }
    return total;
}

// "0:01:00.5": hours of any length, then mm:ss.
std::optional<Nanos> parse_clock(std::string_view text) {
    std::int64_t hours = 0;
    int minutes = 0;
    const std::string_view digits = take_digits(text);
    if (digits.empty() || digits.size() > 6 || !parse_small(digits, hours) ||
        !take_char(text, ":") || !take_two(text, minutes) || minutes > 59 ||
        !take_char(text, ":")) {
        return std::nullopt;
    }
    std::string_view seconds = text;
    int whole = 0;
    if (!take_two(seconds, whole) || whole > 59) {
        return std::nullopt;
    }
    const auto rest = parse_decimal(cat(whole, seconds));
    const auto parsed = rest ? scale(*rest, ns_per_second) : std::nullopt;
    return parsed
               ? std::optional(std::chrono::hours(hours) + std::chrono::minutes(minutes) + *parsed)
               : std::nullopt;
}

}  // namespace

absl::StatusOr<Nanos> parse_seconds(std::string_view number) {
    std::string_view rest = number;
    const bool negative = take_char(rest, "-");
    const auto decimal = number.size() > max_number_bytes ? std::nullopt : parse_decimal(rest);
    if (!decimal) {
        return wrong(number, "is not a number of seconds");
    }
    const auto span = scale(*decimal, ns_per_second);
    if (!span) {
        return wrong(number, "seconds are more than 230 years");
    }
    return negative ? -*span : *span;
}

namespace {

// A date whose fraction may have any number of digits; the nanosecond is rounded, as in numbers.
absl::StatusOr<Wall> parse_date(std::string_view text) {
    constexpr std::size_t kept = 10;  // the point and nine digits
    const std::size_t point = text.find('.');
    if (point == std::string_view::npos || text.size() > max_number_bytes) {
        return parse_instant(text);
    }
    const std::size_t end = std::min(text.find_first_not_of("0123456789", point + 1), text.size());
    if (end - point <= kept) {
        return parse_instant(text);
    }
    absl::StatusOr<Wall> date = parse_instant(cat(text.substr(0, point + kept), text.substr(end)));
    if (date.ok() && text[point + kept] >= '5') {
        *date += Nanos(1);
    }
    return date;
}

}  // namespace

absl::StatusOr<Wall> read_instant(std::string_view text) {
    Wall moment{};
    if (const auto seconds = parse_seconds(text); seconds.ok()) {
        moment = Wall(*seconds);
    } else if (const auto date = parse_date(text); date.ok()) {
        moment = *date;
    } else {
        return wrong(text,
                     "is neither a date such as 2026-03-01T12:00:00.25Z nor seconds since 1970");
    }
    if (moment < earliest_instant || moment >= latest_instant) {
        return wrong(text, "is not between the years 1970 and 2200");
    }
    return moment;
}

absl::StatusOr<Nanos> parse_span(std::string_view text) {
    std::string_view rest = text;
    const bool negative = !rest.empty() && rest[0] == '-';
    static_cast<void>(take_char(rest, "+-"));
    std::optional<Nanos> span;
    if (!rest.empty() && rest.size() <= max_number_bytes) {
        if (rest.find(':') != std::string_view::npos) {
            span = parse_clock(rest);
        } else if (const auto decimal = parse_decimal(rest)) {
            span = scale(*decimal, ns_per_second);
        } else {
            span = parse_units(rest);
        }
    }
    if (!span) {
        return wrong(text, "is not a span of time such as 1.5s, 250ms, 2min, 1h30m, 3d or 0:01:00");
    }
    return negative ? -*span : *span;
}

std::string decimal_seconds(Nanos span) {
    std::array<char, max_decimal_bytes> buffer;
    return std::string(decimal_seconds(span, buffer));
}

std::string rfc3339(Wall moment) {
    std::array<char, max_decimal_bytes> buffer;
    return std::string(rfc3339(moment, buffer));
}

}  // namespace ration
