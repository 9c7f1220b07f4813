// Small syntax of a message's head; what its field names mean is in wire/hop_fields.h.
//
// Pure; any thread.
#pragma once

#include <string_view>

#include "wire/hop_fields.h"
#include "wire/token.h"

namespace ration::http {

using ration::field_id;
using ration::FieldId;
using ration::is_field_value;
using ration::is_hop_by_hop;
using ration::is_token;
using ration::list_has;
using ration::next_list_item;
using ration::trimmed;

// A field that must not stand in a trailer section (RFC 9110 6.5.1): framing, routing,
// authentication, and whatever is read before the content.
[[nodiscard]] bool is_forbidden_in_trailer(std::string_view name);

// host[:port] of RFC 3986, without user information; not empty.
[[nodiscard]] bool is_authority(std::string_view text);

// The reason phrase of RFC 9110 and friends; empty for unknown codes.
[[nodiscard]] std::string_view reason_phrase(int status);

}  // namespace ration::http
