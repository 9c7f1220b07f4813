#include "engine/cors.h"

#include <algorithm>

namespace ration {
namespace {

bool allows(const Cors& cors, std::string_view origin) {
    return cors.any_origin ||
           std::find(cors.origins.begin(), cors.origins.end(), origin) != cors.origins.end();
}

// True when the answer depends on who asks, so that a cache must keep answers apart.
bool depends_on_origin(const Cors& cors) {
    return !cors.any_origin || cors.credentials;
}

void list_or_asked(std::string_view name, std::string_view list, const Header* asked,
                   FieldSink sink) {
    if (!list.empty()) {
        sink(name, list);
    } else if (asked != nullptr && !asked->value.empty()) {
        sink(name, asked->value);
    }
}

}  // namespace

void cors_fields(const Cors& cors, const CorsText& text, std::string_view origin, FieldSink sink) {
    if (!cors.enabled) {
        return;
    }
    if (depends_on_origin(cors)) {
        sink("Vary", "Origin");
        if (origin.empty() || !allows(cors, origin)) {
            return;
        }
        sink("Access-Control-Allow-Origin", origin);
    } else {
        sink("Access-Control-Allow-Origin", "*");
    }
    if (cors.credentials) {
        sink("Access-Control-Allow-Credentials", "true");
    }
    if (!text.expose.empty()) {
        sink("Access-Control-Expose-Headers", text.expose);
    }
}

void preflight_fields(const Cors& cors, const CorsText& text, std::span<const Header> headers,
                      FieldSink sink) {
    const Header* origin = find_header(headers, "Origin");
    if (origin == nullptr || !allows(cors, origin->value)) {
        return;
    }
    list_or_asked("Access-Control-Allow-Methods", text.methods,
                  find_header(headers, "Access-Control-Request-Method"), sink);
    list_or_asked("Access-Control-Allow-Headers", text.headers,
                  find_header(headers, "Access-Control-Request-Headers"), sink);
    sink("Access-Control-Max-Age", text.max_age);
}

bool is_cors_field(std::string_view name) {
    constexpr std::string_view prefix = "Access-Control-";
    return name.size() > prefix.size() &&
           equal_ignoring_case(name.substr(0, prefix.size()), prefix);
}

}  // namespace ration
