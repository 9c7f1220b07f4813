// Blocks of strike rules: their paths of the admin API.
//
//   GET  /v1/blocks?limit    those in force
//   POST /v1/blocks/lift     {"subject": "203.0.113.7", "rule": "failed sign-ins"}; `rule` may be
//                            left out: of every rule
//
// Thread rule: one thread. Ownership: the book and the clock outlive it. Errors: as the api's.
#pragma once

#include <optional>

#include "engine/block_book.h"
#include "ration/time.h"
#include "server/admin/admin_api.h"

namespace ration {

inline constexpr std::size_t max_block_page = 10'000;

class BlockAdmin final : public AdminSection {
public:
    BlockAdmin(BlockBook& book, const Clock& clock) : book_(book), clock_(clock) {}

    [[nodiscard]] std::optional<AdminResponse> handle(const AdminRequest& request) override;

private:
    [[nodiscard]] AdminResponse list(const AdminRequest& request);
    [[nodiscard]] AdminResponse lift(const AdminRequest& request);

    BlockBook& book_;
    const Clock& clock_;
};

}  // namespace ration
