// "64MiB" and "15s": sizes and durations as people write them in serve.yaml.
//
// Pure. A size is a whole number of bytes, KiB, MiB or GiB (B may be left out for bytes); signs,
// fractions and blanks are refused. Durations are read by policy/rate.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ration/time.h"

namespace ration {

// nullopt when `text` is no size or passes 2^63 - 1.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

// The shortest exact spelling: 65536 is "64KiB", 90 s is "90s".
[[nodiscard]] std::string size_text(std::uint64_t bytes);
[[nodiscard]] std::string duration_text(Nanos duration);

}  // namespace ration
