// How a kept response's headers, an attempt's held places and a token's numbers stand in their
// database fields.
//
// Headers and places are length-prefixed text, so that any bytes come back as they were:
// "<size>:<bytes>" repeated. Numbers are "name=60;name=1000": a token has a handful, and nobody
// asks the database about them. Pure. A field that was cut or damaged reads as nullopt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ledger/holds.h"

namespace ration {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

using NumberList = std::vector<std::pair<std::string, std::int64_t>>;

[[nodiscard]] std::string pack_headers(const HeaderList& headers);
[[nodiscard]] std::optional<HeaderList> unpack_headers(std::string_view field);

[[nodiscard]] std::string pack_places(const std::vector<Place>& places);
[[nodiscard]] std::optional<std::vector<Place>> unpack_places(std::string_view field);

[[nodiscard]] std::string pack_numbers(const NumberList& numbers);
[[nodiscard]] std::optional<NumberList> unpack_numbers(std::string_view field);

}  // namespace ration
