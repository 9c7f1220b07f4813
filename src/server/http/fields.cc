#include "server/http/fields.h"

#include <array>
#include <cstddef>
#include <utility>

#include "request/header.h"

namespace ration::http {

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

constexpr std::array<bool, 256> make_table(std::string_view extra, bool token) {
    std::array<bool, 256> table{};
    for (int c = 0; c < 256; ++c) {
        const bool alnum =
            (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        table[static_cast<std::size_t>(c)] =
            token ? alnum : (c == '\t' || (c >= 0x20 && c != 0x7f));
    }
    for (const char c : extra) {
        table[static_cast<unsigned char>(c)] = true;
    }
    return table;
}

constexpr auto token_table = make_table("!#$%&'*+-.^_`|~", true);
constexpr auto value_table = make_table("", false);
constexpr auto host_table = make_table("-._~!$&'()*+,;=%", true);

bool all_in(const std::array<bool, 256>& table, std::string_view text) {
    for (const char c : text) {
        if (!table[static_cast<unsigned char>(c)]) {
            return false;
        }
    }
    return true;
}

template <std::size_t N>
bool one_of(const std::array<std::string_view, N>& names, std::string_view name) {
    for (const std::string_view known : names) {
        if (equal_ignoring_case(known, name)) {
            return true;
        }
    }
    return false;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
    return text.size() >= prefix.size() &&
           equal_ignoring_case(text.substr(0, prefix.size()), prefix);
}

bool is_port(std::string_view text) {
    if (text.size() > 5) {
        return false;
    }
    unsigned value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') {
            return false;
        }
        value = value * 10 + static_cast<unsigned>(c - '0');
    }
    return value <= 65535;
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
        if (known.front() == lower(name.front()) && equal_ignoring_case(known, name)) {
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

bool is_protected_from_connection(std::string_view name) {
    static constexpr std::array<std::string_view, 18> names = {
        "host",   "content-length", "content-type", "content-encoding", "authorization",
        "cookie", "forwarded",      "origin",       "cache-control",    "range",
        "date",   "trailer",        "set-cookie",   "idempotency-key",  "content-range",
        "via",    "x-real-ip",      "x-api-key"};
    return one_of(names, name) || starts_with_ignoring_case(name, "x-forwarded-") ||
           starts_with_ignoring_case(name, "ration-");
}

bool is_forbidden_in_trailer(std::string_view name) {
    static constexpr std::array<std::string_view, 24> names = {"authorization",
                                                               "cache-control",
                                                               "content-encoding",
                                                               "content-length",
                                                               "content-range",
                                                               "content-type",
                                                               "cookie",
                                                               "expect",
                                                               "forwarded",
                                                               "host",
                                                               "idempotency-key",
                                                               "keep-alive",
                                                               "max-forwards",
                                                               "origin",
                                                               "proxy-authenticate",
                                                               "proxy-authorization",
                                                               "proxy-connection",
                                                               "range",
                                                               "set-cookie",
                                                               "te",
                                                               "trailer",
                                                               "transfer-encoding",
                                                               "upgrade",
                                                               "connection"};
    return one_of(names, name) || starts_with_ignoring_case(name, "x-") ||
           starts_with_ignoring_case(name, "ration-") ||
           starts_with_ignoring_case(name, "ratelimit") ||
           starts_with_ignoring_case(name, "access-control-") ||
           starts_with_ignoring_case(name, "if-");
}

bool is_token(std::string_view text) {
    return !text.empty() && all_in(token_table, text);
}

bool is_field_value(std::string_view text) {
    return all_in(value_table, text);
}

bool is_authority(std::string_view text) {
    std::string_view host = text;
    std::string_view port;
    if (text.starts_with('[')) {
        const std::size_t end = text.find(']');
        if (end == std::string_view::npos || end == 1) {
            return false;
        }
        for (const char c : text.substr(1, end - 1)) {
            const char l = lower(c);
            if (!((l >= '0' && l <= '9') || (l >= 'a' && l <= 'f') || l == ':' || l == '.')) {
                return false;
            }
        }
        const std::string_view rest = text.substr(end + 1);
        return rest.empty() || (rest.front() == ':' && is_port(rest.substr(1)));
    }
    if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
        host = text.substr(0, colon);
        port = text.substr(colon + 1);
    }
    return !host.empty() && all_in(host_table, host) && is_port(port);
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
        if (equal_ignoring_case(item, token)) {
            return true;
        }
    }
    return false;
}

std::string_view reason_phrase(int status) {
    static constexpr std::array<std::pair<int, std::string_view>, 44> phrases = {{
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {203, "Non-Authoritative Information"},
        {204, "No Content"},
        {205, "Reset Content"},
        {206, "Partial Content"},
        {300, "Multiple Choices"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {402, "Payment Required"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {426, "Upgrade Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    }};
    for (const auto& [code, phrase] : phrases) {
        if (code == status) {
            return phrase;
        }
    }
    return {};
}

}  // namespace ration::http
