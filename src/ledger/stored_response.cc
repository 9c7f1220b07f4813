#include "ledger/stored_response.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace ration {

namespace {

void put(std::string& out, std::string_view bytes) {
    out += std::to_string(bytes.size());
    out += ':';
    out += bytes;
}

// Takes one item off the front; false when the field is damaged.
bool take(std::string_view& field, std::string_view& item) {
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), size);
    const auto digits = static_cast<std::size_t>(end - field.data());
    if (error != std::errc() || digits >= field.size() || *end != ':' ||
        field.size() - digits - 1 < size) {
        return false;
    }
    item = field.substr(digits + 1, size);
    field.remove_prefix(digits + 1 + size);
    return true;
}

bool take(std::string_view& field, std::int64_t& number) {
    std::string_view item;
    if (!take(field, item)) {
        return false;
    }
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), number);
    return error == std::errc() && end == item.data() + item.size();
}

}  // namespace

std::string pack_headers(const HeaderList& headers) {
    std::string out;
    for (const auto& [name, value] : headers) {
        put(out, name);
        put(out, value);
    }
    return out;
}

std::optional<HeaderList> unpack_headers(std::string_view field) {
    HeaderList headers;
    while (!field.empty()) {
        std::string_view name;
        std::string_view value;
        if (!take(field, name) || !take(field, value)) {
            return std::nullopt;
        }
        headers.emplace_back(name, value);
    }
    return headers;
}

std::string pack_places(const std::vector<Place>& places) {
    std::string out;
    for (const Place& place : places) {
        put(out, std::to_string(static_cast<int>(place.kind)));
        put(out, place.key);
        put(out, std::to_string(place.at));
        put(out, std::to_string(place.ends));
    }
    return out;
}

std::optional<std::vector<Place>> unpack_places(std::string_view field) {
    std::vector<Place> places;
    while (!field.empty()) {
        Place place;
        std::int64_t kind = 0;
        std::string_view key;
        if (!take(field, kind) || kind < 0 || kind > static_cast<int>(PlaceKind::quota) ||
            !take(field, key) || !take(field, place.at) || !take(field, place.ends)) {
            return std::nullopt;
        }
        place.kind = static_cast<PlaceKind>(kind);
        place.key = key;
        places.push_back(std::move(place));
    }
    return places;
}

std::string pack_numbers(const NumberList& numbers) {
    std::string out;
    for (const auto& [name, number] : numbers) {
        out += cat(out.empty() ? "" : ";", name, "=", number);
    }
    return out;
}

std::optional<NumberList> unpack_numbers(std::string_view field) {
    NumberList numbers;
    while (!field.empty()) {
        const std::string_view piece = field.substr(0, field.find(';'));
        const std::size_t equals = piece.find('=');
        std::int64_t number = 0;
        if (equals == 0 || equals == std::string_view::npos) {
            return std::nullopt;
        }
        const char* end = piece.data() + piece.size();
        const auto read = std::from_chars(piece.data() + equals + 1, end, number);
        if (read.ec != std::errc{} || read.ptr != end) {
            return std::nullopt;
        }
        numbers.emplace_back(piece.substr(0, equals), number);
        field.remove_prefix(piece.size());
        if (field.size() == 1) {
            return std::nullopt;  // a separator and nothing behind it
        }
        field.remove_prefix(std::min<std::size_t>(field.size(), 1));
    }
    return numbers;
}

}  // namespace ration
