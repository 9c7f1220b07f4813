// Problem: a request is in flight from its beginning to its upstream's answer, other requests begin
// in between, and the order of it all must be exact and repeatable. Idea: one heap of pending
// answers. Every call that happens at an instant first completes whatever is due until that
// instant, equal instants included; a decision made by ration itself needs no pending entry at all.
// So the heap holds only requests that an upstream still has.
#include "workbench/virtual_service.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/durable.h"
#include "workbench/exchange_report.h"
#include "workbench/forwarding.h"

namespace ration {

struct VirtualService::InFlight {
    std::uint64_t order = 0;
    std::uint64_t ticket = 0;
    ServiceRequest request;
    std::string id;
    std::vector<Header> headers;  // views into `request`
    Exchange exchange;
    ServiceAnswer answer;
    bool probing = false;  // the upstream is asked about the key, not for the request

    void take(ServiceRequest taken, std::uint64_t number, std::string request_id) {
        ticket = number;
        request = std::move(taken);
        id = std::move(request_id);
        headers.clear();
        for (const auto& [name, value] : request.headers) {
            headers.push_back({name, value});
        }
        answer = {};
        probing = false;
    }
    [[nodiscard]] RequestView view() const {
        return {request.method, request.target, headers, request.peer, id, request.body};
    }
};

// Blocks are written through to the ledger, which a restart leaves.
class VirtualService::KeptBlocks final : public BlockStore {
public:
    KeptBlocks(VirtualService& service) : service_(service) {}
    void keep(const Block& block) override {
        static_cast<void>(service_.ledger_->apply_one(
            PutBlock{block.key, block.until, block.level, block.forget_at}, service_.now().wall));
    }
    void drop(std::string_view key) override {
        static_cast<void>(service_.ledger_->apply_one(LiftBlock{key}, service_.now().wall));
    }

private:
    VirtualService& service_;
};

namespace {

constexpr Nanos sweep_every = std::chrono::seconds(1);
constexpr std::size_t sweep_budget = 1000;

std::vector<Header> views_of(const Fields& fields) {
    std::vector<Header> views;
    for (const auto& [name, value] : fields) {
        views.push_back({name, value});
    }
    return views;
}

}  // namespace

VirtualService::VirtualService(VirtualServiceOptions options, Sink sink)
    : options_(std::move(options)), sink_(std::move(sink)), clock_(options_.start) {}

VirtualService::~VirtualService() = default;

absl::StatusOr<std::unique_ptr<VirtualService>> VirtualService::create(
    VirtualServiceOptions options, Sink sink) {
    std::unique_ptr<VirtualService> service(
        new VirtualService(std::move(options), std::move(sink)));
    const absl::Status opened = service->open(service->options_.rules);
    if (!opened.ok()) {
        return opened;
    }
    return service;
}

absl::Status VirtualService::open(const Rules& rules) {
    auto shared = open_memory_counters({.max_bytes = options_.counter_bytes});
    if (!shared.ok()) {
        return shared.status();
    }
    auto local = open_memory_counters({.max_bytes = options_.counter_bytes});
    if (!local.ok()) {
        return local.status();
    }
    if (ledger_ == nullptr) {
        auto ledger = open_sqlite_ledger({.path = ":memory:", .sync_point = {}});
        if (!ledger.ok()) {
            return ledger.status();
        }
        ledger_ = *std::move(ledger);
    }
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->policy = rules.policy;
    snapshot->directory = rules.directory;
    snapshot->since = now().mono;
    blocks_.reset();
    engine_.reset();
    counters_ = std::make_unique<SwitchableCounters>(*std::move(shared));
    local_ = *std::move(local);
    engine_ = std::make_unique<Engine>(*counters_, std::move(snapshot), local_.get());
    kept_blocks_ = std::make_unique<KeptBlocks>(*this);
    blocks_ = std::make_unique<BlockBook>(*engine_, kept_blocks_.get());
    engine_->watch_blocks(blocks_.get());
    const auto kept = ledger_->blocks();
    if (!kept.ok()) {
        return kept.status();
    }
    blocks_->restore(*kept, now());
    return absl::OkStatus();
}

void VirtualService::step_wall(Mono at, Nanos by) {
    run_until(at);
    clock_.step_wall(by);
}

absl::Status VirtualService::request(Mono at, ServiceRequest request, std::uint64_t ticket) {
    run_until(at);
    if (pending_.size() + held_.size() >= options_.max_in_flight) {
        return absl::ResourceExhaustedError(absl::StrFormat(
            "more than %d requests are waiting for the upstream", options_.max_in_flight));
    }
    std::unique_ptr<InFlight> call = fresh_call();
    call->order = next_order_++;
    call->take(std::move(request), ticket, absl::StrFormat("%016x", call->order));
    if (const auto malformed =
            gateway_refusal(*engine_->rules()->policy, call->view(), call->request.body.size())) {
        call->answer.outcome = ServiceOutcome::refused;
        put_answer(*malformed, call->request.method, now().wall, call->answer);
        answer(*call, std::move(call->answer));
        idle_.push_back(std::move(call));
        return absl::OkStatus();
    }
    engine_->arrive(call->exchange, call->view(), now());
    if (Engine::needs_body(call->exchange) && call->request.body.size() > max_read_body_bytes) {
        refuse_body(std::move(call));
        return absl::OkStatus();
    }
    if (call->exchange.decision.kind == Decision::Kind::admit) {
        engine_->decide(call->exchange, call->request.body, now());
    }
    if (call->exchange.decision.kind != Decision::Kind::admit) {
        finish_refused(*call);
        idle_.push_back(std::move(call));
    } else if (call->exchange.durable != nullptr) {
        ask_ledger(std::move(call));
    } else {
        forward(std::move(call));
    }
    run_until(at);
    return absl::OkStatus();
}

// A body that is larger than what may be read before the request is judged or its key looked up.
void VirtualService::refuse_body(std::unique_ptr<InFlight> call) {
    call->answer.outcome = ServiceOutcome::refused;
    put_answer(engine_->failure(call->exchange, BuiltIn::payload_too_large), call->request.method,
               now().wall, call->answer);
    engine_->finish(call->exchange, {.kind = Ending::Kind::refused}, now());
    answer(*call, std::move(call->answer));
    idle_.push_back(std::move(call));
}

void VirtualService::forward(std::unique_ptr<InFlight> call) {
    report_exchange(call->exchange, call->answer);
    call->answer.outcome = ServiceOutcome::admitted;
    call->answer.forwarded = forwarded_request(*engine_, call->exchange);
    const std::optional<Nanos> takes = call->request.upstream.takes;
    await_upstream(std::move(call), takes);
}

void VirtualService::await_upstream(std::unique_ptr<InFlight> call, std::optional<Nanos> takes) {
    const Nanos due =
        std::min(takes.value_or(options_.upstream_timeout), options_.upstream_timeout);
    const std::uint64_t order = call->order;
    pending_.push_back({now().mono + due, order, std::move(call)});
    std::push_heap(pending_.begin(), pending_.end(), later_due);
}

// Answered by ration: refused, a pre-check, or a replay.
void VirtualService::finish_refused(InFlight& call) {
    report_exchange(call.exchange, call.answer);
    if (call.exchange.decision.kind == Decision::Kind::replay) {
        call.answer.outcome = ServiceOutcome::replayed;
    }
    put_answer(engine_->answer(call.exchange), call.request.method, now().wall, call.answer);
    engine_->finish(call.exchange, {.kind = Ending::Kind::refused}, now());
    answer(call, std::move(call.answer));
}

// ---- the ledger ----

void VirtualService::ask_ledger(std::unique_ptr<InFlight> call) {
    const Durable& durable = *call->exchange.durable;
    if (durable.needs_body() && call->request.body.size() > durable.max_body()) {
        refuse_body(std::move(call));
        return;
    }
    if (!engine_->ask(call->exchange, call->request.body)) {
        finish_refused(*call);
        idle_.push_back(std::move(call));
        return;
    }
    if (durable.only_settles()) {
        forward(std::move(call));
        return;
    }
    reserve(std::move(call));
}

// As the runner of a server does: what has expired is gone before the next request is judged.
void VirtualService::sweep_when_due() {
    if (swept_until_ && now().wall < *swept_until_) {
        return;
    }
    swept_until_ = now().wall + sweep_every;
    for (bool more = true; more;) {
        const absl::StatusOr<bool> swept = ledger_->sweep(now().wall, sweep_budget);
        more = swept.ok() && *swept;
    }
}

void VirtualService::reserve(std::unique_ptr<InFlight> call) {
    sweep_when_due();
    const LedgerReply reply = ledger_->apply_one(call->exchange.durable->reserve(), now().wall);
    if (reply.reserved.verdict == ReserveVerdict::contended) {
        const std::uint64_t order = call->order;
        held_.push_back({now().mono + options_.hold, order, std::move(call)});
        return;
    }
    judge(std::move(call), reply);
}

void VirtualService::judge(std::unique_ptr<InFlight> call, const LedgerReply& reply) {
    engine_->judge(call->exchange, reply);
    if (call->exchange.decision.kind == Decision::Kind::admit) {
        if (call->exchange.durable->probing()) {
            probe(std::move(call));
        } else {
            forward(std::move(call));
        }
        return;
    }
    if (call->exchange.durable->open()) {
        end_attempt(*call, SettleKind::not_sent);
    }
    finish_refused(*call);
    idle_.push_back(std::move(call));
}

// ---- what became of a key ----

void VirtualService::probe(std::unique_ptr<InFlight> call) {
    std::vector<ScriptedAnswer>& scripted = call->request.upstream.probe;
    if (scripted.empty()) {
        scripted.emplace_back().status = 404;
    }
    call->probing = true;
    const std::optional<Nanos> takes = scripted.front().takes;
    await_upstream(std::move(call), takes);
}

void VirtualService::conclude_probe(std::unique_ptr<InFlight> call) {
    call->probing = false;
    Durable& durable = *call->exchange.durable;
    const ScriptedAnswer& scripted = call->request.upstream.probe.front();
    const bool answered = scripted.takes && *scripted.takes <= options_.upstream_timeout;
    if (!answered || Durable::probed(scripted.status) == Durable::Probe::unknown) {
        end_attempt(*call, SettleKind::doubt);
        const Ending::Kind ending = answered ? Ending::Kind::lost : Ending::Kind::timed_out;
        engine_->finish(call->exchange, {.kind = ending}, now());
        call->answer.outcome = ServiceOutcome::admitted;
        put_answer(engine_->failure(call->exchange,
                                    answered ? BuiltIn::bad_gateway : BuiltIn::gateway_timeout),
                   call->request.method, now().wall, call->answer);
        answer(*call, std::move(call->answer));
        idle_.push_back(std::move(call));
        return;
    }
    const std::vector<Header> fields = views_of(scripted.headers);
    const std::optional<Settle> settle = durable.settle_probed(
        call->exchange,
        {scripted.status, fields, scripted.body, scripted.body.size() <= durable.max_answer()});
    static_cast<void>(ledger_->apply_one(*settle, now().wall));
    if (Durable::probed(scripted.status) == Durable::Probe::absent) {
        reserve(std::move(call));
        return;
    }
    finish_refused(*call);
    idle_.push_back(std::move(call));
}

void VirtualService::end_attempt(InFlight& call, SettleKind kind) {
    if (const std::optional<Settle> settle = call.exchange.durable->settle(kind, {})) {
        static_cast<void>(ledger_->apply_one(*settle, now().wall));
    }
}

// Something was settled: each held write is judged again, in the order in which they came.
void VirtualService::retry_held() {
    for (std::size_t i = 0, waiting = held_.size(); i < waiting; ++i) {
        Due due = std::move(held_.front());
        held_.pop_front();
        const LedgerReply reply =
            ledger_->apply_one(due.call->exchange.durable->reserve(), now().wall);
        if (reply.reserved.verdict == ReserveVerdict::contended) {
            held_.push_back(std::move(due));
        } else {
            judge(std::move(due.call), reply);
        }
    }
}

void VirtualService::end_first_hold() {
    Due due = std::move(held_.front());
    held_.pop_front();
    judge(std::move(due.call),
          ledger_->apply_one(due.call->exchange.durable->reserve(), now().wall));
}

void VirtualService::settle_durable(InFlight& call) {
    const ScriptedAnswer& upstream = call.request.upstream;
    Durable& durable = *call.exchange.durable;
    const bool answered = upstream.takes && *upstream.takes <= options_.upstream_timeout;
    const SettleKind kind = !answered                                         ? SettleKind::doubt
                            : upstream.status >= 200 && upstream.status < 300 ? SettleKind::written
                                                                              : SettleKind::failed;
    const std::vector<Header> fields = views_of(upstream.headers);
    const CompleteAnswer complete{upstream.status, fields, upstream.body,
                                  upstream.body.size() <= durable.max_answer()};
    if (const std::optional<Settle> settle = durable.settle(kind, complete)) {
        static_cast<void>(ledger_->apply_one(*settle, now().wall));
    }
}

VirtualService::Due VirtualService::pop() {
    std::pop_heap(pending_.begin(), pending_.end(), later_due);
    Due due = std::move(pending_.back());
    pending_.pop_back();
    return due;
}

void VirtualService::run_until(Mono at) {
    for (auto next = next_event(); next && *next <= at; next = next_event()) {
        clock_.move_to(*next);
        if (pending_.empty() || pending_.front().at > *next) {
            end_first_hold();
            continue;
        }
        Due due = pop();
        if (due.call->probing) {
            conclude_probe(std::move(due.call));
            retry_held();
            continue;
        }
        complete(*due.call);
        const bool settled = due.call->exchange.durable != nullptr;
        idle_.push_back(std::move(due.call));
        if (settled) {
            retry_held();
        }
    }
    clock_.move_to(at);
}

// An upstream's answer or the end of a hold; at equal instants the answer comes first.
std::optional<Mono> VirtualService::next_event() const {
    std::optional<Mono> next;
    if (!pending_.empty()) {
        next = pending_.front().at;
    }
    if (!held_.empty()) {
        next = std::min(next.value_or(held_.front().at), held_.front().at);
    }
    return next;
}

void VirtualService::run_out() {
    while (const std::optional<Mono> next = next_event()) {
        run_until(*next);
    }
}

void VirtualService::complete(InFlight& call) {
    if (call.exchange.durable != nullptr) {
        settle_durable(call);
    }
    const ScriptedAnswer& upstream = call.request.upstream;
    if (!upstream.takes || *upstream.takes > options_.upstream_timeout) {
        engine_->finish(call.exchange, {.kind = Ending::Kind::timed_out}, now());
        put_answer(engine_->failure(call.exchange, BuiltIn::gateway_timeout), call.request.method,
                   now().wall, call.answer);
    } else {
        const std::vector<Header> fields = views_of(upstream.headers);
        const Ending ending{
            .kind = Ending::Kind::answered, .status = upstream.status, .response_headers = fields};
        engine_->answered(call.exchange, upstream.status, now());
        engine_->finish(call.exchange, ending, now());
        put_upstream_answer(*engine_, call.exchange, {upstream, now().wall}, call.answer);
    }
    answer(call, std::move(call.answer));
}

void VirtualService::answer(InFlight& call, ServiceAnswer answer) {
    sink_(call.ticket, std::move(answer));
}

void VirtualService::reload(Mono at, const Rules& rules) {
    run_until(at);
    engine_->swap_rules(rules.policy, rules.directory, now());
}

void VirtualService::set_counters(Mono at, bool up) {
    run_until(at);
    counters_->set_up(up, now());
}

absl::Status VirtualService::restart(Mono at) {
    run_until(at);
    std::move(held_.begin(), held_.end(), std::back_inserter(pending_));
    held_.clear();
    std::sort(pending_.begin(), pending_.end(),
              [](const Due& a, const Due& b) { return a.order < b.order; });
    for (const Due& due : pending_) {
        ServiceAnswer lost;
        lost.outcome = ServiceOutcome::lost;
        answer(*due.call, std::move(lost));
    }
    // Exchanges remember their engine: none may outlive it.
    pending_.clear();
    idle_.clear();
    ledger_->disown();
    const std::shared_ptr<const Snapshot> rules = engine_->rules();
    return open({rules->policy, rules->directory});
}

std::unique_ptr<VirtualService::InFlight> VirtualService::fresh_call() {
    if (idle_.empty()) {
        return std::make_unique<InFlight>();
    }
    std::unique_ptr<InFlight> call = std::move(idle_.back());
    idle_.pop_back();
    return call;
}

}  // namespace ration
