#include "wire/hop_fields.h"

#include <array>
#include <cstddef>
#include <utility>

#include "base/same_word.h"

namespace ration {

namespace {

constexpr std::array<std::pair<std::string_view, FieldId>, 16> known_fields = {{
    {"connection", FieldId::connection},
    {"content-length", FieldId::content_length},
    {"date", FieldId::date},
    {"expect", FieldId::expect},
    {"host", FieldId::host},
    {"keep-alive", FieldId::keep_alive},
    {"proxy-authenticate", FieldId::proxy_authenticate},
    {"proxy-authorization", FieldId::proxy_authorization},
    {"proxy-connection", FieldId::proxy_connection},
    {"te", FieldId::te},
    {"trailer", FieldId::trailer},
    {"transfer-encoding", FieldId::transfer_encoding},
    {"upgrade", FieldId::upgrade},
    {"http2-settings", FieldId::http2_settings},
    {"x-forwarded-for", FieldId::x_forwarded_for},
    {"x-forwarded-proto", FieldId::x_forwarded_proto},
}};

constexpr std::size_t longest_known = 20;
constexpr std::size_t most_of_a_length = 2;
constexpr std::uint8_t no_field = 0xff;

// Which of `known_fields` have each length: one or two are left to compare, mostly none.
constexpr auto fields_by_length = [] {
    std::array<std::array<std::uint8_t, most_of_a_length>, longest_known> table{};
    for (auto& row : table) {
        row.fill(no_field);
    }
    for (std::size_t i = 0; i < known_fields.size(); ++i) {
        auto& row = table[known_fields[i].first.size()];
        std::size_t place = 0;
        while (row.at(place) != no_field) {  // a third field of one length would not compile
            ++place;
        }
        row[place] = static_cast<std::uint8_t>(i);
    }
    return table;
}();

constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool is_protected(std::string_view name) {
    static constexpr std::array<std::string_view, 18> names = {
        "host",   "content-length", "content-type", "content-encoding", "authorization",
        "cookie", "forwarded",      "origin",       "cache-control",    "range",
        "date",   "trailer",        "set-cookie",   "idempotency-key",  "content-range",
        "via",    "x-real-ip",      "x-api-key"};
    return is_one_of(name, names) || begins_with_word(name, "x-forwarded-") ||
           begins_with_word(name, "ration-");
}

}  // namespace

FieldId field_id(std::string_view name) {
    if (name.size() >= longest_known) {
        return FieldId::other;
    }
    for (const std::uint8_t index : fields_by_length[name.size()]) {
        if (index == no_field) {
            break;
        }
        const auto& [known, id] = known_fields[index];
        if (known.front() == lower(name.front()) && same_word(known, name)) {
            return id;
        }
    }
    return FieldId::other;
}

bool is_hop_by_hop(FieldId id) {
    switch (id) {
        case FieldId::connection:
        case FieldId::keep_alive:
        case FieldId::proxy_authenticate:
        case FieldId::proxy_authorization:
        case FieldId::proxy_connection:
        case FieldId::te:
        case FieldId::transfer_encoding:
        case FieldId::upgrade:
        case FieldId::http2_settings:
            return true;
        case FieldId::other:
        case FieldId::content_length:
        case FieldId::date:
        case FieldId::expect:
        case FieldId::host:
        case FieldId::trailer:
        case FieldId::x_forwarded_for:
        case FieldId::x_forwarded_proto:
            return false;
    }
    return false;
}

bool ends_by_connection(std::string_view connection, std::string_view name) {
    return list_has(connection, name) && !is_protected(name);
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
        text.remove_prefix(1);
    }
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
        text.remove_suffix(1);
    }
    return text;
}

bool next_list_item(std::string_view& list, std::string_view& item) {
    while (!list.empty()) {
        const std::size_t comma = list.find(',');
        item = trimmed(list.substr(0, comma));
        list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
        if (!item.empty()) {
            return true;
        }
    }
    return false;
}

bool list_has(std::string_view list, std::string_view token) {
    std::string_view item;
    while (next_list_item(list, item)) {
        if (same_word(item, token)) {
            return true;
        }
    }
    return false;
}

}  // namespace ration
