// The numbers of one volatile limit, and the level of one of its buckets or windows.
//
// A `Limit` says how much is allowed (60 per minute, 100 in flight); it holds no state and no
// key. Limits are interned: `LimitRef::of` returns the one shared, immutable copy, which lives
// as long as the process and compares by address.
//
// Thread rule: everything here is immutable or may be called from any thread.
//
//   auto limit = ration::LimitRef::of(ration::token_bucket(60, std::chrono::minutes(1)));
//   if (!limit.ok()) return limit.status();      // says which number is out of range
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ration/time.h"

namespace ration {

enum class LimitKind : std::uint8_t {
    token_bucket,     // `capacity` tokens at most, `amount` refilled per `period`, continuously
    fixed_window,     // `amount` per `period`, windows aligned to 1970-01-01T00:00:00Z
    sliding_window,   // `amount` in any span of `period`, exact: one record per admitted unit
    sliding_counter,  // as above from two window counts, the older one weighted by what is left
    concurrency,      // `amount` at once; `period` is not used
};

// Bounds on the numbers; outside them a limit is refused when it is made.
inline constexpr std::uint64_t max_amount = 1'000'000'000;                // units
inline constexpr std::uint64_t max_per_second = 1'000'000;                // refill rate
inline constexpr Nanos max_period = std::chrono::hours(24) * 3653;        // 10 years
inline constexpr Nanos max_full_refill = 20 * max_period;                 // 200 years
inline constexpr std::uint64_t max_sliding_amount = 100'000;              // records kept per key
inline constexpr std::size_t max_interned_limits = std::size_t{1} << 20;  // in one process

struct Limit {
    LimitKind kind = LimitKind::token_bucket;
    bool count_attempts = false;  // refused requests count too (fixed_window, sliding_counter)
    std::uint64_t amount = 0;     // units per period, or in flight; 0 admits nothing
    std::uint64_t capacity = 0;   // most units held at once; equals `amount` unless a bucket
    Nanos period{0};

    friend bool operator==(const Limit&, const Limit&) = default;
};

[[nodiscard]] Limit token_bucket(std::uint64_t amount, Nanos period);
[[nodiscard]] Limit token_bucket(std::uint64_t amount, Nanos period, std::uint64_t capacity);
[[nodiscard]] Limit fixed_window(std::uint64_t amount, Nanos period, bool count_attempts = false);
[[nodiscard]] Limit sliding_window(std::uint64_t amount, Nanos period);
[[nodiscard]] Limit sliding_counter(std::uint64_t amount, Nanos period);
[[nodiscard]] Limit concurrency(std::uint64_t amount);

// OK, or InvalidArgument saying which number is out of which range. Rates go from 1 per 10 years to
// 1,000,000 per second, both included; an empty bucket must be full again within 200 years.
[[nodiscard]] absl::Status validate(const Limit& limit);

// "60/min", "10 per 13s, burst 40", "100 in flight": for people.
[[nodiscard]] std::string to_string(const Limit& limit);

// The interned copy of a valid limit. Copyable, one pointer wide, never dangling.
class LimitRef {
public:
    LimitRef() = default;
    // InvalidArgument as `validate`; ResourceExhausted after 2^20 different limits in one process.
    [[nodiscard]] static absl::StatusOr<LimitRef> of(const Limit& limit);
    // The limit that has this id; `id` must come from `id()`.
    [[nodiscard]] static LimitRef from_id(std::uint32_t id);

    [[nodiscard]] std::uint32_t id() const { return entry_->id; }
    const Limit& operator*() const { return entry_->limit; }
    const Limit* operator->() const { return &entry_->limit; }
    explicit operator bool() const { return entry_ != nullptr; }
    friend bool operator==(LimitRef, LimitRef) = default;

    struct Entry {
        Limit limit;
        std::uint32_t id = 0;
        // The refill rate in lowest terms: `rate_tokens` per `rate_nanos`; 0 tokens: no refill.
        std::uint64_t rate_tokens = 0;
        std::uint64_t rate_nanos = 1;
    };
    [[nodiscard]] const Entry& entry() const { return *entry_; }

private:
    explicit LimitRef(const Entry* entry) : entry_(entry) {}
    const Entry* entry_ = nullptr;
};

// How one charge came out, and where its bucket or window stands after it.
enum class Verdict : std::uint8_t {
    admitted,  // the cost fits (for a request that another limit refused: it would have)
    refused,   // not now; `wait` says when
    never,     // cannot fit however long one waits: cost above capacity, or a limit of 0
};

struct Level {
    Verdict verdict = Verdict::admitted;
    std::uint64_t limit = 0;      // the capacity, as told to callers
    std::uint64_t remaining = 0;  // whole units that can be had now, after this step
    std::uint64_t used = 0;  // units in use after this step; passes `limit` where attempts count
    Nanos wait{0};           // refused: the exact wait until this very cost fits, else 0
    Nanos next{0};   // until one more unit than `remaining` can be had; 0 when nothing is used
    Nanos reset{0};  // until the window ends (windows) or nothing is used any more (others)

    friend bool operator==(const Level&, const Level&) = default;
};

}  // namespace ration
