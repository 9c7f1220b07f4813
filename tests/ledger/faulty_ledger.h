// A ledger whose n-th call of an operation fails, as one on a full or broken disk does.
//
// Every operation has its own count and its own faults. A batch is one call of each operation that
// it holds; when any of them is to fail, the whole batch fails with kUnavailable, nothing of it is
// written, and the attempts that it would have settled are in doubt, as the interface promises.
// Reads fail likewise. Thread rule: as the ledger's.
//
//   FaultyLedger faulty(*ledger);
//   faulty.fail(LedgerOperation::settle, 1);       // the next settlement
//   faulty.fail(LedgerOperation::reserve, 3, 2);   // the third and fourth reservation from now
//   faulty.set_down(true);                         // everything, until it is up again
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "ledger/ledger_wrapper.h"

namespace ration {

enum class LedgerOperation : std::uint8_t {
    reserve,
    settle,   // of an attempt, or of quotas alone
    operate,  // the rest of what a batch may hold: operators' words, blocks, ...
    sweep,
    read,  // level, members, rows, blocks
};
inline constexpr std::size_t ledger_operations = 5;

class FaultyLedger final : public LedgerWrapper {
public:
    using LedgerWrapper::LedgerWrapper;

    // Of the calls from now on (1 is the next), `times` of them beginning with the `nth` fail.
    void fail(LedgerOperation operation, std::uint64_t nth, std::uint64_t times = 1) {
        const std::lock_guard lock(mutex_);
        Count& count = counts_[static_cast<std::size_t>(operation)];
        count.first = count.calls + nth;
        count.last = count.first + (times - 1);
    }
    void set_down(bool down) {
        const std::lock_guard lock(mutex_);
        down_ = down;
    }
    // What the next failures say.
    void set_reason(std::string reason) {
        const std::lock_guard lock(mutex_);
        reason_ = std::move(reason);
    }
    [[nodiscard]] std::uint64_t calls(LedgerOperation operation) const {
        const std::lock_guard lock(mutex_);
        return counts_[static_cast<std::size_t>(operation)].calls;
    }

    void apply(std::span<const LedgerRequest> requests, Wall now,
               std::span<LedgerReply> replies) override {
        const absl::Status status = count_batch(requests);
        if (status.ok()) {
            return LedgerWrapper::apply(requests, now, replies);
        }
        put_in_doubt(requests, now);
        for (LedgerReply& reply : replies) {
            reply = LedgerReply{};
            reply.status = status;
        }
    }
    absl::StatusOr<bool> sweep(Wall now, std::size_t budget) override {
        const absl::Status status = count_one(LedgerOperation::sweep);
        return status.ok() ? LedgerWrapper::sweep(now, budget) : absl::StatusOr<bool>(status);
    }
    [[nodiscard]] LedgerStats stats() const override {
        LedgerStats stats = LedgerWrapper::stats();
        const std::lock_guard lock(mutex_);
        stats.failures += failures_;
        stats.healthy = stats.healthy && healthy_;
        if (!healthy_) {
            stats.last_error = reason_;
        }
        return stats;
    }
    [[nodiscard]] absl::StatusOr<std::uint64_t> level(const CeilingUse& use) override {
        const absl::Status status = count_one(LedgerOperation::read);
        return status.ok() ? LedgerWrapper::level(use) : status;
    }
    [[nodiscard]] absl::StatusOr<std::uint64_t> level(const QuotaUse& use) override {
        const absl::Status status = count_one(LedgerOperation::read);
        return status.ok() ? LedgerWrapper::level(use) : status;
    }
    [[nodiscard]] absl::StatusOr<LedgerRows> rows() override {
        const absl::Status status = count_one(LedgerOperation::read);
        return status.ok() ? LedgerWrapper::rows() : status;
    }
    [[nodiscard]] absl::StatusOr<std::vector<std::string>> members(std::string_view key,
                                                                   std::string_view after,
                                                                   std::size_t limit) override {
        const absl::Status status = count_one(LedgerOperation::read);
        if (!status.ok()) {
            return status;
        }
        return LedgerWrapper::members(key, after, limit);
    }
    [[nodiscard]] absl::StatusOr<std::vector<Block>> blocks() override {
        const absl::Status status = count_one(LedgerOperation::read);
        if (!status.ok()) {
            return status;
        }
        return LedgerWrapper::blocks();
    }
    [[nodiscard]] absl::StatusOr<std::vector<IssuedToken>> tokens() override {
        const absl::Status status = count_one(LedgerOperation::read);
        if (!status.ok()) {
            return status;
        }
        return LedgerWrapper::tokens();
    }

private:
    struct Count {
        std::uint64_t calls = 0;
        std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
        std::uint64_t last = 0;
    };

    static LedgerOperation operation_of(const LedgerRequest& request) {
        if (std::holds_alternative<Reserve>(request)) {
            return LedgerOperation::reserve;
        }
        return std::holds_alternative<Settle>(request) ? LedgerOperation::settle
                                                       : LedgerOperation::operate;
    }

    // With the mutex: counts a call; true when it is to fail.
    bool counted_out(LedgerOperation operation) {
        Count& count = counts_[static_cast<std::size_t>(operation)];
        ++count.calls;
        return down_ || (count.calls >= count.first && count.calls <= count.last);
    }
    absl::Status outcome(bool fails) {
        healthy_ = !fails;
        failures_ += fails ? 1 : 0;
        return fails ? absl::UnavailableError(reason_) : absl::OkStatus();
    }
    absl::Status count_one(LedgerOperation operation) {
        const std::lock_guard lock(mutex_);
        return outcome(counted_out(operation));
    }
    absl::Status count_batch(std::span<const LedgerRequest> requests) {
        const std::lock_guard lock(mutex_);
        std::array<bool, ledger_operations> held{};
        for (const LedgerRequest& request : requests) {
            held[static_cast<std::size_t>(operation_of(request))] = true;
        }
        bool fails = down_;
        for (std::size_t i = 0; i < held.size(); ++i) {
            fails = (held[i] && counted_out(static_cast<LedgerOperation>(i))) || fails;
        }
        return outcome(fails);
    }

    void put_in_doubt(std::span<const LedgerRequest> requests, Wall now) {
        std::vector<LedgerRequest> doubts;
        for (const LedgerRequest& request : requests) {
            const Settle* settle = std::get_if<Settle>(&request);
            if (settle != nullptr && settle->attempt != 0) {
                doubts.emplace_back(Settle{settle->attempt, SettleKind::doubt, nullptr, {}});
            }
        }
        if (!doubts.empty()) {
            std::vector<LedgerReply> replies(doubts.size());
            LedgerWrapper::apply(doubts, now, replies);
        }
    }

    mutable std::mutex mutex_;
    std::array<Count, ledger_operations> counts_{};
    bool down_ = false;
    bool healthy_ = true;
    std::uint64_t failures_ = 0;
    std::string reason_ = "disk I/O error";
};

}  // namespace ration
