// The `redis` section of serve.yaml's counters, and whether a policy's numbers fit it.
#pragma once

#include "policy/policy.h"
#include "ration/redis_counters.h"
#include "server/config/config_reader.h"

namespace ration {

// Reads the section into `options`; problems go to the reader. A password comes from the
// environment or from a file, never from serve.yaml itself.
void read_redis(ConfigReader& outer, const YamlNode& node, Policy::Environment environment,
                RedisOptions& options);

// An error for every limit whose arithmetic would not be exact there (`fits_redis`).
void check_fits_redis(const Policy& policy, Problems& problems);

}  // namespace ration
