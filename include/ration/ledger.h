// The ledger: where durable state lives. Ceilings (things actually written), quotas (what exists),
// idempotency records, blocks and issued tokens, behind one synchronous, thread-safe, batch-shaped
// interface.
//
// One life of a request that writes:
//   Reserve -> started(attempt)  durable before the first byte goes upstream
//   Settle(attempt, written)     response, counts and members durable in one commit, before the
//                                first byte goes to the client
// A request that is refused, contended or replayed has written nothing.
//
// `apply` is one commit for the whole batch: every reply is good, or the batch failed and nothing
// of it was written. After a failed batch an attempt that it would have settled is in doubt.
//
// Thread rule: `apply` and the rest may be called from any thread; calls are judged one after the
// other. Ownership: views in requests are read during the call only; replies own their bytes.
// Units: wall nanoseconds, passed in. Errors: kUnavailable (disk full, I/O error, locked) with the
// reason; a refusal is a verdict, not an error.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ration/time.h"

namespace ration {

using AttemptId = std::int64_t;  // names one attempt, for ever

inline constexpr std::size_t max_ceilings_per_request = 4;
inline constexpr std::size_t max_quotas_per_request = 4;
inline constexpr Nanos default_hold = std::chrono::milliseconds(500);  // of a contended write
inline constexpr Nanos writes_kept = std::chrono::hours(50);  // longest local day and a zone change

// A span of wall time that counts together, half-open.
struct CalendarWindow {
    std::optional<Wall> start;  // absent: before the anchor of a billing period
    Wall end{};                 // the first instant of the next window

    friend bool operator==(const CalendarWindow&, const CalendarWindow&) = default;
};

enum class CeilingKind : std::uint8_t {
    local_day,       // instants of the writes are kept and counted inside the window given
    billing_period,  // one counter per period start
};

// One ceiling of a request. `window` is computed by the caller from the zone or anchor in force.
struct CeilingUse {
    std::string_view key;  // rule and key parts, joined unambiguously
    CeilingKind kind = CeilingKind::local_day;
    std::uint64_t at_most = 0;
    CalendarWindow window;
};

// One quota that the request would raise by one object.
struct QuotaUse {
    std::string_view key;
    std::uint64_t at_most = 0;
};

// What resolves a key whose attempt's outcome is unknown: the next request with it goes on to the
// upstream with the same key, or is refused until an operator settles it, or asks the upstream
// first what became of the key.
enum class DoubtRule : std::uint8_t { forward, refuse, probe };

using Fingerprint = std::array<std::uint8_t, 32>;

struct IdempotencyKey {
    std::string_view identity;  // scope, credential kind and key, joined unambiguously
    Fingerprint fingerprint{};
    Nanos keep = std::chrono::hours(24);
    DoubtRule doubt = DoubtRule::forward;
};

struct StoredResponse {
    int status = 0;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
};

// Looks the key up, judges ceilings and then quotas in the order given, and starts an attempt.
struct Reserve {
    std::optional<IdempotencyKey> key;
    std::span<const CeilingUse> ceilings;
    std::span<const QuotaUse> quotas;
};

enum class ReserveVerdict : std::uint8_t {
    started,          // forward it; `attempt` must be settled
    replay,           // `response` is the kept answer
    mismatch,         // the key was used with another request
    in_progress,      // the key's attempt is running
    in_doubt,         // its outcome is unknown and the route refuses to find out
    probe,            // its outcome is unknown: ask the upstream, then settle `attempt`, which runs
                      // meanwhile, as written, absent or in doubt
    not_kept,         // it succeeded, its answer was too large to keep
    ceiling_reached,  // ceiling `index` is used up by what was written
    quota_reached,    // quota `index` is full
    contended,        // ceiling or quota `index` would be passed if what is in flight succeeds
};

struct Reserved {
    ReserveVerdict verdict = ReserveVerdict::started;
    AttemptId attempt = 0;
    bool second_try = false;  // an earlier attempt with this key ended in doubt
    std::uint8_t index = 0;   // of the ceiling or quota that spoke
    bool quota = false;       // contended: `index` is a quota's
    std::uint64_t level = 0;  // what was written or exists, for that ceiling or quota
    StoredResponse response;  // replay
};

enum class SettleKind : std::uint8_t {
    written,   // the upstream said 2xx: reservations become counts, the response is kept
    failed,    // a complete answer other than 2xx: the key is free again, reservations released
               // (on a second try the charge stays: the first may have written)
    not_sent,  // nothing reached the upstream: as if never begun
    doubt,     // sent, and the outcome is unknown
    absent,    // a probe found nothing written: as if never begun, on a second try too
};

struct QuotaChange {
    std::string_view key;
    std::string_view object;
    bool up = true;
};

// Ends an attempt; `attempt` 0 changes only quotas (a delete that reserved nothing).
struct Settle {
    AttemptId attempt = 0;
    SettleKind kind = SettleKind::written;
    const StoredResponse* response = nullptr;  // written with a key; null: too large to keep
    std::span<const QuotaChange> quotas;       // written only
};

// Operators' words. What was settled so is remembered for `settled_kept`: saying it again is good.
struct SettleDoubt {
    AttemptId attempt = 0;
    bool was_written = true;
};
// States the objects that exist: replaces the set.
struct StateMembers {
    std::string_view key;
    std::span<const std::string> objects;
};
struct PutBlock {
    std::string_view key;
    Wall until{};
    std::uint32_t level = 0;  // how often it was blocked before
    Wall forget_at{};         // when the level falls back to nothing
};
struct LiftBlock {
    std::string_view key;
};

// A credential made at run time. Of its secret only the SHA-256 is kept.
using SecretDigest = std::array<std::uint8_t, 32>;

struct IssuedToken {
    std::string id;  // "tok_" and 16 hexadecimal digits: no secret
    SecretDigest digest{};
    std::string kind;                                           // personal_token
    std::string owner_kind;                                     // user
    std::string owner;                                          // u_ana
    std::vector<std::pair<std::string, std::int64_t>> numbers;  // fixed when it is made
    std::string name;                                           // what people call it; may be empty
    Wall created{};
    Wall last_used{};  // `created`: never
};

struct PutToken {
    const IssuedToken* token = nullptr;  // its id and digest are new
};
struct DropToken {
    std::string_view id;
};
struct NoteUses {  // of those that are still there
    std::span<const std::pair<std::string, Wall>> uses;
};

enum class DoubtOutcome : std::uint8_t {
    settled,    // by this request
    already,    // it stands as this request says
    otherwise,  // it was settled the other way
    running,    // its outcome is still to come
    unknown,    // no such attempt was in doubt, or its record has expired
};

using LedgerRequest = std::variant<Reserve, Settle, SettleDoubt, StateMembers, PutBlock, LiftBlock,
                                   PutToken, DropToken, NoteUses>;

struct LedgerReply {
    absl::Status status;
    Reserved reserved;                           // of a Reserve
    bool found = true;                           // SettleDoubt, LiftBlock, DropToken: there was one
    DoubtOutcome doubt = DoubtOutcome::settled;  // SettleDoubt
};

struct DoubtfulAttempt {
    AttemptId attempt = 0;
    std::string identity;  // empty: no key
    Wall started{};
    Wall expires{};
    std::vector<std::string> keys;  // ceilings and quotas that it holds a place of
};

struct Block {
    std::string key;
    Wall until{};
    std::uint32_t level = 0;
    Wall forget_at{};
};

struct LedgerStats {
    std::uint64_t commits = 0;
    std::uint64_t failures = 0;  // batches that failed
    std::uint64_t running = 0;   // attempts in flight
    std::uint64_t doubtful = 0;
    std::uint64_t file_bytes = 0;
    std::uint64_t log_bytes = 0;  // of the write-ahead log
    std::uint64_t swept = 0;      // expired records removed since start
    bool healthy = true;          // the last batch did not fail
    std::string last_error;
};

// How many there are of each, counted no further than `max_counted_rows`.
struct LedgerRows {
    std::uint64_t attempts = 0;  // running, in doubt, and done ones with their kept responses
    std::uint64_t writes = 0;    // instants of writes that a day may still count
    std::uint64_t periods = 0;   // counters of billing periods
    std::uint64_t members = 0;   // objects of quotas
    std::uint64_t blocks = 0;
};
inline constexpr std::uint64_t max_counted_rows = 100'000;
inline constexpr Nanos settled_kept = std::chrono::hours(30 * 24);

class Ledger {
public:
    virtual ~Ledger() = default;

