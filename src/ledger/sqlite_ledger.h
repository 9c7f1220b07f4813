// The SQLite ledger: one transaction per batch, one index of open attempts in memory.
//
// Because one process owns the file, what runs and what is in doubt is held in memory (`open_`,
// `holds_`) and only rebuilt from the rows at start, so judging a ceiling reads at most one count.
// Memory is changed as the batch goes and put back from `journal_` when the commit fails.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ledger/holds.h"
#include "ledger/sqlite_file.h"
#include "ledger/sqlite_statements.h"
#include "ration/ledger.h"

namespace ration {

class SqliteLedger final : public Ledger {
public:
    [[nodiscard]] static absl::StatusOr<std::unique_ptr<SqliteLedger>> open(
        const SqliteLedgerOptions& options);
    ~SqliteLedger() override = default;

    void apply(std::span<const LedgerRequest> requests, Wall now,
               std::span<LedgerReply> replies) override;
    void disown() override;
    absl::StatusOr<bool> sweep(Wall now, std::size_t budget) override;
    [[nodiscard]] LedgerStats stats() const override;
    [[nodiscard]] absl::StatusOr<LedgerRows> rows() override;
    [[nodiscard]] absl::StatusOr<std::uint64_t> level(const CeilingUse& use) override;
    [[nodiscard]] absl::StatusOr<std::uint64_t> level(const QuotaUse& use) override;
    [[nodiscard]] absl::StatusOr<std::vector<std::string>> members(std::string_view key,
                                                                   std::string_view after,
                                                                   std::size_t limit) override;
    [[nodiscard]] std::vector<DoubtfulAttempt> doubtful(AttemptId after,
                                                        std::size_t limit) const override;
    [[nodiscard]] absl::StatusOr<std::vector<Block>> blocks() override;
    [[nodiscard]] absl::StatusOr<std::vector<IssuedToken>> tokens() override;

    // Attempts in doubt whose doubt is not on disk: at most those that ran when a batch failed.
    [[nodiscard]] std::size_t unsaved_doubts() const {
        const std::lock_guard lock(mutex_);
        return unsaved_doubts_.size();
    }

private:
    enum class State : int { running = 1, doubt = 2, done = 3 };

    // An attempt whose outcome is not settled.
    struct Open {
        State state = State::running;
        bool second_try = false;
        std::string identity;  // empty: no key
        std::int64_t started = 0;
        std::int64_t keep = 0;
        std::vector<Place> places;

        [[nodiscard]] std::int64_t doubt_expires() const;
    };

    // What a batch did to memory, to be undone if it cannot be committed.
    struct JournalEntry {
        enum class Kind { started, retried, ended } kind;
        AttemptId attempt = 0;
        Open before;  // retried, ended
    };

    struct CachedCount {
        std::int64_t from = 0;
        std::int64_t to = 0;
        std::uint64_t count = 0;
    };

    SqliteLedger(LedgerFile file, SqliteStatements statements, const SqliteLedgerOptions& options);

    absl::Status load();
    absl::Status load_granted();
    absl::Status apply_all(std::span<const LedgerRequest> requests, Wall now,
                           std::span<LedgerReply> replies);
    absl::Status commit();
    void meet_sync_point(std::string_view reserves, std::string_view settles) const;
    void undo();
    void doubt_unsettled(std::span<const LedgerRequest> requests);
    absl::Status save_doubts();

    absl::Status perform(const Reserve& reserve, Wall now, LedgerReply& reply);
    absl::Status perform(const Settle& settle, Wall now, LedgerReply& reply);
    absl::Status perform(const SettleDoubt& settle, Wall now, LedgerReply& reply);
    absl::Status perform(const StateMembers& members, Wall now, LedgerReply& reply);
    absl::StatusOr<DoubtOutcome> settled_before(const SettleDoubt& settle);
    absl::Status perform(const PutBlock& block, Wall now, LedgerReply& reply);
    absl::Status perform(const LiftBlock& block, Wall now, LedgerReply& reply);
    absl::Status perform(const PutToken& put, Wall now, LedgerReply& reply);
    absl::Status perform(const DropToken& drop, Wall now, LedgerReply& reply);
    absl::Status perform(const NoteUses& note, Wall now, LedgerReply& reply);

    // True when the key's record has answered the request.
    absl::StatusOr<bool> look_up(const IdempotencyKey& key, Wall now, Reserved& reserved);
    absl::StatusOr<bool> judge_record(const IdempotencyKey& key, Wall now, AttemptId id,
                                      Reserved& reserved);
    // True when a ceiling or a quota has no room for it.
    absl::StatusOr<bool> judge_room(const Reserve& reserve, Reserved& reserved);
    absl::StatusOr<bool> judge_ceilings(std::span<const CeilingUse> ceilings, Reserved& reserved);
    absl::StatusOr<bool> judge_quotas(std::span<const QuotaUse> quotas, Reserved& reserved);
    // False, and nothing has changed, when the key has a record.
    absl::StatusOr<bool> start(const Reserve& reserve, Wall now, Reserved& reserved);
    absl::Status grant_ids();
    absl::Status retry(AttemptId id, Reserved& reserved);

    absl::Status settle_written(const Settle& settle, const Open& open, Wall now);
    absl::Status settle_doubt(AttemptId id, const Open& open);
    absl::Status change_members(std::span<const QuotaChange> changes);
    absl::Status write_places(AttemptId id, const std::vector<Place>& places);
    absl::Status delete_attempt(AttemptId id);
    // Takes it out of memory into the journal, where it stays until the next batch.
    const Open& end(AttemptId id);

    // The span of instants that count together in that ceiling.
    static Place window_of(const CeilingUse& use);
    absl::StatusOr<std::uint64_t> objects(std::string_view key);
    absl::StatusOr<std::uint64_t> written(std::string_view key, const Place& window);
    absl::StatusOr<std::uint64_t> count_in(SqliteStatement& statement);
    // How many of one sort were removed at most.
    absl::StatusOr<std::size_t> sweep_all(Wall now, std::size_t budget);
    absl::StatusOr<std::size_t> sweep_attempts(Wall now, std::size_t budget);

    mutable std::mutex mutex_;
    LedgerFile file_;
    SqliteStatements statements_;
    SqliteLedgerOptions options_;
    AttemptId next_id_ = 1;
    AttemptId granted_ = 0;  // the last number that the file has given out
    absl::flat_hash_map<AttemptId, Open> open_;
    Holds holds_;
    absl::flat_hash_map<std::string, CachedCount> counts_;
    absl::flat_hash_map<std::string, std::uint64_t> members_;  // how many objects of a quota
    std::deque<JournalEntry> journal_;                         // entries stay where they are
    // In doubt since a batch failed; not on disk yet.
    absl::flat_hash_set<AttemptId> unsaved_doubts_;
    LedgerStats stats_;
};

}  // namespace ration
