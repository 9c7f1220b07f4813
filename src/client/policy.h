// Arithmetic of the retry policy. Pure; nothing overflows.
#pragma once

#include <cstdint>

#include "ration/retry_policy.h"
#include "ration/time.h"

namespace ration::client {

// The most that a back-off may wait before retry number `retry`, counted from 0.
[[nodiscard]] Nanos backoff_bound(const RetryPolicy& policy, unsigned retry);

// An even draw from 0 to `most`, both included as far as nanoseconds go.
[[nodiscard]] Nanos draw(RandomSource& random, Nanos most);

// Nothing of such an attempt reached the server.
[[nodiscard]] constexpr bool nothing_sent(AttemptError error) {
    return error == AttemptError::dns_failed || error == AttemptError::connect_failed;
}

// `policy` with each time held within 0 and longest_time.
[[nodiscard]] RetryPolicy within_bounds(RetryPolicy policy);

}  // namespace ration::client
