#include "cli/call/shown.h"

#include <algorithm>

#include "base/text.h"

namespace ration {
namespace {

constexpr std::string_view left_out = "…";

// "a=1&b" as "a=…&…".
std::string names_of(std::string_view query) {
    std::string names;
    while (true) {
        const std::string_view one = query.substr(0, query.find('&'));
        if (const std::size_t equals = one.find('='); equals != std::string_view::npos) {
            names += one.substr(0, equals + 1);
        }
        names += one.empty() ? std::string_view() : left_out;
        if (one.size() == query.size()) {
            return names;
        }
        names += '&';
        query.remove_prefix(one.size() + 1);
    }
}

}  // namespace

std::string shown_url(std::string_view url) {
    std::string shown;
    if (const std::size_t scheme = url.find("://"); scheme < url.find_first_of("/?#")) {
        shown = url.substr(0, scheme + 3);
        url.remove_prefix(scheme + 3);
        const std::string_view authority = url.substr(0, url.find_first_of("/?#"));
        if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
            shown += cat(left_out, "@");
            url.remove_prefix(at + 1);
        }
    }
    const std::size_t hash = std::min(url.find('#'), url.size());
    const bool fragment = hash < url.size();
    url = url.substr(0, hash);
    const std::size_t mark = std::min(url.find('?'), url.size());
    shown += url.substr(0, mark);
    if (mark < url.size()) {
        shown += cat("?", names_of(url.substr(mark + 1)));
    }
    return fragment ? cat(shown, "#", left_out) : shown;
}

std::string shown_text(std::string_view text) {
    std::string shown;
    while (!text.empty()) {
        const std::size_t blank = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, blank);
        // What quotes it or stands before it stays, and is no part of the URL.
        const std::size_t scheme = word.find("://");
        const std::size_t begin =
            scheme == std::string_view::npos ? 0 : word.find_last_of("'\"(<=", scheme) + 1;
        const bool url = scheme != std::string_view::npos || word.starts_with('/');
        shown += word.substr(0, begin);
        shown += url ? shown_url(word.substr(begin)) : std::string(word.substr(begin));
        shown += text.substr(blank, 1);
        text.remove_prefix(std::min(blank + 1, text.size()));
    }
    return shown;
}

}  // namespace ration
