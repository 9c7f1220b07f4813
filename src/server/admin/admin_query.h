// The query of an admin request: names and values, decoded as forms are.
//
// Strict: a parameter given twice, one that the path does not take and a number out of range are
// told, since an operator's typing mistake must not quietly mean something else. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace ration {

class AdminQuery {
public:
    // InvalidArgument: a name that stands twice.
    [[nodiscard]] static absl::StatusOr<AdminQuery> parse(std::string_view query);

    // nullopt: not given. What was taken counts as known.
    [[nodiscard]] std::optional<std::string> take(std::string_view name);
    // A whole number from `least` to `most`, or `otherwise` when not given.
    [[nodiscard]] absl::StatusOr<std::uint64_t> take_number(std::string_view name,
                                                            std::uint64_t otherwise,
                                                            std::uint64_t least,
                                                            std::uint64_t most);
    // InvalidArgument when something was not taken.
    [[nodiscard]] absl::Status finish() const;

private:
    std::vector<std::pair<std::string, std::string>> left_;
};

}  // namespace ration
