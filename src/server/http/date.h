// The Date field (RFC 9110 6.6.1), made once a second.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "ration/time.h"
#include "wire/decimal.h"

namespace ration::http {

// Thread rule: one per thread.
class DateCache {
public:
    // As IMF-fixdate; stays valid until the next call.
    [[nodiscard]] std::string_view text(Wall now) {
        const std::int64_t second = now.time_since_epoch() / std::chrono::seconds(1);
        if (second != second_) {
            text_ = http_date(now, buffer_);
            second_ = second;
        }
        return text_;
    }

private:
    std::int64_t second_ = -1;
    std::array<char, max_decimal_bytes> buffer_{};
    std::string_view text_;
};

}  // namespace ration::http
