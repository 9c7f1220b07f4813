// One process life of the gateway, without sockets: the real engine, the real ledger runner, and
// between them the order of steps that src/server/proxy keeps.
//
//   begin -> ask -> reserve (durable) -> send -> answer -> settle (durable) -> to the client
//
// Destroying it is the process's death: nothing of it happens afterwards, what the upstream was
// sent goes on there. Ownership: everything referred to outlives it. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "ledger/runner.h"
#include "policy/directory.h"
#include "sim/checked_ledger.h"
#include "sim/judge.h"
#include "sim/scheduler.h"
#include "sim/upstream.h"

namespace ration::sim {

struct GatewayOptions {
    std::shared_ptr<const Policy> policy;
    std::shared_ptr<const Directory> directory;
    unsigned trouble_percent = 20;     // of what is sent upstream
    unsigned slow_commit_percent = 2;  // of commits that take longer than anybody waits
    bool answers_first = false;        // a mutant: the client hears before the ledger
};

class Gateway {
public:
    struct Parts {
        Scheduler& scheduler;
        CheckedLedger& ledger;
        Upstream& upstream;
        Judge& judge;
        Journal& journal;
        Random& random;
    };
    using Answered = std::function<void(const Heard&)>;

    Gateway(Parts parts, GatewayOptions options);
    ~Gateway();

    void request(const Asked& asked, Answered answered);
    void settle_doubt(AttemptId attempt, bool was_written);
    [[nodiscard]] std::size_t in_flight() const { return calls_.size(); }

private:
    struct Call;
    class Job;
    enum class Stage { asking, probing, forwarding, settling, found, over };

    void ask_ledger(Call& call);
    void reserve(Call& call);
    void probe_answered(Call& call, const Upstream::Done& done);
    void reserved(Call& call, const LedgerReply& reply);
    void send(Call& call);
    void act(Call& call, const Fate& fate);
    void upstream_ended(Call& call, const Fate& fate, const Upstream::Done& done);
    void settle(Call& call, SettleKind kind, const Upstream::Done& done);
    void release(Call& call);
    void fail(Call& call, BuiltIn which);
    void answer(Call& call, Answer answer);
    void submit(std::shared_ptr<Job> job);
    void deliver(Job& job);
    void schedule_turn(Nanos delay);
    void turn();
    void later_if_alive(Nanos delay, std::function<void()> what);
    void for_call(std::uint64_t id, Nanos delay, std::function<void(Call&)> what);

    Parts parts_;
    GatewayOptions options_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
    std::unique_ptr<Counters> counters_;
    std::unique_ptr<Engine> engine_;
    std::unique_ptr<LedgerRunner> runner_;
    std::map<std::uint64_t, std::unique_ptr<Call>> calls_;
    std::uint64_t next_call_ = 1;
    bool turn_scheduled_ = false;
};

}  // namespace ration::sim
