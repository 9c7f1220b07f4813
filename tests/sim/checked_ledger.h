// The SQLite ledger on the simulated disk, watched: every call is made to the model too, and the
// two must say the same and hold the same, after every batch, failure, power cut and restart.
//
// A batch in which the power went may be there afterwards or not, but whole; the same goes for
// batches that failed, until a later one is good. What was acknowledged must be there. Differences
// go to the journal as violations. Thread rule: one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/disk.h"
#include "sim/journal.h"
#include "sim/model_ledger.h"

namespace ration::sim {

// What stands between the model and the SQLite ledger: nothing, or a mutant in tests of the
// simulation itself.
using WrapLedger = std::function<std::unique_ptr<Ledger>(std::unique_ptr<Ledger>)>;

struct CheckedLedgerOptions {
    std::string path;
    bool compare = true;  // false: the model is left out, only what is seen outside is judged
    WrapLedger wrap;
};

class CheckedLedger final : public Ledger {
public:
    CheckedLedger(Disk& disk, Journal& journal, CheckedLedgerOptions options);

    // A new process opens the file. False while the disk fails; anything else is a violation.
    [[nodiscard]] bool open();
    // The process is gone; what SQLite does on its way out counts only while the disk lives.
    void close();
    [[nodiscard]] bool is_open() const { return ledger_ != nullptr; }

    void apply(std::span<const LedgerRequest> requests, Wall now,
               std::span<LedgerReply> replies) override;
    void disown() override { ledger_->disown(); }
    absl::StatusOr<bool> sweep(Wall now, std::size_t budget) override;
    [[nodiscard]] LedgerStats stats() const override { return ledger_->stats(); }
    [[nodiscard]] absl::StatusOr<std::uint64_t> level(const CeilingUse& use) override {
        return ledger_->level(use);
    }
    [[nodiscard]] absl::StatusOr<std::uint64_t> level(const QuotaUse& use) override {
        return ledger_->level(use);
    }
    [[nodiscard]] absl::StatusOr<LedgerRows> rows() override { return ledger_->rows(); }
    [[nodiscard]] absl::StatusOr<std::vector<std::string>> members(std::string_view key,
                                                                   std::string_view after,
                                                                   std::size_t limit) override {
        return ledger_->members(key, after, limit);
    }
    [[nodiscard]] std::vector<DoubtfulAttempt> doubtful(AttemptId after,
                                                        std::size_t limit) const override {
        return ledger_->doubtful(after, limit);
    }
    [[nodiscard]] absl::StatusOr<std::vector<Block>> blocks() override { return ledger_->blocks(); }
    [[nodiscard]] absl::StatusOr<std::vector<IssuedToken>> tokens() override {
        return ledger_->tokens();
    }

    [[nodiscard]] const WatchedKeys& keys() const { return keys_; }
    [[nodiscard]] Ledger& real() { return *ledger_; }
    void compare(std::string_view when);
    // False when the power went in the middle of what was asked last.
    [[nodiscard]] bool powered() const { return !disk_.dead(); }

private:
    void compare_replies(std::span<const LedgerReply> expected, std::span<const LedgerReply> real);
    void settle_failure(std::span<const LedgerRequest> requests, ModelLedger would_be);
    void forget_torn(std::uint64_t syncs_before);
    [[nodiscard]] LedgerView view() const;

    Disk& disk_;
    Journal& journal_;
    CheckedLedgerOptions options_;
    std::unique_ptr<Ledger> ledger_;
    ModelLedger model_;
    std::vector<ModelLedger> torn_;  // states that batches without an acknowledgement would lead to
    WatchedKeys keys_;
};

}  // namespace ration::sim
