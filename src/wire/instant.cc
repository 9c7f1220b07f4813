// Instants as text: RFC 3339 in both directions, IMF-fixdate out.
#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "base/text.h"
#include "wire/decimal.h"

namespace ration {
namespace {

__extension__ using i128 = __int128;

constexpr i128 second = 1'000'000'000;

// A fixed number of digits off the front.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
    if (text.size() < digits) {
        return std::nullopt;
    }
    int value = 0;
    for (const char c : text.substr(0, digits)) {
        if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) {
            return std::nullopt;
        }
        value = value * 10 + (c - '0');
    }
    text.remove_prefix(digits);
    return value;
}

bool take(std::string_view& text, std::string_view any_of) {
    if (text.empty() || any_of.find(text.front()) == std::string_view::npos) {
        return false;
    }
    text.remove_prefix(1);
    return true;
}

// Two-digit numbers joined by `separator`, each at most its bound.
template <std::size_t Count>
bool take_pairs(std::string_view& text, std::string_view separator,
                const std::array<int, Count>& at_most, std::array<int, Count>& out) {
    for (std::size_t i = 0; i < Count; ++i) {
        if (i > 0 && !take(text, separator)) {
            return false;
        }
        const auto number = take_number(text, 2);
        if (!number || *number > at_most[i]) {
            return false;
        }
        out[i] = *number;
    }
    return true;
}

std::optional<std::chrono::sys_days> take_date(std::string_view& text) {
    const auto year = take_number(text, 4);
    std::array<int, 2> month_day{};
    if (!year || !take(text, "-") || !take_pairs<2>(text, "-", {12, 31}, month_day)) {
        return std::nullopt;
    }
    const std::chrono::year_month_day date(std::chrono::year(*year),
                                           std::chrono::month(static_cast<unsigned>(month_day[0])),
                                           std::chrono::day(static_cast<unsigned>(month_day[1])));
    return date.ok() ? std::optional(std::chrono::sys_days(date)) : std::nullopt;
}

// ".5" in nanoseconds, 0 without one. nullopt: no digits, or finer than a nanosecond.
std::optional<std::int64_t> take_fraction(std::string_view& text) {
    if (!take(text, ".")) {
        return 0;
    }
    std::int64_t unit = 1'000'000'000;
    std::int64_t nanos = 0;
    bool any = false;
    while (!text.empty() && absl::ascii_isdigit(static_cast<unsigned char>(text.front()))) {
        unit /= 10;
        if (unit == 0 && text.front() != '0') {
            return std::nullopt;
        }
        nanos += unit * (text.front() - '0');
        text.remove_prefix(1);
        any = true;
    }
    return any ? std::optional(nanos) : std::nullopt;
}

// "Z" or "+05:30", in minutes east of UTC.
std::optional<int> take_offset(std::string_view& text) {
    if (take(text, "Zz")) {
        return 0;
    }
    const bool west = text.starts_with('-');
    std::array<int, 2> hours_minutes{};
    if (!take(text, "+-") || !take_pairs<2>(text, ":", {23, 59}, hours_minutes)) {
        return std::nullopt;
    }
    const int minutes = hours_minutes[0] * 60 + hours_minutes[1];
    return west ? -minutes : minutes;
}

// Nanoseconds since the epoch; nullopt: not RFC 3339 (section 5.6).
std::optional<i128> read_rfc3339(std::string_view text) {
    const auto days = take_date(text);
    std::array<int, 3> clock{};
    if (!days || !take(text, "Tt") || !take_pairs<3>(text, ":", {23, 59, 60}, clock)) {
        return std::nullopt;
    }
    const auto fraction = take_fraction(text);
    const auto offset = fraction ? take_offset(text) : std::nullopt;
    if (!offset || !text.empty()) {
        return std::nullopt;
    }
    const i128 minutes =
        i128{days->time_since_epoch().count()} * 1440 + clock[0] * 60 + clock[1] - *offset;
    if (clock[2] == 60 && (minutes % 1440 + 1440) % 1440 != 1439) {
        return std::nullopt;
    }
    return (minutes * 60 + clock[2]) * second + *fraction;
}

