// Limiting a function in ten lines: a name, its limits, and `take`.
//
// A `Limiter` holds one limit, or several that are charged together: a call is admitted when all of
// them admit it, else it takes nothing from any (a limit that counts attempts counts it anyway).
// Keys are any bytes: a user, an address, a job. Each key has its own bucket per limit.
//
// Thread rule: a Limiter may be used from any thread at once. Ownership: it keeps its counters; a
// copy shares them. Errors: `create` says what is wrong with a name or a limit; `take` has none of
// its own, but shared counters may be unreachable, which is neither yes nor no (`Taken::status`).
//
//   using std::chrono::minutes;
//   auto limiter = ration::Limiter::create("emails", ration::token_bucket(10, minutes(1)));
//   if (!limiter.ok()) return limiter.status();
//   ration::Taken taken = limiter->take("user-17");
//   if (taken.allowed) {
//       send_email();
//   } else if (!taken.never) {
//       std::this_thread::sleep_for(taken.wait);  // then it is there, if nobody else asked
//   }
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ration/counters.h"
#include "ration/limit.h"
#include "ration/time.h"

namespace ration {

struct Taken {
    bool allowed = false;
    bool never = false;  // refused, and waiting cannot help: cost above a capacity, or a limit of 0
    // kUnavailable: the counters gave no answer; `allowed` is false and nothing else is known.
    absl::StatusCode status = absl::StatusCode::kOk;
    Nanos wait{0};                // refused: exactly until this cost fits, else 0
    std::uint64_t remaining = 0;  // whole units left, of the limit that has least

    // `wait` as whole seconds, rounded up, at least 1: what a Retry-After header says. 0 when
    // allowed, or when waiting cannot help.
    [[nodiscard]] std::int64_t retry_after_seconds() const;
};

inline constexpr std::size_t max_limiter_name_bytes = 64;

class Limiter {
public:
    // The name is the identity of the limits in shared counters: at most max_limiter_name_bytes,
    // no control characters. InvalidArgument otherwise, for no limit or more than max_charges, and
    // as `validate`. Without `counters` the limiter has memory of its own.
    [[nodiscard]] static absl::StatusOr<Limiter> create(std::string_view name, const Limit& limit,
                                                        std::shared_ptr<Counters> counters = {});
    [[nodiscard]] static absl::StatusOr<Limiter> create(std::string_view name,
                                                        std::initializer_list<Limit> limits,
                                                        std::shared_ptr<Counters> counters = {});

    // Takes `cost` units for `key`, all or none.
    [[nodiscard]] Taken take(std::string_view key, std::uint32_t cost, Now now) const;
    [[nodiscard]] Taken take(std::string_view key, std::uint32_t cost = 1) const {
        return take(key, cost, SystemClock().now());
    }

    // What `take` would say; takes nothing.
    [[nodiscard]] Taken look(std::string_view key, std::uint32_t cost, Now now) const;
    [[nodiscard]] Taken look(std::string_view key, std::uint32_t cost = 1) const {
        return look(key, cost, SystemClock().now());
    }

    // Returns up to `cost` units taken earlier; never lifts a level above its capacity.
    void give_back(std::string_view key, std::uint32_t cost, Now now) const;
    void give_back(std::string_view key, std::uint32_t cost = 1) const {
        give_back(key, cost, SystemClock().now());
    }

    [[nodiscard]] Counters& counters() const { return *counters_; }

private:
    struct Rule {
        std::string prefix;  // of its keys
        LimitRef limit;
    };

    Limiter(std::vector<Rule> rules, std::shared_ptr<Counters> counters);
    [[nodiscard]] Taken charge(std::string_view key, std::uint32_t cost, Now now,
                               ChargeOp op) const;

    std::vector<Rule> rules_;
    std::shared_ptr<Counters> counters_;
};

}  // namespace ration
