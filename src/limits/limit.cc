// Making, checking and naming limits.
#include "ration/limit.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "limits/arithmetic.h"

namespace ration {

namespace {

constexpr std::uint64_t nanos_per_second = 1'000'000'000;

struct Unit {
    std::int64_t nanos;
    absl::string_view rate;  // in "60/min"
    absl::string_view span;  // in "per 13s"
};

constexpr std::array<Unit, 7> units{{{86'400'000'000'000, "day", "d"},
                                     {3'600'000'000'000, "h", "h"},
                                     {60'000'000'000, "min", "min"},
                                     {1'000'000'000, "s", "s"},
                                     {1'000'000, "ms", "ms"},
                                     {1'000, "us", "us"},
                                     {1, "ns", "ns"}}};

// "/min" for one whole unit, " per 13s" for several of the largest that divides.
std::string period_text(Nanos period) {
    for (const Unit& unit : units) {
        if (period.count() % unit.nanos == 0) {
            const std::int64_t count = period.count() / unit.nanos;
            return count == 1 ? absl::StrCat("/", unit.rate)
                              : absl::StrCat(" per ", count, unit.span);
        }
    }
    return "";
}

absl::Status refuse(absl::string_view what) {
    return absl::InvalidArgumentError(what);
}

absl::Status check_period(Nanos period) {
    if (period <= Nanos{0}) {
        return refuse("period must be longer than 0");
    }
    if (period > max_period) {
        return refuse("period must be at most 10 years (3653 days)");
    }
    return absl::OkStatus();
}

// amount per period at most max_per_second.
absl::Status check_rate(std::uint64_t amount, Nanos period) {
    const u128 asked = static_cast<u128>(amount) * nanos_per_second;
    const u128 most =
        static_cast<u128>(max_per_second) * static_cast<std::uint64_t>(period.count());
    if (asked > most) {
        return refuse(absl::StrCat("rate must be at most 1000000 per second, got ", amount,
                                   period_text(period)));
    }
    return absl::OkStatus();
}

absl::Status check_bucket(const Limit& limit) {
    if (limit.capacity > max_amount) {
        return refuse(absl::StrCat("burst must be at most ", max_amount, ", got ", limit.capacity));
    }
    if (limit.amount == 0) {
        return limit.capacity == 0 ? absl::OkStatus()
                                   : refuse("a bucket that refills nothing must hold nothing");
    }
    const u128 full = static_cast<u128>(limit.capacity) *
                      static_cast<std::uint64_t>(limit.period.count()) / limit.amount;
    if (full > static_cast<u128>(max_full_refill.count())) {
        return refuse("an empty bucket must be full again within 200 years");
    }
    return absl::OkStatus();
}

}  // namespace

Limit token_bucket(std::uint64_t amount, Nanos period) {
    return token_bucket(amount, period, amount);
}

Limit token_bucket(std::uint64_t amount, Nanos period, std::uint64_t capacity) {
    return {
        .kind = LimitKind::token_bucket, .amount = amount, .capacity = capacity, .period = period};
}

Limit fixed_window(std::uint64_t amount, Nanos period, bool count_attempts) {
    return {.kind = LimitKind::fixed_window,
            .count_attempts = count_attempts,
            .amount = amount,
            .capacity = amount,
            .period = period};
}

Limit sliding_window(std::uint64_t amount, Nanos period) {
    return {
        .kind = LimitKind::sliding_window, .amount = amount, .capacity = amount, .period = period};
}

Limit sliding_counter(std::uint64_t amount, Nanos period) {
    return {
        .kind = LimitKind::sliding_counter, .amount = amount, .capacity = amount, .period = period};
}

Limit concurrency(std::uint64_t amount) {
    return {.kind = LimitKind::concurrency, .amount = amount, .capacity = amount};
}

absl::Status validate(const Limit& limit) {
    const bool windowed =
        limit.kind == LimitKind::fixed_window || limit.kind == LimitKind::sliding_counter;
    if (limit.count_attempts && !windowed) {
        return refuse("attempts can be counted by a fixed window or a sliding counter only");
    }
    if (limit.amount > max_amount) {
        return refuse(absl::StrCat("amount must be at most ", max_amount, ", got ", limit.amount));
    }
    if (limit.kind != LimitKind::token_bucket && limit.capacity != limit.amount) {
        return refuse("only a token bucket has a burst of its own");
    }
    if (limit.kind == LimitKind::concurrency) {
        return limit.period == Nanos{0} ? absl::OkStatus()
                                        : refuse("a limit on requests in flight has no period");
    }
    if (limit.kind == LimitKind::sliding_window && limit.amount > max_sliding_amount) {
        return refuse(absl::StrCat("a sliding window holds at most ", max_sliding_amount,
                                   " units, got ", limit.amount,
                                   "; a sliding counter has no such bound"));
    }
    if (absl::Status status = check_period(limit.period); !status.ok()) {
        return status;
    }
    if (absl::Status status = check_rate(limit.amount, limit.period); !status.ok()) {
        return status;
    }
    return limit.kind == LimitKind::token_bucket ? check_bucket(limit) : absl::OkStatus();
}

std::string to_string(const Limit& limit) {
    if (limit.kind == LimitKind::concurrency) {
        return absl::StrCat(limit.amount, " in flight");
    }
    std::string text = absl::StrCat(limit.amount, period_text(limit.period));
    switch (limit.kind) {
        case LimitKind::token_bucket:
            if (limit.capacity != limit.amount) {
                absl::StrAppend(&text, ", burst ", limit.capacity);
            }
            break;
        case LimitKind::fixed_window:
            text += " (fixed window)";
            break;
        case LimitKind::sliding_window:
            text += " (sliding window)";
            break;
        case LimitKind::sliding_counter:
            text += " (sliding counter)";
            break;
        case LimitKind::concurrency:
            break;
    }
    return limit.count_attempts ? text + ", counting attempts" : text;
}

}  // namespace ration
