// The Date field: IMF-fixdate (RFC 9110 5.6.7), made once a second.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "ration/time.h"

namespace ration::http {

inline constexpr std::size_t date_bytes = 29;

// "Sun, 06 Nov 1994 08:49:37 GMT". Years 0 to 9999.
void write_date(Wall at, std::array<char, date_bytes>& out);

// Thread rule: one per thread.
class DateCache {
public:
    [[nodiscard]] std::string_view text(Wall now);

private:
    std::int64_t second_ = -1;
    std::array<char, date_bytes> text_{};
};

}  // namespace ration::http
