// What to do with one redirect (RFC 9110 15.4). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ration/retry_policy.h"

namespace ration::client {

[[nodiscard]] constexpr bool is_redirect(int status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

struct Hop {
    std::string_view method;
    int status = 0;
    std::string_view from;
    std::optional<std::string_view> location;
    unsigned followed = 0;  // redirects before this one
};

struct Redirection {
    std::optional<StopReason> stop;
    std::string url;
    std::string method;
    bool drop_body = false;
    bool drop_secrets = false;  // the new place is another origin
};

[[nodiscard]] Redirection decide_redirect(const RetryPolicy& policy, const Hop& hop);

}  // namespace ration::client
