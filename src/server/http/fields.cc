#include "server/http/fields.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "base/same_word.h"

namespace ration::http {

namespace {

constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

constexpr CharTable host_table = letters_digits_and("-._~!$&'()*+,;=%");

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

bool is_forbidden_in_trailer(std::string_view name) {
    static constexpr std::array<std::string_view, 32> names = {"age",
                                                               "authorization",
                                                               "cache-control",
                                                               "content-encoding",
                                                               "content-length",
                                                               "content-range",
                                                               "content-type",
                                                               "cookie",
                                                               "date",
                                                               "expect",
                                                               "expires",
                                                               "forwarded",
                                                               "host",
                                                               "idempotency-key",
                                                               "idempotent-replayed",
                                                               "keep-alive",
                                                               "location",
                                                               "max-forwards",
                                                               "origin",
                                                               "proxy-authenticate",
                                                               "proxy-authorization",
                                                               "proxy-connection",
                                                               "range",
                                                               "retry-after",
                                                               "set-cookie",
                                                               "te",
                                                               "trailer",
                                                               "transfer-encoding",
                                                               "upgrade",
                                                               "vary",
                                                               "warning",
                                                               "connection"};
    // Servers that make variables of fields (CGI) take both for one.
    std::string hyphens(name);
    std::replace(hyphens.begin(), hyphens.end(), '_', '-');
    return is_one_of(hyphens, names) || begins_with_word(hyphens, "x-") ||
           begins_with_word(hyphens, "ration-") || begins_with_word(hyphens, "ratelimit") ||
           begins_with_word(hyphens, "access-control-") || begins_with_word(hyphens, "if-");
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
