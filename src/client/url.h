// URLs as the client needs them, read by libcurl's parser. Pure.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ration::client {

struct Url {
    std::string url;     // normal form, without fragment
    std::string origin;  // "https://api.example", the port only where it is not the scheme's own
    std::string path;    // "/v1/quote", without the query
    bool secure = false;
    // The same as libcurl keeps it, so that a transfer need not read the text again. Not to be
    // changed: threads share it.
    std::shared_ptr<CURLU> parsed;
};

// nullopt for anything but http and https, for a URL with a user name, and for what is longer than
// max_url_bytes.
[[nodiscard]] std::optional<Url> parse_url(std::string_view text);
[[nodiscard]] std::optional<Url> resolve_url(std::string_view base, std::string_view relative);

}  // namespace ration::client
