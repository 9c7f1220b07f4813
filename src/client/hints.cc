#include "client/hints.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "wire/http_date.h"

namespace ration::client {
namespace {

__extension__ using i128 = __int128;

constexpr i128 second = 1'000'000'000;
constexpr i128 first_moment = second * 1'000'000'000;  // smaller numbers are delays
constexpr std::size_t millisecond_digits = 13;
constexpr std::size_t most_digits = 15;  // more saturate

struct Number {
    i128 nanos = 0;  // as if it were seconds, rounded up
    std::size_t digits = 0;
};

bool all_digits(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(),
                                        [](unsigned char c) { return absl::ascii_isdigit(c); });
}

i128 fraction_of(std::string_view digits) {
    i128 unit = second;
    i128 nanos = 0;
    bool more = false;
    for (const char c : digits) {
        unit /= 10;
        nanos += unit * (c - '0');
        more = more || (unit == 0 && c != '0');
    }
    return nanos + (more ? 1 : 0);
}

std::optional<Number> parse_number(std::string_view text) {
    const std::size_t point = text.find('.');
    std::string_view whole = text.substr(0, point);
    const std::string_view fraction =
        point == std::string_view::npos ? "0" : text.substr(point + 1);
    if (!all_digits(whole) || !all_digits(fraction)) {
        return std::nullopt;
    }
    whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));
    if (whole.size() > most_digits) {
        return Number{i128{longest_hint.count()} * 1000 * second, whole.size()};
    }
    i128 value = 0;
    for (const char c : whole) {
        value = value * 10 + (c - '0');
    }
    return Number{value * second + fraction_of(fraction), whole.size()};
}

Nanos bounded_wait(i128 nanos) {
    return Nanos(static_cast<std::int64_t>(std::clamp(nanos, i128{0}, i128{longest_hint.count()})));
}

}  // namespace

std::optional<DelayOrMoment> parse_delay_or_moment(std::string_view text, Wall now) {
    const auto number = parse_number(text);
    if (!number) {
        return std::nullopt;
    }
    if (number->digits != millisecond_digits && number->nanos < first_moment) {
        return DelayOrMoment{bounded_wait(number->nanos), std::nullopt};
    }
    const i128 at =
        number->digits == millisecond_digits ? (number->nanos + 999) / 1000 : number->nanos;
    const i128 most = Nanos::max().count();
    return DelayOrMoment{bounded_wait(at - now.time_since_epoch().count()),
                         Wall(Nanos(static_cast<std::int64_t>(std::min(at, most))))};
}

std::optional<Nanos> parse_retry_after(std::string_view text, Wall now) {
    text = trim_blanks(text);
    Nanos wait{0};
    if (const auto number = parse_delay_or_moment(text, now)) {
        wait = number->wait;
    } else if (const auto date = parse_http_date(text, now)) {
        wait =
            bounded_wait(i128{date->time_since_epoch().count()} - now.time_since_epoch().count());
    }
    return wait > Nanos(0) ? std::optional(wait) : std::nullopt;
}

Wall server_now(std::optional<std::string_view> date, Wall now) {
    const auto told = date ? parse_http_date(trim_blanks(*date), now) : std::nullopt;
    return told.value_or(now);
}

std::string_view trim_blanks(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) {
        return {};
    }
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

}  // namespace ration::client
