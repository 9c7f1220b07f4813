// Problem: the decision must be made at exactly the instant that the test says, while the gateway
// reads its clock on its own thread, once per round of its event loop, and a round still under way
// could pick up a request that was sent after the clock was moved.
// Idea: the clock tells when it is read. After a move the test waits for the next reading: whatever
// is sent then is met by a round that began with the new one. Closing the connection wakes the
// loop for it.
#include "workbench/http_test_bed.h"

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/text.h"
#include "ledger/runner.h"
#include "server/gateway.h"
#include "server/process/block_keeper.h"
#include "workbench/exchange_report.h"
#include "workbench/loopback_client.h"
#include "workbench/loopback_peer.h"
#include "workbench/scripted_upstream.h"
#include "workbench/stepped_clock.h"
#include "workbench/switchable_counters.h"

namespace ration {

namespace {

constexpr std::uint64_t counter_bytes = 16ULL << 20;

// Keeps the report of the request that finished last.
class LastRequest final : public RequestObserver {
public:
    void on_request(const RequestRecord& record) override {
        ServiceAnswer answer;
        answer.outcome = record.outcome == RequestOutcome::admitted   ? ServiceOutcome::admitted
                         : record.outcome == RequestOutcome::replayed ? ServiceOutcome::replayed
                                                                      : ServiceOutcome::refused;
        if (record.exchange != nullptr) {
            report_exchange(*record.exchange, answer);
        }
        const std::lock_guard lock(mutex_);
        answer_ = std::move(answer);
        told_.notify_one();
    }

    // Waits for the report; nullopt when none comes.
    [[nodiscard]] std::optional<ServiceAnswer> take() {
        std::unique_lock lock(mutex_);
        told_.wait_for(lock, std::chrono::seconds(wire_patience_seconds),
                       [this] { return answer_.has_value(); });
        return std::exchange(answer_, std::nullopt);
    }

private:
    std::mutex mutex_;
    std::condition_variable told_;
    std::optional<ServiceAnswer> answer_;
};

// A clock that is moved by hand and knows when it was read.
class WatchedClock final : public Clock {
public:
    explicit WatchedClock(Now start) : now_(start) {}

    [[nodiscard]] Now now() const override {
        const std::lock_guard lock(mutex_);
        read_ = true;
        was_read_.notify_one();
        return now_;
    }

    void set(Now now) {
        const std::lock_guard lock(mutex_);
        now_ = now;
        read_ = false;
    }

    // A look that is not the gateway's.
    [[nodiscard]] Now peek() const {
        const std::lock_guard lock(mutex_);
        return now_;
    }

    // Returns when the clock was read since it was set; the gateway's loop does so every tick at
    // least.
    void wait_for_reading() const {
        std::unique_lock lock(mutex_);
        was_read_.wait_for(lock, std::chrono::seconds(wire_patience_seconds),
                           [this] { return read_; });
    }

private:
    mutable std::mutex mutex_;
    mutable std::condition_variable was_read_;
    mutable bool read_ = false;
    Now now_;
};

// The same time for the ledger's thread, whose reading says nothing about the gateway's loop.
class QuietClock final : public Clock {
public:
    explicit QuietClock(const WatchedClock& clock) : clock_(clock) {}
    [[nodiscard]] Now now() const override { return clock_.peek(); }

private:
    const WatchedClock& clock_;
};

class HttpTestBed final : public TestBed {
public:
    HttpTestBed(const TestCase& test, Sink sink)
        : sink_(std::move(sink)),
          rules_(test.rules),
          stepped_({first_mono, test.start}),
          clock_(stepped_.now()) {}

    [[nodiscard]] absl::Status open();

    [[nodiscard]] absl::Status request(Mono at, ServiceRequest request,
                                       std::uint64_t ticket) override;
    void reload(Mono at, const Rules& rules) override;
    void set_counters(Mono at, bool up) override;
    [[nodiscard]] absl::Status restart(Mono at) override;
    void step_wall(Mono at, Nanos by) override;
    void run_out() override {}

private:
    [[nodiscard]] absl::Status open_ledger();
    void move_to(Mono at);
    void clock_moved();
    void finish(WireMessage message, ServiceAnswer& answer);

