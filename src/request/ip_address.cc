// Address text, read strictly (RFC 4291 2.2, four decimal octets) and written in one form (RFC
// 5952). Whoever reads more than that -- octal octets, "127.1", a number -- reads some text as
// another address than the next program does.
#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "request/address.h"
#include "request/path.h"

namespace ration {
namespace {

constexpr std::size_t groups = 8;
using Groups = std::array<std::uint16_t, groups>;

// Takes a decimal number of at most `max` without leading zeros off the front of `text`.
std::optional<unsigned> take_number(std::string_view& text, unsigned max) {
    std::size_t digits = 0;
    unsigned value = 0;
    while (digits < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[digits]))) {
        value = value * 10 + static_cast<unsigned>(text[digits] - '0');
        if (value > max || (digits > 0 && text[0] == '0')) {
            return std::nullopt;
        }
        ++digits;
    }
    text.remove_prefix(digits);
    return digits == 0 ? std::nullopt : std::optional(value);
}

std::optional<std::array<std::uint8_t, 4>> parse_v4(std::string_view text) {
    std::array<std::uint8_t, 4> octets{};
    for (std::size_t i = 0; i < 4; ++i) {
        if (i > 0) {
            if (!text.starts_with('.')) {
                return std::nullopt;
            }
            text.remove_prefix(1);
        }
        const auto octet = take_number(text, 255);
        if (!octet) {
            return std::nullopt;
        }
        octets[i] = static_cast<std::uint8_t>(*octet);
    }
    return text.empty() ? std::optional(octets) : std::nullopt;
}

// One to four hexadecimal digits off the front.
std::optional<std::uint16_t> take_group(std::string_view& text) {
    unsigned value = 0;
    std::size_t digits = 0;
    while (digits < text.size() && hex_value(text[digits]) >= 0) {
        if (++digits > 4) {
            return std::nullopt;
        }
        value = value * 16 + static_cast<unsigned>(hex_value(text[digits - 1]));
    }
    text.remove_prefix(digits);
    return digits == 0 ? std::nullopt : std::optional(static_cast<std::uint16_t>(value));
}

// Colon-separated groups, as many as there are; an IPv4 address may stand for the last two where
// `v4_tail` allows. An empty text is no groups. nullopt on anything else.
std::optional<std::size_t> parse_groups(std::string_view text, bool v4_tail, Groups& out) {
    std::size_t count = 0;
    while (!text.empty()) {
        if (count > 0) {
            if (!text.starts_with(':')) {
                return std::nullopt;
            }
            text.remove_prefix(1);
        }
        if (v4_tail && text.find(':') == std::string_view::npos &&
            text.find('.') != std::string_view::npos) {
            const auto octets = parse_v4(text);
            if (!octets || count + 2 > groups) {
                return std::nullopt;
            }
            out[count] = static_cast<std::uint16_t>((*octets)[0] << 8 | (*octets)[1]);
            out[count + 1] = static_cast<std::uint16_t>((*octets)[2] << 8 | (*octets)[3]);
            return count + 2;
        }
        const auto group = take_group(text);
        if (!group || count == groups) {
            return std::nullopt;
        }
        out[count++] = *group;
    }
    return count;
}

std::optional<Groups> parse_v6(std::string_view text) {
    Groups result{};
    const std::size_t gap = text.find("::");
    if (gap == std::string_view::npos) {
        const auto count = parse_groups(text, true, result);
        return count == groups ? std::optional(result) : std::nullopt;
    }
    Groups tail{};
    const auto before = parse_groups(text.substr(0, gap), false, result);
    const auto after = parse_groups(text.substr(gap + 2), true, tail);
    if (!before || !after || *before + *after >= groups) {
        return std::nullopt;
    }
    std::copy_n(tail.begin(), *after, result.end() - static_cast<std::ptrdiff_t>(*after));
    return result;
}

// Drops "%eth0"; false when something else than a zone id stands after the '%'.
bool drop_zone(std::string_view& text) {
    const std::size_t mark = text.find('%');
    if (mark == std::string_view::npos) {
        return true;
    }
    const std::string_view zone = text.substr(mark + 1);
    text = text.substr(0, mark);
    return !zone.empty() && std::all_of(zone.begin(), zone.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ||
               c == '_' || c == '~';
    });
}

char* write_number(char* out, unsigned value, int base) {
    return std::to_chars(out, out + 5, value, base).ptr;
}

// The longest run of two or more zero groups, the first of equals (RFC 5952 4.2).
std::pair<std::size_t, std::size_t> zero_run(const Groups& value) {
    std::pair<std::size_t, std::size_t> best{groups, 0};
    for (std::size_t i = 0; i < groups; ++i) {
        std::size_t length = 0;
        while (i + length < groups && value[i + length] == 0) {
            ++length;
        }
        if (length >= 2 && length > best.second) {
            best = {i, length};
        }
        i += length;
    }
    return best;
}