char* write_padded(char* at, unsigned value, int digits) {
    for (int i = digits - 1; i >= 0; --i) {
        at[i] = static_cast<char>('0' + value % 10);
        value /= 10;
    }
    return at + digits;
}

char* write_text(char* at, std::string_view text) {
    return std::copy(text.begin(), text.end(), at);
}

// A moment taken apart, fraction included.
struct Parts {
    std::chrono::year_month_day date;
    std::chrono::weekday weekday;
    unsigned hour, minute, second;
    unsigned nanos;

    explicit Parts(Wall at) {
        // Not chrono's floor: for the first day of the range it would step outside it.
        const std::int64_t total = at.time_since_epoch().count();
        constexpr std::int64_t day = 86'400'000'000'000;
        const std::int64_t days = total / day - (total % day < 0 ? 1 : 0);
        const auto rest = static_cast<std::uint64_t>(i128{total} - i128{days} * day);
        const std::chrono::sys_days midnight{std::chrono::days(days)};
        date = midnight;
        weekday = midnight;
        nanos = static_cast<unsigned>(rest % 1'000'000'000);
        const auto seconds = static_cast<unsigned>(rest / 1'000'000'000);
        hour = seconds / 3600;
        minute = seconds / 60 % 60;
        second = seconds % 60;
    }
};

char* write_clock(char* at, const Parts& parts) {
    at = write_padded(at, parts.hour, 2);
    *at++ = ':';
    at = write_padded(at, parts.minute, 2);
    *at++ = ':';
    return write_padded(at, parts.second, 2);
}

unsigned year_of(const Parts& parts) {
    return static_cast<unsigned>(static_cast<int>(parts.date.year()));
}

}  // namespace

absl::StatusOr<Wall> parse_instant(std::string_view text) {
    const bool date = text.size() > 4 && text[4] == '-';
    if (!date) {
        const absl::StatusOr<Nanos> seconds = parse_decimal_seconds(text);
        if (!seconds.ok()) {
            return seconds.status();
        }
        return Wall(*seconds);
    }
    const auto nanos = text.size() > max_number_text_bytes ? std::nullopt : read_rfc3339(text);
    const std::string shown(text.substr(0, 64));
    if (!nanos) {
        return absl::InvalidArgumentError(
            cat("'", shown, "' is not an RFC 3339 time such as 2026-03-08T06:59:59.5Z"));
    }
    if (*nanos > std::numeric_limits<std::int64_t>::max() ||
        *nanos < std::numeric_limits<std::int64_t>::min()) {
        return absl::OutOfRangeError(cat("'", shown, "' is outside what nanoseconds can count"));
    }
    return Wall(Nanos(static_cast<std::int64_t>(*nanos)));
}

std::string_view rfc3339(Wall at, std::span<char, max_decimal_bytes> out) {
    const Parts parts(at);
    char* end = write_padded(out.data(), year_of(parts), 4);
    *end++ = '-';
    end = write_padded(end, static_cast<unsigned>(parts.date.month()), 2);
    *end++ = '-';
    end = write_padded(end, static_cast<unsigned>(parts.date.day()), 2);
    *end++ = 'T';
    end = write_clock(end, parts);
    if (parts.nanos != 0) {
        *end++ = '.';
        end = write_padded(end, parts.nanos, 9);
        while (end[-1] == '0') {
            --end;
        }
    }
    *end++ = 'Z';
    return {out.data(), static_cast<std::size_t>(end - out.data())};
}

std::string_view http_date(Wall at, std::span<char, max_decimal_bytes> out) {
    constexpr std::string_view weekdays = "SunMonTueWedThuFriSat";
    constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const Parts parts(at);
    char* end = write_text(out.data(), weekdays.substr(3 * parts.weekday.c_encoding(), 3));
    end = write_text(end, ", ");
    end = write_padded(end, static_cast<unsigned>(parts.date.day()), 2);
    *end++ = ' ';
    end = write_text(end, months.substr(3 * (static_cast<unsigned>(parts.date.month()) - 1), 3));
    *end++ = ' ';
    end = write_padded(end, year_of(parts), 4);
    *end++ = ' ';
    end = write_clock(end, parts);
    end = write_text(end, " GMT");
    return {out.data(), static_cast<std::size_t>(end - out.data())};
}

}  // namespace ration