    Sink sink_;
    Rules rules_;
    SteppedClock stepped_;
    WatchedClock clock_;
    QuietClock quiet_clock_{clock_};
    LastRequest last_;
    std::unique_ptr<ScriptedUpstream> upstream_;
    std::unique_ptr<SwitchableCounters> counters_;
    std::unique_ptr<Counters> local_;
    std::unique_ptr<Ledger> ledger_;  // outlives restarts
    std::unique_ptr<LedgerRunner> ledger_runner_;
    std::unique_ptr<Engine> engine_;
    std::unique_ptr<BlockKeeper> keeper_;
    std::unique_ptr<BlockBook> blocks_;
    std::unique_ptr<Gateway> gateway_;
    std::optional<LoopbackClient> client_;
};

absl::Status HttpTestBed::open() {
    if (upstream_ == nullptr) {
        auto upstream = ScriptedUpstream::start();
        if (!upstream.ok()) {
            return upstream.status();
        }
        upstream_ = *std::move(upstream);
    }
    auto shared = open_memory_counters({.max_bytes = counter_bytes});
    auto local = open_memory_counters({.max_bytes = counter_bytes});
    if (!shared.ok() || !local.ok()) {
        return shared.ok() ? local.status() : shared.status();
    }
    client_.reset();
    gateway_.reset();
    if (absl::Status status = open_ledger(); !status.ok()) {
        return status;
    }
    engine_.reset();
    counters_ = std::make_unique<SwitchableCounters>(*std::move(shared));
    local_ = *std::move(local);
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->policy = rules_.policy;
    snapshot->directory = rules_.directory;
    snapshot->since = stepped_.now().mono;
    engine_ = std::make_unique<Engine>(*counters_, std::move(snapshot), local_.get());
    const auto kept = ledger_->blocks();
    if (!kept.ok()) {
        return kept.status();
    }
    keeper_ = std::make_unique<BlockKeeper>(*ledger_runner_);
    blocks_ = std::make_unique<BlockBook>(*engine_, keeper_.get());
    engine_->watch_blocks(blocks_.get());
    blocks_->restore(*kept, stepped_.now());
    GatewayOptions options;
    options.listeners.emplace_back();
    options.threads = 1;
    options.upstream.port = upstream_->port();
    options.request_id_seed = 1;
    options.ledger = ledger_runner_.get();
    auto gateway = Gateway::start(options, *engine_, clock_, last_);
    if (!gateway.ok()) {
        return gateway.status();
    }
    gateway_ = *std::move(gateway);
    client_.emplace(gateway_->port(0));
    return absl::OkStatus();
}

// At a restart the ledger stays, as a file would, and what ran is in doubt.
absl::Status HttpTestBed::open_ledger() {
    ledger_runner_.reset();
    if (ledger_ == nullptr) {
        auto ledger = open_sqlite_ledger({.path = ":memory:", .sync_point = {}});
        if (!ledger.ok()) {
            return ledger.status();
        }
        ledger_ = *std::move(ledger);
    }
    ledger_->disown();
    ledger_runner_ = std::make_unique<LedgerRunner>(*ledger_, quiet_clock_);
    return absl::OkStatus();
}

void HttpTestBed::clock_moved() {
    clock_.set(stepped_.now());
    if (client_) {
        client_->reconnect();
        clock_.wait_for_reading();
    }
}

void HttpTestBed::move_to(Mono at) {
    if (at > stepped_.now().mono) {
        stepped_.move_to(at);
        clock_moved();
    }
}

void HttpTestBed::step_wall(Mono at, Nanos by) {
    move_to(at);
    stepped_.step_wall(by);
    clock_moved();
}

absl::Status HttpTestBed::request(Mono at, ServiceRequest request, std::uint64_t ticket) {
    move_to(at);
    stand_in_for_peer(*rules_.policy, request);
    upstream_->script(request.upstream);
    auto message = client_->ask(request);
    if (!message.ok()) {
        return message.status();
    }
    std::optional<ServiceAnswer> answer = last_.take();
    if (!answer) {
        return absl::UnavailableError("the gateway did not report the request");
    }
    finish(*std::move(message), *answer);
    sink_(ticket, *std::move(answer));
    return absl::OkStatus();
}

// What came over the wire, beside what the gateway reported.
void HttpTestBed::finish(WireMessage message, ServiceAnswer& answer) {
    const std::string_view line = message.start_line;  // "HTTP/1.1 200 OK"
    const std::size_t begin = std::min(line.find(' ') + 1, line.size());
    std::from_chars(line.data() + begin, line.data() + line.size(), answer.status);
    answer.headers = std::move(message.headers);
    answer.body = std::move(message.body);
    answer.forwarded = upstream_->take_seen();
}

void HttpTestBed::reload(Mono at, const Rules& rules) {
    move_to(at);
    rules_ = rules;
    engine_->swap_rules(rules.policy, rules.directory, stepped_.now());
}

void HttpTestBed::set_counters(Mono at, bool up) {
    move_to(at);
    counters_->set_up(up, stepped_.now());
}

absl::Status HttpTestBed::restart(Mono at) {
    move_to(at);
    return open();
}

}  // namespace

TestBedKind over_http() {
    TestBedKind kind;
    kind.cannot_run = why_not_over_loopback;
    kind.start = [](const TestCase& test,
                    TestBed::Sink sink) -> absl::StatusOr<std::unique_ptr<TestBed>> {
        auto bed = std::make_unique<HttpTestBed>(test, std::move(sink));
        if (const absl::Status opened = bed->open(); !opened.ok()) {
            return opened;
        }
        return bed;
    };
    return kind;
}

}  // namespace ration
