// The engine in service on a virtual clock, with scripted upstream answers: what `ration replay`
// and `ration test` run.
//
// Requests begin at their instants; an upstream answer completes `takes` later, and at equal
// instants completions come before anything new. An upstream that has not answered within the
// upstream timeout is a 504. Everything is deterministic: the same calls give the same answers,
// request ids included. Ceilings, quotas and idempotency are kept by a ledger in memory, which a
// restart leaves as a crash leaves a file.
//
// Instants are readings of the monotonic clock, never earlier than the call before. The wall clock
// moves along with it; `step_wall` moves it alone, and as in service its reading never goes back.
// Thread rule: one thread at a time. Errors: ResourceExhausted from `request` when max_in_flight
// requests are pending; nothing has happened then.
//
//   auto service = VirtualService::create({.rules = rules, .start = now},
//                                         [](std::uint64_t ticket, ServiceAnswer answer) { ... });
//   (*service)->request(now.mono, request, 1);
//   (*service)->run_out();
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/block_book.h"
#include "engine/engine.h"
#include "ration/ledger.h"
#include "workbench/message.h"
#include "workbench/stepped_clock.h"
#include "workbench/switchable_counters.h"
#include "workbench/test_bed.h"

namespace ration {

// Requests whose upstream answer is pending; each keeps about 20 KiB.
inline constexpr std::size_t default_max_in_flight = 16'384;

struct VirtualServiceOptions {
    Rules rules;
    Now start;
    Nanos upstream_timeout = std::chrono::seconds(60);
    std::uint64_t counter_bytes = 256ULL << 20;
    std::size_t max_in_flight = default_max_in_flight;
    Nanos hold = default_hold;  // how long a contended write waits for a place
};

class VirtualService final : public TestBed {
public:
    [[nodiscard]] static absl::StatusOr<std::unique_ptr<VirtualService>> create(
        VirtualServiceOptions options, Sink sink);
    ~VirtualService() override;

    [[nodiscard]] absl::Status request(Mono at, ServiceRequest request,
                                       std::uint64_t ticket) override;
    void reload(Mono at, const Rules& rules) override;
    void set_counters(Mono at, bool up) override;
    [[nodiscard]] absl::Status restart(Mono at) override;
    void step_wall(Mono at, Nanos by) override;
    void run_out() override;
    // Completes everything that is due until `at`, `at` included.
    void run_until(Mono at);

    [[nodiscard]] std::size_t in_flight() const { return pending_.size(); }
    [[nodiscard]] std::shared_ptr<const Snapshot> rules() const { return engine_->rules(); }
    [[nodiscard]] Now now() const { return clock_.now(); }

private:
    struct InFlight;
    class KeptBlocks;
    struct Due {
        Mono at{};
        std::uint64_t order = 0;  // of beginning: settles equal instants
        std::unique_ptr<InFlight> call;
    };
    // Earliest on top.
    static bool later_due(const Due& a, const Due& b) {
        return a.at != b.at ? a.at > b.at : a.order > b.order;
    }

    VirtualService(VirtualServiceOptions options, Sink sink);
    [[nodiscard]] absl::Status open(const Rules& rules);
    [[nodiscard]] Due pop();
    void complete(InFlight& call);
    void settle_durable(InFlight& call);
    void end_attempt(InFlight& call, SettleKind kind);
    void finish_refused(InFlight& call);
    void refuse_body(std::unique_ptr<InFlight> call);
    // What becomes of a call that the limits have admitted: forwarded, held, or answered.
    void ask_ledger(std::unique_ptr<InFlight> call);
    void judge(std::unique_ptr<InFlight> call, const LedgerReply& reply);
    void forward(std::unique_ptr<InFlight> call);
    void probe(std::unique_ptr<InFlight> call);
    void conclude_probe(std::unique_ptr<InFlight> call);
    void await_upstream(std::unique_ptr<InFlight> call, std::optional<Nanos> takes);
    void sweep_when_due();
    void reserve(std::unique_ptr<InFlight> call);
    void retry_held();
    void end_first_hold();
    [[nodiscard]] std::optional<Mono> next_event() const;
    [[nodiscard]] std::unique_ptr<InFlight> fresh_call();
    void answer(InFlight& call, ServiceAnswer answer);

    VirtualServiceOptions options_;
    Sink sink_;
    SteppedClock clock_;
    std::uint64_t next_order_ = 1;
    std::unique_ptr<SwitchableCounters> counters_;
    std::unique_ptr<Counters> local_;
    std::unique_ptr<Engine> engine_;
    std::unique_ptr<Ledger> ledger_;  // outlives restarts
    std::unique_ptr<KeptBlocks> kept_blocks_;
    std::unique_ptr<BlockBook> blocks_;
    std::vector<Due> pending_;  // a heap
    std::optional<Wall> swept_until_;
    std::deque<Due> held_;  // contended, in the order of their deadlines
    std::vector<std::unique_ptr<InFlight>> idle_;
};

}  // namespace ration
