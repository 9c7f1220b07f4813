#include "client/url.h"

#include "absl/strings/ascii.h"
#include "ration/client.h"

namespace ration::client {
namespace {

using Handle = std::shared_ptr<CURLU>;

std::optional<std::string> part(const Handle& handle, CURLUPart which, unsigned flags = 0) {
    char* text = nullptr;
    if (curl_url_get(handle.get(), which, &text, flags) != CURLUE_OK) {
        return std::nullopt;
    }
    std::string copy(text);
    curl_free(text);
    return copy;
}

std::optional<Url> read(const Handle& handle) {
    const auto scheme = part(handle, CURLUPART_SCHEME);
    auto host = part(handle, CURLUPART_HOST);
    if (!scheme || !host || (*scheme != "http" && *scheme != "https") ||
        part(handle, CURLUPART_USER) || part(handle, CURLUPART_PASSWORD)) {
        return std::nullopt;
    }
    absl::AsciiStrToLower(&*host);
    curl_url_set(handle.get(), CURLUPART_HOST, host->c_str(), 0);
    curl_url_set(handle.get(), CURLUPART_FRAGMENT, nullptr, 0);
    auto url = part(handle, CURLUPART_URL, CURLU_NO_DEFAULT_PORT);
    auto path = part(handle, CURLUPART_PATH);
    if (!url || !path) {
        return std::nullopt;
    }
    Url result{std::move(*url), *scheme + "://" + *host, std::move(*path), *scheme == "https",
               handle};
    if (const auto port = part(handle, CURLUPART_PORT, CURLU_NO_DEFAULT_PORT)) {
        result.origin += ":" + *port;
    }
    return result;
}

}  // namespace

std::optional<Url> parse_url(std::string_view text) {
    const Handle handle(curl_url(), &curl_url_cleanup);
    const std::string copy(text);
    if (!handle || copy.empty() || copy.size() > max_url_bytes ||
        copy.find('\0') != std::string::npos ||
        curl_url_set(handle.get(), CURLUPART_URL, copy.c_str(), CURLU_NON_SUPPORT_SCHEME) !=
            CURLUE_OK) {
        return std::nullopt;
    }
    return read(handle);
}

std::optional<Url> resolve_url(std::string_view base, std::string_view relative) {
    if (relative.starts_with('#')) {
        return parse_url(base);  // a place in the same document, which libcurl takes for another
    }
    const Handle handle(curl_url(), &curl_url_cleanup);
    const std::string first(base);
    const std::string second(relative);
    if (!handle || second.size() > max_url_bytes || second.find('\0') != std::string::npos ||
        curl_url_set(handle.get(), CURLUPART_URL, first.c_str(), 0) != CURLUE_OK ||
        curl_url_set(handle.get(), CURLUPART_URL, second.c_str(), CURLU_NON_SUPPORT_SCHEME) !=
            CURLUE_OK) {
        return std::nullopt;
    }
    return read(handle);
}

}  // namespace ration::client