    // One commit. `replies` is as long as `requests`; on failure every reply has the same status.
    virtual void apply(std::span<const LedgerRequest> requests, Wall now,
                       std::span<LedgerReply> replies) = 0;

    // Puts every running attempt in doubt, as the death of its process does: for replay and
    // simulation, where the process lives on.
    virtual void disown() = 0;

    // Removes up to `budget` expired records of each sort: kept responses past their time, writes
    // no day can still count, and attempts in doubt whose window is over (they count as written).
    // True: there may be more. After a failure it also tries whether writing is possible again.
    virtual absl::StatusOr<bool> sweep(Wall now, std::size_t budget) = 0;

    [[nodiscard]] virtual LedgerStats stats() const = 0;
    [[nodiscard]] virtual absl::StatusOr<LedgerRows> rows() = 0;
    // What a key stands at now: writes inside the window, or objects of a quota; places in doubt
    // count.
    [[nodiscard]] virtual absl::StatusOr<std::uint64_t> level(const CeilingUse& use) = 0;
    [[nodiscard]] virtual absl::StatusOr<std::uint64_t> level(const QuotaUse& use) = 0;
    // Objects of a quota that sort after `after`, in byte order.
    [[nodiscard]] virtual absl::StatusOr<std::vector<std::string>> members(std::string_view key,
                                                                           std::string_view after,
                                                                           std::size_t limit) = 0;
    // Attempts in doubt with a number above `after`, in ascending order.
    [[nodiscard]] virtual std::vector<DoubtfulAttempt> doubtful(AttemptId after,
                                                                std::size_t limit) const = 0;
    [[nodiscard]] virtual absl::StatusOr<std::vector<Block>> blocks() = 0;
    [[nodiscard]] virtual absl::StatusOr<std::vector<IssuedToken>> tokens() = 0;

    [[nodiscard]] LedgerReply apply_one(const LedgerRequest& request, Wall now) {
        LedgerReply reply;
        apply({&request, 1}, now, {&reply, 1});
        return reply;
    }
};

struct SqliteLedgerOptions {
    std::string path;  // ":memory:" for replay and tests
    // Called with the name of each step that a crash could fall between, in builds that force
    // crashes there; null in service.
    std::function<void(std::string_view)> sync_point;
};

// Opens or creates the file. FailedPrecondition when another process holds it (named by its pid),
// when it is not a ledger, when it is damaged, or when its schema is newer than this program.
// Nothing is written to a file that is refused.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Ledger>> open_sqlite_ledger(
    const SqliteLedgerOptions& options);

// Checks a closed file: structure and meaning. OK; DataLoss with one finding a line;
// FailedPrecondition when it is not a ledger at all; NotFound; Unavailable when a process holds it,
// which is named.
[[nodiscard]] absl::Status check_sqlite_ledger(const std::string& path);

}  // namespace ration
