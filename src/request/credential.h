// What the caller presents: a bearer token by prefix, an API key header, or a cookie.
//
// Pure; views into the request's headers. Whether the secret is known is the directory's matter.
//
// A place is a header field that some rule reads: Authorization for bearer rules, the rule's own
// field for key headers. A field that no rule reads is not looked at. Anything that leaves two ways
// to say who is calling is `unrecognised`, since the limiter and the API could choose differently:
// two fields of one place, two places filled at once, one cookie name with two values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "request/header.h"

namespace ration {

enum class CredentialSource : std::uint8_t { bearer, header, cookie };

// One kind of credential and where it is found. `prefix` comes from a pattern such as "pk_*"; an
// empty prefix matches any value. Of several prefixes that fit the longest wins.
struct CredentialRule {
    std::string kind;
    CredentialSource source = CredentialSource::bearer;
    std::string name;  // header or cookie name; unused for bearer
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
// characters outside RFC 6750's b64token, a key with blanks in it) is `unrecognised`. A header rule
// named Authorization reads the whole field, where no bearer token stands.
//
// Cookies are read as RFC 6265 writes them, over all Cookie fields; quotes around a value are not
// part of it. A value that is no rule's is `nothing`; one that breaks the grammar, or the same name
// with another value, is `unrecognised`. Several rules' cookies: the first rule's.
[[nodiscard]] PresentedCredential find_credential(std::span<const CredentialRule> rules,
                                                  std::span<const Header> headers);

}  // namespace ration
