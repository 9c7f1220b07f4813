// What a new token is to be, read from the body of the request that orders it.
//
// Pure. Errors: InvalidArgument with a sentence for whoever wrote the body; OutOfRange for a number
// outside its bounds; NotFound for an owner that the directory does not have.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/snapshot.h"

namespace ration {

struct TokenOrder {
    const IssueRule* rule = nullptr;  // of the snapshot's policy
    std::string owner;
    std::vector<std::pair<std::string, std::int64_t>> numbers;  // all of the rule's
    std::string name;
};

[[nodiscard]] absl::StatusOr<TokenOrder> read_token_order(const Snapshot& rules,
                                                          std::string_view body);

}  // namespace ration
