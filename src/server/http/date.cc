#include "server/http/date.h"

#include <chrono>
#include <cstring>

namespace ration::http {

namespace {

void put_two(char* at, unsigned value) {
    at[0] = static_cast<char>('0' + value / 10 % 10);
    at[1] = static_cast<char>('0' + value % 10);
}

}  // namespace

void write_date(Wall at, std::array<char, date_bytes>& out) {
    static constexpr char days[] = "SunMonTueWedThuFriSat";
    static constexpr char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const auto day = std::chrono::floor<std::chrono::days>(at);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss time(std::chrono::floor<std::chrono::seconds>(at - day));
    std::memcpy(out.data(), "Sun, 00 Jan 0000 00:00:00 GMT", date_bytes);
    std::memcpy(out.data(), days + std::chrono::weekday(day).c_encoding() * 3, 3);
    put_two(out.data() + 5, static_cast<unsigned>(date.day()));
    std::memcpy(out.data() + 8, months + (static_cast<unsigned>(date.month()) - 1) * 3, 3);
    const auto year = static_cast<unsigned>(static_cast<int>(date.year()));
    put_two(out.data() + 12, year / 100);
    put_two(out.data() + 14, year % 100);
    put_two(out.data() + 17, static_cast<unsigned>(time.hours().count()));
    put_two(out.data() + 20, static_cast<unsigned>(time.minutes().count()));
    put_two(out.data() + 23, static_cast<unsigned>(time.seconds().count()));
}

std::string_view DateCache::text(Wall now) {
    const std::int64_t second = now.time_since_epoch() / std::chrono::seconds(1);
    if (second != second_) {
        write_date(now, text_);
        second_ = second;
    }
    return {text_.data(), text_.size()};
}

}  // namespace ration::http
