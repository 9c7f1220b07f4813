// The bound on different limits in one process; a program of its own because it uses them all up.
#include <gtest/gtest.h>

#include <chrono>

#include "ration/limit.h"

namespace ration {
namespace {

TEST(InternBound, TheLastFitsAndOneMoreDoesNot) {
    const auto numbered = [](std::size_t i) {
        return fixed_window(i, std::chrono::hours(24) * 365);
    };
    for (std::size_t i = 0; i < max_interned_limits; ++i) {
        ASSERT_TRUE(LimitRef::of(numbered(i)).ok()) << i;
    }
    EXPECT_EQ(LimitRef::of(numbered(max_interned_limits)).status().code(),
              absl::StatusCode::kResourceExhausted);
    // Those that are in are still found.
    const LimitRef last = *LimitRef::of(numbered(max_interned_limits - 1));
    EXPECT_EQ(last.id(), max_interned_limits - 1);
    EXPECT_EQ(last->amount, max_interned_limits - 1);
}

}  // namespace
}  // namespace ration
