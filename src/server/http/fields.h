// Field names the gateway has to know, and small syntax of field values.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace ration::http {

// What a field means to a proxy.
enum class FieldId : std::uint8_t {
    other,
    connection,
    content_length,
    date,
    expect,
    host,
    keep_alive,
    proxy_authenticate,
    proxy_authorization,
    proxy_connection,
    te,
    trailer,
    transfer_encoding,
    upgrade,
    http2_settings,
    x_forwarded_for,
    x_forwarded_proto,
};

[[nodiscard]] FieldId field_id(std::string_view name);

// Fields that end at this hop (RFC 9110 7.6.1), the ones written anew among them.
[[nodiscard]] bool is_hop_by_hop(FieldId id);

// A field that a Connection header must not be able to take away: it carries identity, routing,
// framing or the meaning of the content, which both hops have to see alike.
[[nodiscard]] bool is_protected_from_connection(std::string_view name);

// A field that must not stand in a trailer section (RFC 9110 6.5.1): framing, routing,
// authentication, and whatever is read before the content.
[[nodiscard]] bool is_forbidden_in_trailer(std::string_view name);

[[nodiscard]] bool is_token(std::string_view text);  // RFC 9110 5.6.2, at least one character
// Field content: no control character but TAB.
[[nodiscard]] bool is_field_value(std::string_view text);
// host[:port] of RFC 3986, without user information; not empty.
[[nodiscard]] bool is_authority(std::string_view text);
[[nodiscard]] std::string_view trimmed(std::string_view text);  // SP and TAB

// Takes the next element off a comma-separated list; false at its end. Empty elements are skipped.
[[nodiscard]] bool next_list_item(std::string_view& list, std::string_view& item);
[[nodiscard]] bool list_has(std::string_view list, std::string_view token);  // without case

// The reason phrase of RFC 9110 and friends; empty for unknown codes.
[[nodiscard]] std::string_view reason_phrase(int status);

}  // namespace ration::http
