#include "request/credential.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/ascii.h"

namespace ration {
namespace {

constexpr std::string_view authorization = "Authorization";
constexpr PresentedCredential unrecognised{Presented::unrecognised, 0, {}};

std::string_view place_of(const CredentialRule& rule) {
    return rule.source == CredentialSource::bearer ? authorization : std::string_view(rule.name);
}

bool same_place(const CredentialRule& a, const CredentialRule& b) {
    if (a.source == CredentialSource::bearer && b.source == CredentialSource::bearer) {
        return true;
    }
    return a.source != CredentialSource::cookie && b.source != CredentialSource::cookie &&
           equal_ignoring_case(place_of(a), place_of(b));
}

constexpr std::array<bool, 256> b64token_bytes = [] {
    std::array<bool, 256> table{};
    for (const char c : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                         "0123456789-._~+/")) {
        table[static_cast<unsigned char>(c)] = true;
    }
    return table;
}();

// RFC 6750 2.1: b64token = 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="
bool is_b64token(std::string_view text) {
    while (text.ends_with('=')) {
        text.remove_suffix(1);
    }
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return b64token_bytes[static_cast<unsigned char>(c)];
    });
}

bool is_graphic(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isgraph(static_cast<unsigned char>(c));
    });
}

// RFC 6265 4.1.1: cookie-octet, which leaves out blanks, quotes, commas, semicolons, backslashes.
bool is_cookie_octets(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '"' && c != ',' &&
               c != ';' && c != '\\';
    });
}

// The token of "Bearer T"; nullopt when the field has another scheme or shape.
std::optional<std::string_view> bearer_token(std::string_view value) {
    constexpr std::string_view scheme = "Bearer";
    if (!equal_ignoring_case(value.substr(0, scheme.size()), scheme)) {
        return std::nullopt;
    }
    std::string_view token = value.substr(scheme.size());
    const std::size_t blanks = std::min(token.find_first_not_of(' '), token.size());
    token.remove_prefix(blanks);
    if (blanks == 0 || !is_b64token(token)) {
        return std::nullopt;
    }
    return token;
}

// The rule of that source and place whose prefix fits `value` best.
template <typename Applies>
PresentedCredential best_rule(std::span<const CredentialRule> rules, std::string_view value,
                              Applies applies) {
    PresentedCredential best{.state = Presented::unrecognised, .secret = value};
    std::size_t longest = 0;
    for (std::size_t i = 0; i < rules.size(); ++i) {
        const CredentialRule& rule = rules[i];
        if (!applies(rule) || !value.starts_with(rule.prefix)) {
            continue;
        }
        if (best.state == Presented::unrecognised || rule.prefix.size() > longest) {
            best.state = Presented::recognised;
            best.rule = static_cast<std::uint16_t>(i);
            longest = rule.prefix.size();
        }
    }
    return best;
}

// What the fields named `place` present.
PresentedCredential at_place(std::span<const CredentialRule> rules, std::span<const Header> headers,
                             std::string_view place) {
    const Header* first = nullptr;
    for (const Header& header : headers) {
        if (!equal_ignoring_case(header.name, place)) {
            continue;
        }
        if (first != nullptr) {
            return unrecognised;
        }
        first = &header;
    }
    if (first == nullptr) {
        return {};
    }
    const std::string_view value = without_blanks(first->value);
    if (equal_ignoring_case(place, authorization)) {
        if (const auto token = bearer_token(value)) {
            return best_rule(rules, *token, [](const CredentialRule& rule) {
                return rule.source == CredentialSource::bearer;
            });
        }
    }
    if (!is_graphic(value)) {
        return unrecognised;
    }
    return best_rule(rules, value, [place](const CredentialRule& rule) {
        return rule.source == CredentialSource::header && equal_ignoring_case(rule.name, place);
    });
}

PresentedCredential from_headers(std::span<const CredentialRule> rules,
                                 std::span<const Header> headers) {
    PresentedCredential found;
    for (std::size_t i = 0; i < rules.size(); ++i) {
        if (rules[i].source == CredentialSource::cookie ||
            std::any_of(rules.begin(), rules.begin() + static_cast<std::ptrdiff_t>(i),
                        [&](const CredentialRule& rule) { return same_place(rule, rules[i]); })) {
            continue;
        }
        const PresentedCredential here = at_place(rules, headers, place_of(rules[i]));
        if (here.state == Presented::nothing) {
            continue;
        }
        if (found.state != Presented::nothing) {
            return unrecognised;
        }
        found = here;
    }
    return found;
}

// The value of one cookie over all Cookie fields.
struct CookieValue {
    std::string_view value;
    bool present = false;
    bool bad = false;  // breaks the grammar, or two values under one name
};

void read_cookie_pair(std::string_view pair, std::string_view name, CookieValue& cookie) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || without_blanks(pair.substr(0, equals)) != name) {
        return;
    }
    std::string_view value = without_blanks(pair.substr(equals + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
        value = value.substr(1, value.size() - 2);
    }
    cookie.bad =
        cookie.bad || !is_cookie_octets(value) || (cookie.present && cookie.value != value);
    cookie.present = true;
    cookie.value = value;
}

CookieValue find_cookie(std::span<const Header> headers, std::string_view name) {
    CookieValue cookie;
    for (const Header& header : headers) {
        if (!equal_ignoring_case(header.name, "Cookie")) {
            continue;
        }
        std::string_view rest = header.value;
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find(';'), rest.size());
            read_cookie_pair(rest.substr(0, end), name, cookie);
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
    }
    return cookie;
}

PresentedCredential from_cookies(std::span<const CredentialRule> rules,
                                 std::span<const Header> headers) {
    for (const CredentialRule& rule : rules) {
        if (rule.source != CredentialSource::cookie) {
            continue;
        }
        const CookieValue cookie = find_cookie(headers, rule.name);
        if (cookie.bad) {
            return unrecognised;
        }
        if (cookie.value.empty()) {
            continue;
        }
        const PresentedCredential found =
            best_rule(rules, cookie.value, [&rule](const CredentialRule& other) {
                return other.source == CredentialSource::cookie && other.name == rule.name;
            });
        if (found.state == Presented::recognised) {
            return found;
        }
    }
    return {};
}

}  // namespace

PresentedCredential find_credential(std::span<const CredentialRule> rules,
                                    std::span<const Header> headers) {
    const PresentedCredential found = from_headers(rules, headers);
    return found.state == Presented::nothing ? from_cookies(rules, headers) : found;
}

}  // namespace ration
