// The ledger, as operators see and settle it: its paths of the admin API.
//
//   GET   /v1/ledger                      numbers
//   GET   /v1/ledger/doubts?after&limit   attempts whose outcome is unknown, a page at a time
//   POST  /v1/ledger/doubts/ATTEMPT       {"outcome": "written" | "not_written"}
//   GET   /v1/ledger/quotas?quota&...     a quota's level and a page of its objects
//   PUT   /v1/ledger/quotas?quota&...     {"objects": [...]}: those that exist, and no others
//   PATCH /v1/ledger/quotas?quota&...     {"add": [...], "remove": [...]}
//
// What changes something goes through the runner's queue, as requests do, so held reservations are
// judged again and nothing is said to be done that is not durable. Thread rule: one thread, which
// waits for the ledger for at most `ledger_patience`. Ownership: what the parts refer to must
// outlive it. Errors: as the api's; 503 `ledger_unavailable` when the ledger gives no answer.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "engine/snapshot.h"
#include "ledger/runner.h"
#include "ration/ledger.h"
#include "ration/time.h"
#include "server/admin/admin_api.h"
#include "server/metrics/ledger_meter.h"

namespace ration {

inline constexpr std::size_t default_page = 100;  // doubts or objects in one answer
inline constexpr std::size_t max_page = 1000;
inline constexpr std::size_t max_stated_objects = 10'000;  // in one call
inline constexpr std::chrono::seconds ledger_patience{10};

struct LedgerAdminParts {
    Ledger* ledger = nullptr;  // null: there is none, and every path says so
    LedgerRunner* runner = nullptr;
    std::function<std::shared_ptr<const Snapshot>()> rules;
    std::function<LedgerTotals()> totals;
};

class LedgerAdmin final : public AdminSection {
public:
    explicit LedgerAdmin(LedgerAdminParts parts) : parts_(std::move(parts)) {}

    [[nodiscard]] std::optional<AdminResponse> handle(const AdminRequest& request) override;

private:
    [[nodiscard]] AdminResponse stats();
    [[nodiscard]] AdminResponse doubts(const AdminRequest& request);
    [[nodiscard]] AdminResponse settle(std::string_view attempt, const AdminRequest& request);
    [[nodiscard]] AdminResponse quotas(const AdminRequest& request);

    const LedgerAdminParts parts_;
};

}  // namespace ration
