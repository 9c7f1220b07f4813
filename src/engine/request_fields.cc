// Who the gateway found, told to the upstream under names that no client can set; and the names
// that no client's request takes there.
#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/render.h"
#include "engine/subject.h"

namespace ration {
namespace {

constexpr std::size_t max_kind_bytes = 64;

// "billing_group" -> "Ration-Billing-Group".
std::string_view field_name(std::string_view kind, std::span<char, max_kind_bytes + 8> out) {
    constexpr std::string_view prefix = "Ration-";
    char* end = std::copy(prefix.begin(), prefix.end(), out.data());
    bool first = true;
    for (const char c : kind.substr(0, max_kind_bytes)) {
        *end++ = c == '_' ? '-' : first && c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
        first = c == '_' || c == '-';
    }
    return {out.data(), static_cast<std::size_t>(end - out.data())};
}

bool printable(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c != 0x7f; });
}

// An id from the directory may hold anything; in a header field it is percent-encoded where a
// control character or a byte outside ASCII would change the message.
void put_id(std::string_view kind, std::string_view id, FieldSink sink) {
    std::array<char, max_kind_bytes + 8> name;
    if (printable(id)) {
        sink(field_name(kind, name), id);
        return;
    }
    std::string encoded;
    for (const char c : id) {
        if (c >= 0x20 && c != 0x7f && c != '%') {
            encoded.push_back(c);
        } else {
            absl::StrAppend(&encoded, "%",
                            absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
        }
    }
    sink(field_name(kind, name), encoded);
}

// Same name to an upstream that maps fields to variables: an underscore reads like a hyphen there
// (RFC 3875 4.1.18). `name` is in lower case.
bool reads_as(std::string_view text, std::string_view name) {
    return std::equal(text.begin(), text.end(), name.begin(), name.end(), [](char c, char wanted) {
        return c == wanted || (c == '_' && wanted == '-') ||
               (c >= 'A' && c <= 'Z' && c + ('a' - 'A') == wanted);
    });
}

}  // namespace

bool is_kept_from_upstream(std::string_view name) {
    constexpr std::string_view own = "ration-";
    constexpr std::array<std::string_view, 5> overrides = {"x-http-method-override",
                                                           "x-http-method", "x-method-override",
                                                           "x-original-url", "x-rewrite-url"};
    if (name.size() >= own.size() && reads_as(name.substr(0, own.size()), own)) {
        return true;
    }
    return std::any_of(overrides.begin(), overrides.end(),
                       [name](std::string_view known) { return reads_as(name, known); });
}

void render_request_fields(const Exchange& exchange, FieldSink sink) {
    sink("Ration-Request-Id", exchange.request.id);
    std::array<char, 64> address;
    sink("Ration-Address", exchange.address.text(address));
    sink("Ration-Credential", exchange.policy().kinds[exchange.kind]);
    const auto& bound = exchange.policy().bound_entities;
    for (const auto& [kind, selector] : bound) {
        if (const auto id = entity_id(exchange, kind)) {
            put_id(kind, *id, sink);
        }
    }
    if (exchange.credential == nullptr) {
        return;
    }
    for (const auto& [kind, entity] : exchange.credential->entities) {
        const bool from_request = std::any_of(bound.begin(), bound.end(),
                                              [&](const auto& pair) { return pair.first == kind; });
        if (!from_request) {
            put_id(kind, entity->id, sink);
        }
    }
}

}  // namespace ration
