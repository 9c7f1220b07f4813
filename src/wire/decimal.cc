#include "wire/decimal.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "base/text.h"

namespace ration {
namespace {

__extension__ using i128 = __int128;

constexpr std::int64_t second = 1'000'000'000;

bool is_digit(char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
}

std::string_view take_digits(std::string_view& text) {
    const auto* end = std::find_if_not(text.begin(), text.end(), is_digit);
    const std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    text.remove_prefix(digits.size());
    return digits;
}

bool take(std::string_view& text, std::string_view any_of) {
    if (text.empty() || any_of.find(text.front()) == std::string_view::npos) {
        return false;
    }
    text.remove_prefix(1);
    return true;
}

absl::Status wrong(std::string_view text, std::string_view why) {
    return absl::InvalidArgumentError(cat("'", text.substr(0, 64), "' ", why));
}

absl::Status out_of_range(std::string_view text) {
    return absl::OutOfRangeError(
        cat("'", text.substr(0, 64), "' is outside what nanoseconds can count"));
}

// RFC 8259 section 6, split up.
struct Number {
    bool negative = false;
    std::string_view whole;
    std::string_view fraction;
    int exponent = 0;
};

bool split(std::string_view text, Number& number) {
    number.negative = take(text, "-");
    number.whole = take_digits(text);
    if (number.whole.empty() || (number.whole.size() > 1 && number.whole.front() == '0')) {
        return false;
    }
    if (take(text, ".")) {
        number.fraction = take_digits(text);
        if (number.fraction.empty()) {
            return false;
        }
    }
    if (take(text, "eE")) {
        const bool down = !text.empty() && text.front() == '-';
        take(text, "+-");
        const std::string_view digits = take_digits(text);
        if (digits.empty()) {
            return false;
        }
        int value = 0;
        for (const char c : digits) {
            value = std::min(value * 10 + (c - '0'), 100'000);
        }
        number.exponent = down ? -value : value;
    }
    return text.empty();
}

}  // namespace

std::string_view decimal_seconds(Nanos value, std::span<char, max_decimal_bytes> out) {
    const i128 nanos = value.count();
    const auto size = static_cast<std::uint64_t>(nanos < 0 ? -nanos : nanos);
    char* at = out.data();
    if (nanos < 0) {
        *at++ = '-';
    }
    at = std::to_chars(at, out.data() + out.size(), size / second).ptr;
    std::uint64_t rest = size % second;
    if (rest != 0) {
        *at++ = '.';
        for (std::uint64_t unit = second / 10; rest != 0; unit /= 10) {
            *at++ = static_cast<char>('0' + rest / unit);
            rest %= unit;
        }
    }
    return {out.data(), static_cast<std::size_t>(at - out.data())};
}

absl::StatusOr<Nanos> parse_decimal_seconds(std::string_view text) {
    Number number;
    if (text.size() > max_number_text_bytes) {
        return wrong(text,
                     cat("... is a number of more than ", max_number_text_bytes, " characters"));
    }
    if (!split(text, number)) {
        return wrong(text, "is not a decimal number");
    }
    // Digit by digit: the i-th stands at 10^place nanoseconds.
    i128 nanos = 0;
    int place = static_cast<int>(number.whole.size()) - 1 + number.exponent + 9;
    for (const std::string_view digits : {number.whole, number.fraction}) {
        for (const char c : digits) {
            const int digit = c - '0';
            if (digit != 0 && place < 0) {
                return wrong(text, "is finer than a nanosecond");
            }
            if (digit != 0 && place > 18) {
                return out_of_range(text);
            }
            i128 unit = 1;
            for (int i = 0; digit != 0 && i < place; ++i) {
                unit *= 10;
            }
            nanos += digit * unit;
            --place;
        }
    }
    if (number.negative) {
        nanos = -nanos;
    }
    if (nanos > std::numeric_limits<std::int64_t>::max() ||
        nanos < std::numeric_limits<std::int64_t>::min()) {
        return out_of_range(text);
    }
    return Nanos(static_cast<std::int64_t>(nanos));
}

std::uint64_t seconds_rounded_up(Nanos wait) {
    if (wait.count() <= 0) {
        return 0;
    }
    const auto nanos = static_cast<std::uint64_t>(wait.count());
    return (nanos + second - 1) / second;
}

std::uint64_t retry_after_seconds(Nanos wait) {
    return std::max<std::uint64_t>(seconds_rounded_up(wait), 1);
}

std::uint64_t epoch_seconds_rounded_up(Wall at) {
    return seconds_rounded_up(at.time_since_epoch());
}

Wall moment_after(Wall at, Nanos by) {
    const i128 nanos = i128{at.time_since_epoch().count()} + by.count();
    const i128 held = std::clamp<i128>(nanos, std::numeric_limits<std::int64_t>::min(),
                                       std::numeric_limits<std::int64_t>::max());
    return Wall(Nanos(static_cast<std::int64_t>(held)));
}

}  // namespace ration
