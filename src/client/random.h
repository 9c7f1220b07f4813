// Randomness for the client: the system's, and keys made of it.
#pragma once

#include <cstdint>
#include <string>

#include "ration/client.h"

namespace ration::client {

class SystemRandom final : public RandomSource {
public:
    [[nodiscard]] std::uint64_t bits() override;
};

// A UUID of version 4.
[[nodiscard]] std::string make_key(RandomSource& random);

// The caller's key, else one that is made where the rules say so, else nothing.
[[nodiscard]] std::string key_for(const ClientRequest& request, const RetryPolicy& policy,
                                  RandomSource& random);

}  // namespace ration::client
