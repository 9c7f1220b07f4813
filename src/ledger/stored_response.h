// How a kept response's headers and an attempt's held places stand in their database fields.
//
// Length-prefixed text, so that any bytes come back as they were: "<size>:<bytes>" repeated.
// Pure. A field that was cut or damaged reads as nullopt.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ledger/holds.h"

namespace ration {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

[[nodiscard]] std::string pack_headers(const HeaderList& headers);
[[nodiscard]] std::optional<HeaderList> unpack_headers(std::string_view field);

[[nodiscard]] std::string pack_places(const std::vector<Place>& places);
[[nodiscard]] std::optional<std::vector<Place>> unpack_places(std::string_view field);

}  // namespace ration
