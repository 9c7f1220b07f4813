#include "client/redirect.h"

#include "client/url.h"

namespace ration::client {
namespace {

Redirection stop(StopReason reason) {
    Redirection redirection;
    redirection.stop = reason;
    return redirection;
}

bool becomes_get(const Hop& hop) {
    if (hop.status == 303) {
        return hop.method != "GET" && hop.method != "HEAD";
    }
    return (hop.status == 301 || hop.status == 302) && hop.method == "POST";
}

}  // namespace

Redirection decide_redirect(const RetryPolicy& policy, const Hop& hop) {
    if (hop.followed >= policy.max_redirects) {
        return stop(StopReason::too_many_redirects);
    }
    const auto old_place = parse_url(hop.from);
    const auto place = hop.location && !hop.location->empty() ? resolve_url(hop.from, *hop.location)
                                                              : std::nullopt;
    if (!old_place || !place) {
        return stop(StopReason::bad_location);
    }
    if (old_place->secure && !place->secure) {
        return stop(StopReason::redirect_to_insecure);
    }
    const bool get = becomes_get(hop);
    if (get && !policy.redirect_to_get) {
        return stop(StopReason::redirect_would_change_method);
    }
    return {std::nullopt, place->url, get ? "GET" : std::string(hop.method), get,
            place->origin != old_place->origin};
}

}  // namespace ration::client