constexpr std::array<std::uint8_t, 12> mapped_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::array<std::uint8_t, 12> nat64_prefix{0, 0x64, 0xff, 0x9b};

// The bits of a prefix that stand in its last, unfinished byte.
constexpr std::uint8_t high_bits(std::uint8_t prefix) {
    return static_cast<std::uint8_t>(0xff00 >> (prefix % 8U));
}

}  // namespace

IpAddress IpAddress::from_v4(std::span<const std::uint8_t, 4> bytes) {
    IpAddress address;
    address.v4 = true;
    std::copy(bytes.begin(), bytes.end(), address.bytes.begin());
    return address;
}

IpAddress IpAddress::from_v6(std::span<const std::uint8_t, 16> bytes) {
    if (std::equal(mapped_prefix.begin(), mapped_prefix.end(), bytes.begin()) ||
        std::equal(nat64_prefix.begin(), nat64_prefix.end(), bytes.begin())) {
        return from_v4(bytes.last<4>());
    }
    IpAddress address;
    std::copy(bytes.begin(), bytes.end(), address.bytes.begin());
    return address;
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
    if (text.find(':') == std::string_view::npos) {
        const auto octets = parse_v4(text);
        return octets ? std::optional(from_v4(*octets)) : std::nullopt;
    }
    if (!drop_zone(text)) {
        return std::nullopt;
    }
    const auto value = parse_v6(text);
    if (!value) {
        return std::nullopt;
    }
    std::array<std::uint8_t, 16> bytes;
    for (std::size_t i = 0; i < groups; ++i) {
        bytes[2 * i] = static_cast<std::uint8_t>((*value)[i] >> 8);
        bytes[2 * i + 1] = static_cast<std::uint8_t>((*value)[i] & 0xff);
    }
    return from_v6(bytes);
}

IpAddress IpAddress::cut(std::uint8_t prefix) const {
    IpAddress result = *this;
    const std::size_t whole = prefix / 8U;
    if (whole < result.bytes.size()) {
        result.bytes[whole] &= high_bits(prefix);
        std::fill(result.bytes.begin() + whole + 1, result.bytes.end(), std::uint8_t{0});
    }
    return result;
}

std::string_view IpAddress::text(std::span<char, 48> out) const {
    char* at = out.data();
    if (v4) {
        for (std::size_t i = 0; i < 4; ++i) {
            if (i > 0) {
                *at++ = '.';
            }
            at = write_number(at, bytes[i], 10);
        }
        return {out.data(), static_cast<std::size_t>(at - out.data())};
    }
    Groups value{};
    for (std::size_t i = 0; i < groups; ++i) {
        value[i] = static_cast<std::uint16_t>(bytes[2 * i] << 8 | bytes[2 * i + 1]);
    }
    const auto [gap, length] = zero_run(value);
    for (std::size_t i = 0; i < groups; ++i) {
        if (i == gap) {
            *at++ = ':';
            *at++ = ':';
            i += length - 1;
            continue;
        }
        if (i > 0 && i != gap + length) {
            *at++ = ':';
        }
        at = write_number(at, value[i], 16);
    }
    return {out.data(), static_cast<std::size_t>(at - out.data())};
}

std::optional<Cidr> Cidr::parse(std::string_view text) {
    if (text.find('%') != std::string_view::npos) {
        return std::nullopt;
    }
    const std::size_t slash = text.find('/');
    const std::string_view address_text = text.substr(0, slash);
    const auto address = IpAddress::parse(address_text);
    if (!address) {
        return std::nullopt;
    }
    const bool written_as_v6 = address_text.find(':') != std::string_view::npos;
    unsigned prefix = written_as_v6 ? 128 : 32;
    if (slash != std::string_view::npos) {
        std::string_view rest = text.substr(slash + 1);
        const auto number = take_number(rest, prefix);
        if (!number || !rest.empty()) {
            return std::nullopt;
        }
        prefix = *number;
    }
    if (written_as_v6 && address->v4) {
        if (prefix < 96) {
            return std::nullopt;
        }
        prefix -= 96;
    }
    const auto bits = static_cast<std::uint8_t>(prefix);
    return Cidr{address->cut(bits), bits};
}

bool Cidr::contains(const IpAddress& address) const {
    const std::size_t whole = prefix / 8U;
    if (address.v4 != network.v4 ||
        !std::equal(network.bytes.begin(), network.bytes.begin() + whole, address.bytes.begin())) {
        return false;
    }
    return prefix % 8U == 0 ||
           ((network.bytes[whole] ^ address.bytes[whole]) & high_bits(prefix)) == 0;
}

}  // namespace ration
