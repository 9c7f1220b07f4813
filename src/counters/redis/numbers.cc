#include "counters/redis/numbers.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "ration/redis_counters.h"

namespace ration {
namespace {

constexpr std::uint64_t nanos_per_micro = 1000;
// The script's long division holds 15 times its divisor below 2^53.
constexpr std::uint64_t max_divisor = std::uint64_t{1} << 49;
constexpr std::uint8_t attempts_count = 8;
static_assert(static_cast<std::uint64_t>(max_period.count()) / nanos_per_micro < max_divisor);

std::uint8_t kind_of(const Limit& limit) {
    const int kind = static_cast<int>(limit.kind) + 1;
    return static_cast<std::uint8_t>(limit.count_attempts ? kind + attempts_count : kind);
}

bool whole_micros(Nanos period) {
    return period.count() % static_cast<std::int64_t>(nanos_per_micro) == 0;
}

// The rate in lowest terms, tokens per microseconds: at most one a microsecond.
struct Rate {
    std::uint64_t tokens;
    std::uint64_t micros;
};

Rate rate_of(std::uint64_t tokens, std::uint64_t nanos) {
    const std::uint64_t common = std::gcd(nanos_per_micro, nanos);
    return {tokens * (nanos_per_micro / common), nanos / common};
}

}  // namespace

std::optional<RedisNumbers> redis_numbers(const LimitRef::Entry& numbers) {
    const Limit& limit = numbers.limit;
    RedisNumbers made{.kind = kind_of(limit), .a = static_cast<double>(limit.capacity)};
    if (limit.kind == LimitKind::concurrency) {
        return made;
    }
    if (limit.kind == LimitKind::token_bucket) {
        const Rate rate = rate_of(numbers.rate_tokens, numbers.rate_nanos);
        if (rate.micros >= max_divisor) {
            return std::nullopt;
        }
        made.b = static_cast<double>(rate.tokens);
        made.c = static_cast<double>(rate.micros);
        return made;
    }
    if (!whole_micros(limit.period)) {
        return std::nullopt;
    }
    const std::int64_t micros = limit.period.count() / static_cast<std::int64_t>(nanos_per_micro);
    made.b = static_cast<double>(micros);
    return made;
}

absl::Status fits_redis(const Limit& limit) {
    const bool windowed =
        limit.kind != LimitKind::token_bucket && limit.kind != LimitKind::concurrency;
    if (windowed && !whole_micros(limit.period)) {
        return absl::InvalidArgumentError(absl::StrCat(
            to_string(limit), ": counters on Redis need windows of whole microseconds"));
    }
    if (limit.kind == LimitKind::token_bucket && limit.amount != 0) {
        const auto nanos = static_cast<std::uint64_t>(limit.period.count());
        const std::uint64_t common = std::gcd(limit.amount, nanos);
        if (rate_of(limit.amount / common, nanos / common).micros >= max_divisor) {
            return absl::InvalidArgumentError(
                absl::StrCat(to_string(limit),
                             ": counters on Redis can't be exact at this rate; a period of "
                             "whole microseconds can be"));
        }
    }
    return absl::OkStatus();
}

}  // namespace ration
