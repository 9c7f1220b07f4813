// One quota of one account (or whatever it is counted by): its level, its objects, stating them.
//
// Named by the query: `quota` and one parameter for each part of the quota's `per`, as in
// ?quota=active%20calendars&account=acc_1. Entities have to be in the directory. Private to
// src/server/admin; thread rule as LedgerAdmin.
#pragma once

#include <string>

#include "engine/snapshot.h"
#include "ledger/runner.h"
#include "server/admin/admin_api.h"
#include "server/admin/admin_query.h"

namespace ration {

class QuotaAdmin {
public:
    QuotaAdmin(Ledger& ledger, LedgerRunner& runner, const Snapshot& rules)
        : ledger_(ledger), runner_(runner), rules_(rules) {}

    [[nodiscard]] AdminResponse handle(const AdminRequest& request);

private:
    // The error, or nullopt when `rule_`, `parts_` and `key_` are known.
    [[nodiscard]] std::optional<AdminResponse> find(AdminQuery& query);
    [[nodiscard]] std::optional<AdminResponse> find_parts(AdminQuery& query);
    [[nodiscard]] AdminResponse show(const std::string& after, std::size_t limit) const;
    [[nodiscard]] AdminResponse change(const AdminRequest& request);
    [[nodiscard]] std::optional<std::uint64_t> at_most() const;

    Ledger& ledger_;
    LedgerRunner& runner_;
    const Snapshot& rules_;
    const QuotaRule* rule_ = nullptr;
    std::vector<std::string> parts_;  // in the order of the rule's key
    std::string key_;
};

}  // namespace ration
