// What the caller presents: a bearer token by prefix, an API key header, or a cookie.
//
// Pure; views into the request's headers. Whether the secret is known is the directory's matter.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "request/header.h"

namespace ration {

enum class CredentialSource : std::uint8_t { bearer, header, cookie };

// One kind of credential and where it is found. `prefix` and `suffix` come from a pattern such as
// "pk_*"; an empty prefix matches any value.
struct CredentialRule {
    std::string kind;
    CredentialSource source = CredentialSource::bearer;
    std::string name;    // header or cookie name; unused for bearer
    std::string prefix;
};

enum class Presented : std::uint8_t {
    nothing,       // no credential at all: anonymous
    recognised,    // matches rule `rule`
    unrecognised,  // something stands where credentials stand, but no rule fits, or it is ambiguous
};

struct PresentedCredential {
    Presented state = Presented::nothing;
    std::uint16_t rule = 0;   // index into the rules, when recognised
    std::string_view secret;  // the value, when there is one
};

// Bearer tokens and header keys come before cookies, whatever the order of the rules, so a request
// with a token and a session is judged by its token. The scheme compares without case and may be
// followed by several blanks; anything else ("x Bearer T", two Authorization fields, a token with
// characters outside RFC 6750's b64token) is `unrecognised`. A cookie value that is no rule's is
// `nothing`.
[[nodiscard]] PresentedCredential find_credential(std::span<const CredentialRule> rules,
                                                  std::span<const Header> headers);

}  // namespace ration
