#include "server/config/units.h"

#include <array>
#include <charconv>
#include <limits>

#include "base/text.h"

namespace ration {

namespace {

constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

struct Unit {
    std::string_view name;
    std::uint64_t factor;
};

// From small to large; of two names for one factor the first is written.
constexpr std::array size_units{Unit{"B", 1}, Unit{"", 1}, Unit{"KiB", 1ULL << 10},
                                Unit{"MiB", 1ULL << 20}, Unit{"GiB", 1ULL << 30}};
constexpr std::array duration_units{Unit{"ns", 1}, Unit{"ms", 1'000'000}, Unit{"s", 1'000'000'000},
                                    Unit{"min", 60'000'000'000}, Unit{"h", 3'600'000'000'000}};

template <std::size_t count>
std::string text_of(std::uint64_t value, const std::array<Unit, count>& units) {
    const Unit* best = units.data();
    for (const Unit& unit : units) {
        if (unit.factor > best->factor && value >= unit.factor && value % unit.factor == 0) {
            best = &unit;
        }
    }
    return cat(value / best->factor, best->name);
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
    const char* const end = text.data() + text.size();
    std::uint64_t number = 0;
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || rest == text.data()) {
        return std::nullopt;
    }
    const std::string_view name(rest, static_cast<std::size_t>(end - rest));
    for (const Unit& unit : size_units) {
        if (unit.name == name && number <= most / unit.factor) {
            return number * unit.factor;
        }
    }
    return std::nullopt;
}

std::string size_text(std::uint64_t bytes) {
    return text_of(bytes, size_units);
}

std::string duration_text(Nanos duration) {
    return text_of(static_cast<std::uint64_t>(duration.count()), duration_units);
}

}  // namespace ration
