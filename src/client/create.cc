#include "base/text.h"
#include "client/engine.h"
#include "client/policy.h"
#include "wire/token.h"

namespace ration {

absl::StatusOr<std::unique_ptr<Client>> Client::create(ClientOptions options) {
    if (absl::Status status = validate(options.policy); !status.ok()) {
        return status;
    }
    if (options.pace && options.pace->amount > 0 &&
        (options.pace->burst == 0 || options.pace->every <= Nanos(0))) {
        return absl::InvalidArgumentError("pace: a burst of at least 1 and a time above 0");
    }
    const auto& limit = options.concurrency;
    if (limit && (limit->min == 0 || limit->initial < limit->min || limit->max < limit->initial ||
                  limit->decrease_percent >= 100)) {
        return absl::InvalidArgumentError(
            "concurrency: 1 <= min <= initial <= max and less than 100 percent left by a cut");
    }
    if (options.breaker && options.breaker->min_outcomes == 0) {
        return absl::InvalidArgumentError("breaker: min_outcomes is 0");
    }
    if (!options.attempt_header.empty() && !is_token(options.attempt_header)) {
        return absl::InvalidArgumentError("attempt_header is no field name");
    }
    return std::make_unique<client::Engine>(std::move(options));
}

}  // namespace ration
