// What field names mean to whoever passes a message on: which fields end at this hop, by themselves
// or because Connection names them (RFC 9110 7.6.1), and the list syntax that says so (RFC 9110
// 5.6.1).
//
// Pure; any thread.
//
//   if (is_hop_by_hop(field_id(name)) || ends_by_connection(connection_value, name)) drop(name);
#pragma once

#include <cstdint>
#include <string_view>

namespace ration {

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

// A Connection field of this value takes `name` away with it. What carries identity, routing,
// framing or the meaning of the content cannot be taken away: both hops have to see it alike.
[[nodiscard]] bool ends_by_connection(std::string_view connection, std::string_view name);

[[nodiscard]] std::string_view trimmed(std::string_view text);  // without SP and TAB around it

// Takes the next element off a comma-separated list; false at its end. Empty elements are skipped.
[[nodiscard]] bool next_list_item(std::string_view& list, std::string_view& item);
[[nodiscard]] bool list_has(std::string_view list, std::string_view token);  // without case

}  // namespace ration
