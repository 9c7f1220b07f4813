// What a ledger is supposed to mean, in plain containers: the oracle of the simulation.
//
// Written from include/ration/ledger.h, not from the SQLite ledger. Copyable: before a batch whose
// commit may be torn, keep both what was and what would be. Attempts that it starts have ids below
// zero until `adopt` gives them those of the ledger under test. Thread rule: one thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "ration/ledger.h"

namespace ration::sim {

struct ModelPlace {
    enum class Kind { day, period, quota } kind = Kind::day;
    std::string key;
    Wall at{};  // day: the write's instant; period: its start
    Wall ends{};
};

struct ModelAttempt {
    enum class State { running, doubt, done };
    AttemptId id = 0;
    State state = State::running;
    bool second_try = false;
    std::optional<std::string> identity;
    Fingerprint fingerprint{};
    Nanos keep{};
    Wall started{};
    Wall done_until{};
    std::vector<ModelPlace> places;
    std::optional<StoredResponse> response;

    [[nodiscard]] Wall expires() const;  // of a doubt
    // Counts as written whatever comes of it now: it, or an earlier try, may have been.
    [[nodiscard]] bool doubtful() const { return state == State::doubt || second_try; }
};

// What can be seen of a ledger from outside, for comparing.
struct LedgerView {
    std::vector<std::tuple<std::string, Wall, Wall, std::vector<std::string>>> doubts;
    std::vector<std::uint64_t> levels;
    std::vector<std::vector<std::string>> members;
    std::uint64_t running = 0;
    std::uint64_t records = 0;

    friend bool operator==(const LedgerView&, const LedgerView&) = default;
};
[[nodiscard]] std::string to_string(const LedgerView& view);

// The windows and quotas that a view looks at.
struct WatchedKeys {
    struct Window {
        std::string key;
        CeilingKind kind;
        std::uint64_t at_most;
        CalendarWindow window;
        [[nodiscard]] CeilingUse use() const { return {key, kind, at_most, window}; }
    };
    std::vector<Window> windows;
    std::set<std::string> quotas;
    void watch(const Reserve& reserve);
};

class ModelLedger {
public:
    // Performs them all; `adopt` gives started attempts the ids that the real replies say.
    std::vector<LedgerReply> apply(std::span<const LedgerRequest> requests, Wall now);
    void adopt(std::span<const LedgerReply> expected, std::span<const LedgerReply> real);
    // The batch failed: what it would have settled is in doubt.
    void fail(std::span<const LedgerRequest> requests);
    void restart();
    void sweep(Wall now);
    // Gives open attempts the ids under which the ledger lists them.
    void adopt(const std::vector<DoubtfulAttempt>& listed);

    [[nodiscard]] std::uint64_t written(const CeilingUse& use) const;
    [[nodiscard]] std::uint64_t held(const CeilingUse& use, bool doubtful) const;
    [[nodiscard]] LedgerView view(const WatchedKeys& keys) const;
    [[nodiscard]] const std::vector<ModelAttempt>& attempts() const { return attempts_; }
    // "" or the first ceiling with more written and reserved than it allows.
    [[nodiscard]] std::string passed_ceiling(const WatchedKeys& keys) const;

private:
    LedgerReply perform(const Reserve& reserve, Wall now);
    LedgerReply perform(const Settle& settle, Wall now);
    LedgerReply perform(const SettleDoubt& settle, Wall now);
    LedgerReply perform(const StateMembers& members, Wall now);
    LedgerReply perform(const PutBlock&, Wall) { return {}; }
    LedgerReply perform(const LiftBlock&, Wall) { return {}; }
    LedgerReply perform(const PutToken&, Wall) { return {}; }
    LedgerReply perform(const DropToken&, Wall) { return {}; }
    LedgerReply perform(const NoteUses&, Wall) { return {}; }
    bool answered_by_record(const IdempotencyKey& key, Wall now, Reserved& reserved);
    bool judge_places(const Reserve& reserve, Reserved& reserved) const;
    [[nodiscard]] ModelAttempt* find(AttemptId id);
    void write(const ModelAttempt& attempt);
    void erase(AttemptId id);

    AttemptId next_ = -1;
    std::vector<ModelAttempt> attempts_;
    std::vector<std::pair<std::string, Wall>> writes_;
    std::map<std::pair<std::string, Wall>, std::pair<Wall, std::uint64_t>> periods_;
    std::map<std::string, std::set<std::string>> members_;
};

}  // namespace ration::sim
