#include "server/access_log/json_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include "base/json_ascii.h"
#include "base/utf8.h"
#include "wire/decimal.h"

namespace ration {

namespace {

constexpr auto plain_bytes = [] {
    std::array<bool, 256> table{};
    for (std::size_t c = 0x20; c < 0x7f; ++c) {
        table[c] = c != '"' && c != '\\';
    }
    return table;
}();

// How many bytes at the start of `text` stand for themselves in a JSON string.
std::size_t plain_length(std::string_view text) {
    std::size_t length = 0;
    while (length < text.size() && plain_bytes[static_cast<unsigned char>(text[length])]) {
        ++length;
    }
    return length;
}

// `digits` decimal places, at least; zero-padded.
void append_padded(std::string& out, std::uint64_t value, int digits) {
    std::array<char, 20> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    const auto length = static_cast<int>(end - text.data());
    out.append(static_cast<std::size_t>(digits > length ? digits - length : 0), '0');
    out.append(text.data(), end);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text, std::size_t most) {
    out += '"';
    std::size_t i = 0;
    while (i < text.size() && i < most) {
        // Nearly all text is a run of plain characters, and that is one copy.
        const std::size_t plain = plain_length(text.substr(i, most - i));
        out.append(text, i, plain);
        i += plain;
        if (i >= text.size() || i >= most) {
            break;
        }
        if (static_cast<unsigned char>(text[i]) < 0x80U) {
            append_json_ascii(out, text[i++]);
            continue;
        }
        const std::size_t length = utf8_length(text.substr(i));
        if (length == 0) {
            append_json_byte(out, static_cast<unsigned char>(text[i++]));
        } else {
            out += text.substr(i, length);
            i += length;
        }
    }
    if (i < text.size()) {
        out += "...";
    }
    out += '"';
}

void append_json_number(std::string& out, std::int64_t value) {
    std::array<char, 24> text{};
    out.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
}

void append_json_seconds(std::string& out, Nanos value) {
    std::array<char, max_decimal_bytes> text{};
    out += decimal_seconds(value, text);
}

void append_json_millis(std::string& out, Nanos value) {
    constexpr Nanos most = Nanos::max() / 1000;
    append_json_seconds(out, std::clamp(value, -most, most) * 1000);
}

void append_json_time(std::string& out, Wall at) {
    const auto day = std::chrono::floor<std::chrono::days>(at);
    const std::chrono::year_month_day date(day);
    const auto millis =
        static_cast<std::uint64_t>(std::chrono::floor<std::chrono::milliseconds>(at - day).count());
    out += '"';
    append_padded(out, static_cast<std::uint64_t>(static_cast<int>(date.year())), 4);
    out += '-';
    append_padded(out, static_cast<unsigned>(date.month()), 2);
    out += '-';
    append_padded(out, static_cast<unsigned>(date.day()), 2);
    out += 'T';
    append_padded(out, millis / 3'600'000, 2);
    out += ':';
    append_padded(out, millis / 60'000 % 60, 2);
    out += ':';
    append_padded(out, millis / 1000 % 60, 2);
    out += '.';
    append_padded(out, millis % 1000, 3);
    out += "Z\"";
}

}  // namespace ration
