#include "client/policy.h"

#include <algorithm>
#include <array>

namespace ration::client {
namespace {

__extension__ using u128 = unsigned __int128;

constexpr std::array<Nanos RetryPolicy::*, 9> times = {
    &RetryPolicy::backoff_base,    &RetryPolicy::backoff_cap,    &RetryPolicy::retry_after_extra,
    &RetryPolicy::max_server_wait, &RetryPolicy::total_deadline, &RetryPolicy::attempt_timeout,
    &RetryPolicy::min_attempt,     &RetryPolicy::gate_guard,     &RetryPolicy::budget_floor};
}  // namespace

Nanos backoff_bound(const RetryPolicy& policy, unsigned retry) {
    Nanos bound = std::min(policy.backoff_base, policy.backoff_cap);
    for (unsigned n = 0; n < retry && bound < policy.backoff_cap; ++n) {
        if (policy.backoff_factor <= 1 || bound == Nanos(0)) {
            break;
        }
        const u128 next = static_cast<u128>(bound.count()) * policy.backoff_factor;
        const u128 cap = static_cast<u128>(policy.backoff_cap.count());
        bound = Nanos(static_cast<std::int64_t>(std::min(next, cap)));
    }
    return bound;
}

Nanos draw(RandomSource& random, Nanos most) {
    const u128 steps = static_cast<u128>(std::max<std::int64_t>(most.count(), 0)) + 1;
    return Nanos(static_cast<std::int64_t>((static_cast<u128>(random.bits()) * steps) >> 64U));
}

RetryPolicy within_bounds(RetryPolicy policy) {
    for (const auto time : times) {
        policy.*time = std::clamp(policy.*time, Nanos(0), longest_time);
    }
    return policy;
}

}  // namespace ration::client
