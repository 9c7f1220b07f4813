// The engine: identify -> match -> plan -> counters.apply -> conclude -> (forward) -> settle.
//
// Sans-I/O: time and request come as arguments, only the counters are touched. One request:
//
//   Exchange exchange;                                  // kept per connection
//   engine.begin(exchange, request, clock.now());       // all limits charged in one step
//   if (exchange.decision.kind != Decision::Kind::admit)
//       send(engine.answer(exchange));                  // 429, 401, 404, preflight, ...
//   else
//       forward; then add what `response_fields` says to the upstream's answer
//   engine.finish(exchange, ending, clock.now());       // exactly one settlement, on every exit
//
// Thread rule: `begin`, `answer`, `finish` and the rest may be called from any thread, each with
// its own Exchange. Ownership: the engine keeps the counters' reference and the current snapshot.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "engine/answer.h"
#include "engine/charge.h"
#include "engine/exchange.h"
#include "policy/issued.h"
#include "ration/counters.h"
#include "ration/ledger.h"

namespace ration {

// How a request ended.
struct Ending {
    enum class Kind : std::uint8_t {
        answered,     // the upstream's answer is complete (or its head, for settling a stated cost)
        refused,      // ration answered by itself
        lost,         // connection to the upstream failed or broke
        timed_out,    // the upstream was too slow
        client_gone,  // nobody waits for the answer any more
    };
    Kind kind = Kind::refused;
    int status = 0;                                 // answered: the upstream's status
    std::span<const Header> response_headers = {};  // answered: for costs stated by the response
};

class Engine {
public:
    // `local` stands in for limits with `store_down: local` while `counters` is unavailable; null:
    // such limits are open then. Both must outlive the engine.
    Engine(Counters& counters, std::shared_ptr<const Snapshot> rules, Counters* local = nullptr,
           unsigned replicas = 1);

    [[nodiscard]] std::shared_ptr<const Snapshot> rules() const;
    // Puts new rules in force for requests that begin from now on; use so far stays used (a limit's
    // state belongs to its name and key). Requests under way end under the rules they began with.
    void swap_rules(std::shared_ptr<const Policy> policy,
                    std::shared_ptr<const Directory> directory, Now now);

    // Identifies, matches, plans, charges and decides.
    void begin(Exchange& exchange, const RequestView& request, Now now);
    // The same in two steps, for requests whose body comes later: `arrive` finds out who asks for
    // what. When `needs_body` then says so, the body is read whole (max_read_body_bytes at most)
    // before `decide`; else it may be empty. Both are for requests whose decision is still `admit`.
    void arrive(Exchange& exchange, const RequestView& request, Now now);
    [[nodiscard]] static bool needs_body(const Exchange& exchange);
    void decide(Exchange& exchange, std::string_view body, Now now);

    // `decide` in two steps, for counters that answer later. True: `batch` has what to ask them,
    // and `judge_limits` takes the answers; false: decided. What `decide` does for attempts at the
    // end is left to the caller: see `counts_attempt`.
    [[nodiscard]] bool prepare(Exchange& exchange, std::string_view body, Now now,
                               ChargeBatch& batch);
    void judge_limits(Exchange& exchange, const ChargeBatch& batch, Now now);
    // Whether `answered` would ask the counters about this answer's status, several times in a row.
    [[nodiscard]] static bool counts_attempt(const Exchange& exchange);
    // The status of ration's own answer to a decided request, as `answered` takes it.
    [[nodiscard]] static int own_status(const Exchange& exchange);

    // The whole answer of a request that is not forwarded.
    [[nodiscard]] Answer answer(const Exchange& exchange) const;
    // The answer when something else went wrong (502, 504, 400, ...), with the request's CORS and
    // declared rate-limit headers. Before `begin` succeeded: use the static form.
    [[nodiscard]] Answer failure(const Exchange& exchange, BuiltIn which) const;
    [[nodiscard]] static Answer failure(const Policy& policy, BuiltIn which,
                                        std::string_view request_id, std::string_view detail);

    // The upstream's response fields that must not reach the client (its CORS headers when the
    // policy has its own; a Cache-Control that lets others have the caller's numbers), and those to
    // add.
    [[nodiscard]] bool drops_response_field(const Exchange& exchange, std::string_view name,
                                            std::string_view value) const;
    void response_fields(const Exchange& exchange, FieldSink sink) const;
    // Names of request fields that the client may not set (see `is_kept_from_upstream`); those to
    // add for the upstream: Ration-Request-Id, Ration-Address, Ration-Credential, Ration-<Entity>.
    [[nodiscard]] static bool drops_request_field(std::string_view name);
    void request_fields(const Exchange& exchange, FieldSink sink) const;

    // For a request with `exchange.durable`, between `begin` and forwarding. `ask` completes what
    // the ledger is asked with the request's body (false: refused, see `answer`); `judge` takes the
    // ledger's reply into the decision: admit, replay or refuse.
    [[nodiscard]] bool ask(Exchange& exchange, std::string_view body) const;
    void judge(Exchange& exchange, const LedgerReply& reply) const;

    // The status that the client is about to see, once it is known and before its first byte: what
    // strike rules count by. Requests that ration answers itself need no call.
    // `told` as for `finish`: the failure counts, but a block can only begin with the next one.
    void answered(Exchange& exchange, int status, Now now, Counters* told = nullptr);

    // Settles: gives back attempts that nobody answered, frees in-flight slots, corrects costs.
    // Calling it twice does nothing the second time.
    // `told` takes the place of the engine's counters: it need not answer.
    void finish(Exchange& exchange, const Ending& ending, Now now, Counters* told = nullptr);

    [[nodiscard]] Counters& counters() { return counters_; }
    // Is asked for credentials that the directory does not have; set before the first request.
    void use_issued(IssuedCredentials* issued) { issued_ = issued; }
    // Is told of every block that begins; set before the first request, and outlives the engine.
    void watch_blocks(BlockWatcher* watcher) { watcher_ = watcher; }

private:
    void open(Exchange& exchange, const RequestView& request, Now now);
    [[nodiscard]] bool plan_limits(Exchange& exchange, std::string_view body, Now now);
    void conclude_limits(Exchange& exchange);
    void date_charges(Exchange& exchange);
    [[nodiscard]] Stores stores(Counters* told = nullptr) {
        return {told != nullptr ? *told : counters_, local_, replicas_, watcher_};
    }

    Counters& counters_;
    Counters* local_;
    unsigned replicas_;
    BlockWatcher* watcher_ = nullptr;
    IssuedCredentials* issued_ = nullptr;
    std::atomic<std::uint64_t> lease_sequence_{0};
    std::atomic<std::uint64_t> generation_{1};  // raised with every swap
    mutable std::mutex mutex_;
    std::shared_ptr<const Snapshot> rules_;
};

}  // namespace ration
