// One `Forwarded` field line (RFC 7239 section 4), read strictly.
//
//   Forwarded         = 1#forwarded-element
//   forwarded-element = [ pair ] *( ";" [ pair ] )
//   pair              = token "=" ( token / quoted-string )
//   node              = ( IPv4 / "[" IPv6 "]" / "unknown" / obfuscated ) [ ":" port ]
//
// Blanks are taken around `;` as around `,`, never around `=`. Pure; no heap; views are not kept.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "request/address.h"

namespace ration {

inline constexpr std::size_t max_forwarded_pairs = 16;  // of one element; more is a broken line

// The last `max_hops` elements of a line, nearest first; nullopt where the element says no address
// (no `for`, "unknown", an obfuscated or unreadable node).
struct ForwardedLine {
    std::array<std::optional<IpAddress>, max_hops> hops;
    std::size_t count = 0;
};

// nullopt when the line breaks the grammar anywhere: an open quote, a bare bracket or colon, blanks
// around `=`, a parameter given twice in an element. Nothing of such a line can be believed.
[[nodiscard]] std::optional<ForwardedLine> parse_forwarded(std::string_view line);

// A port after an address, in both headers: one to five digits, 65535 at most.
[[nodiscard]] bool is_port(std::string_view text);

}  // namespace ration
