#include "wire/http_date.h"

#include <array>
#include <chrono>
#include <limits>

#include "absl/strings/ascii.h"
#include "base/same_word.h"

namespace ration {
namespace {

constexpr std::size_t max_bytes = 40;
constexpr std::array<std::string_view, 7> days = {"monday", "tuesday",  "wednesday", "thursday",
                                                  "friday", "saturday", "sunday"};
constexpr std::array<std::string_view, 12> months = {"jan", "feb", "mar", "apr", "may", "jun",
                                                     "jul", "aug", "sep", "oct", "nov", "dec"};

// Reads `text` front to back; after the first thing that is not there, `good` stays false.
struct Cursor {
    std::string_view text;
    bool good = true;

    void literal(std::string_view expected) {
        good = good && same_word(text.substr(0, expected.size()), expected);
        text.remove_prefix(good ? expected.size() : 0);
    }
    int number(std::size_t digits) {
        int value = 0;
        for (std::size_t i = 0; good && i < digits; ++i) {
            good = i < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[i]));
            value = good ? value * 10 + (text[i] - '0') : value;
        }
        text.remove_prefix(good ? digits : 0);
        return value;
    }
    unsigned month() {
        for (unsigned i = 0; good && i < months.size(); ++i) {
            if (same_word(text.substr(0, 3), months[i])) {
                text.remove_prefix(3);
                return i + 1;
            }
        }
        good = false;
        return 1;
    }
    std::chrono::seconds time_of_day() {
        const int hour = number(2);
        literal(":");
        const int minute = number(2);
        literal(":");
        const int second = number(2);
        good = good && hour <= 23 && minute <= 59 && second <= 60;  // 60: a leap second
        return std::chrono::seconds(hour * 3600 + minute * 60 + second);
    }
};

std::optional<Wall> moment(const Cursor& cursor, std::chrono::year_month_day date,
                           std::chrono::seconds time) {
    if (!cursor.good || !cursor.text.empty() || !date.ok()) {
        return std::nullopt;
    }
    const auto at = std::chrono::sys_days(date).time_since_epoch() + time;
    constexpr auto most = std::chrono::floor<std::chrono::seconds>(Nanos::max());
    if (at >= most) {
        return Wall(Nanos::max());
    }
    return at < std::chrono::seconds(0) ? Wall{} : Wall(Nanos(at));
}

std::chrono::year_month_day date_of(int year, unsigned month, int day) {
    return {std::chrono::year(year), std::chrono::month(month),
            std::chrono::day(static_cast<unsigned>(day))};
}

std::optional<Wall> fixed_date(Cursor cursor) {  // behind "Mon"
    cursor.literal(", ");
    const int day = cursor.number(2);
    cursor.literal(" ");
    const unsigned month = cursor.month();
    cursor.literal(" ");
    const int year = cursor.number(4);
    cursor.literal(" ");
    const auto time = cursor.time_of_day();
    cursor.literal(" GMT");
    return moment(cursor, date_of(year, month, day), time);
}

std::optional<Wall> rfc850_date(Cursor cursor, Wall now) {  // behind "Monday"
    cursor.literal(", ");
    const int day = cursor.number(2);
    cursor.literal("-");
    const unsigned month = cursor.month();
    cursor.literal("-");
    const int two_digits = cursor.number(2);
    cursor.literal(" ");
    const auto time = cursor.time_of_day();
    cursor.literal(" GMT");
    const std::chrono::year_month_day today(std::chrono::floor<std::chrono::days>(now));
    const int this_year = static_cast<int>(today.year());
    const int year = this_year - this_year % 100 + two_digits;
    return moment(cursor, date_of(year > this_year + 50 ? year - 100 : year, month, day), time);
}

std::optional<Wall> asctime_date(Cursor cursor) {  // behind "Mon"
    cursor.literal(" ");
    const unsigned month = cursor.month();
    cursor.literal(" ");
    int day = 0;
    if (cursor.text.starts_with(' ')) {
        cursor.literal(" ");
        day = cursor.number(1);
    } else {
        day = cursor.number(2);
    }
    cursor.literal(" ");
    const auto time = cursor.time_of_day();
    cursor.literal(" ");
    const int year = cursor.number(4);
    return moment(cursor, date_of(year, month, day), time);
}

}  // namespace

std::optional<Wall> parse_http_date(std::string_view text, Wall now) {
    if (text.size() > max_bytes) {
        return std::nullopt;
    }
    for (const std::string_view day : days) {
        if (text.size() <= 3 || !same_word(text.substr(0, 3), day.substr(0, 3))) {
            continue;
        }
        if (text[3] == ',') {
            return fixed_date({text.substr(3)});
        }
        if (text[3] == ' ') {
            return asctime_date({text.substr(3)});
        }
        const std::string_view rest = text.substr(std::min(text.size(), day.size()));
        if (same_word(text.substr(0, day.size()), day) && rest.starts_with(',')) {
            return rfc850_date({rest}, now);
        }
    }
    return std::nullopt;
}

}  // namespace ration
