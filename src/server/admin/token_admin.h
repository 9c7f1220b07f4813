// Tokens that operators make at run time: their paths of the admin API.
//
//   POST   /v1/tokens       {"user": "u_ana", "rate_limit_per_min": 100, "name": "ci"}: the secret,
//                           this once
//   GET    /v1/tokens?kind&owner&after&limit    a page, without secrets
//   GET    /v1/tokens/ID
//   DELETE /v1/tokens/ID    revokes it; the next request with it is an unknown token's
//   PATCH  /v1/tokens/ID    409: what a token may do is fixed when it is made
//
// Which kinds there are, whom they belong to and which numbers they carry is the policy's
// (`identify.issue`). A token works when the answer says so, and is durable then. Thread rule: one
// thread, which waits for the ledger. Ownership: what the parts refer to outlives it. Errors: as
// the api's; 503 `ledger_unavailable` when the ledger gives no answer: nothing has changed then.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "engine/snapshot.h"
#include "engine/token_table.h"
#include "ledger/runner.h"
#include "ration/time.h"
#include "server/admin/admin_api.h"

namespace ration {

inline constexpr std::size_t max_token_name_bytes = 128;
inline constexpr std::size_t default_token_page = 100;
inline constexpr std::size_t max_token_page = 1000;

struct TokenAdminParts {
    TokenTable& table;
    LedgerRunner* runner = nullptr;  // null: there is no ledger, and nothing can be made
    const Clock& clock;
    RandomBytes random;
    std::function<std::shared_ptr<const Snapshot>()> rules;
};

class TokenAdmin final : public AdminSection {
public:
    explicit TokenAdmin(TokenAdminParts parts) : parts_(std::move(parts)) {}

    [[nodiscard]] std::optional<AdminResponse> handle(const AdminRequest& request) override;

private:
    [[nodiscard]] AdminResponse list(const AdminRequest& request);
    [[nodiscard]] AdminResponse make(const AdminRequest& request);
    [[nodiscard]] AdminResponse one(std::string_view id, const AdminRequest& request);
    [[nodiscard]] AdminResponse revoke(const std::string& id);

    const TokenAdminParts parts_;
};

}  // namespace ration
