// Problem: a request is in flight from its beginning to its upstream's answer, other requests begin
// in between, and the order of it all must be exact and repeatable. Idea: one heap of pending
// answers. Every call that happens at an instant first completes whatever is due until that
// instant, equal instants included; a decision made by ration itself needs no pending entry at all.
// So the heap holds only requests that an upstream still has.
#include "workbench/virtual_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "workbench/exchange_report.h"
#include "workbench/forwarding.h"

namespace ration {

struct VirtualService::InFlight {
    std::uint64_t ticket = 0;
    ServiceRequest request;
    std::string id;
    std::vector<Header> headers;  // views into `request`
    Exchange exchange;
    ServiceAnswer answer;

    void take(ServiceRequest taken, std::uint64_t number, std::string request_id) {
        ticket = number;
        request = std::move(taken);
        id = std::move(request_id);
        headers.clear();
        for (const auto& [name, value] : request.headers) {
            headers.push_back({name, value});
        }
        answer = {};
    }
    [[nodiscard]] RequestView view() const {
        return {request.method, request.target, headers, request.peer, id};
    }
};

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
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->policy = rules.policy;
    snapshot->directory = rules.directory;
    snapshot->since = now().mono;
    engine_.reset();
    counters_ = std::make_unique<SwitchableCounters>(*std::move(shared));
    local_ = *std::move(local);
    engine_ = std::make_unique<Engine>(*counters_, std::move(snapshot), local_.get());
    return absl::OkStatus();
}

void VirtualService::step_wall(Mono at, Nanos by) {
    run_until(at);
    clock_.step_wall(by);
}

absl::Status VirtualService::request(Mono at, ServiceRequest request, std::uint64_t ticket) {
    run_until(at);
    if (pending_.size() >= options_.max_in_flight) {
        return absl::ResourceExhaustedError(absl::StrFormat(
            "more than %d requests are waiting for the upstream", options_.max_in_flight));
    }
    const std::uint64_t order = next_order_++;
    std::unique_ptr<InFlight> call = fresh_call();
    const std::optional<Nanos> takes = request.upstream.takes;
    call->take(std::move(request), ticket, absl::StrFormat("%016x", order));
    if (const auto malformed =
            gateway_refusal(*engine_->rules()->policy, call->view(), call->request.body.size())) {
        call->answer.outcome = ServiceOutcome::refused;
        put_answer(*malformed, call->request.method, now().wall, call->answer);
        answer(*call, std::move(call->answer));
        idle_.push_back(std::move(call));
        return absl::OkStatus();
    }
    engine_->begin(call->exchange, call->view(), now());
    report_exchange(call->exchange, call->answer);
    if (call->exchange.decision.kind != Decision::Kind::admit) {
        put_answer(engine_->answer(call->exchange), call->request.method, now().wall, call->answer);
        engine_->finish(call->exchange, {.kind = Ending::Kind::refused}, now());
        answer(*call, std::move(call->answer));
        idle_.push_back(std::move(call));
        return absl::OkStatus();
    }
    call->answer.outcome = ServiceOutcome::admitted;
    call->answer.forwarded = forwarded_request(*engine_, call->exchange);
    const Nanos due =
        std::min(takes.value_or(options_.upstream_timeout), options_.upstream_timeout);
    pending_.push_back({now().mono + due, order, std::move(call)});
    std::push_heap(pending_.begin(), pending_.end(), later_due);
    run_until(at);
    return absl::OkStatus();
}

VirtualService::Due VirtualService::pop() {
    std::pop_heap(pending_.begin(), pending_.end(), later_due);
    Due due = std::move(pending_.back());
    pending_.pop_back();
    return due;
}

void VirtualService::run_until(Mono at) {
    while (!pending_.empty() && pending_.front().at <= at) {
        Due due = pop();
        clock_.move_to(due.at);
        complete(*due.call);
        idle_.push_back(std::move(due.call));
    }
    clock_.move_to(at);
}

void VirtualService::run_out() {
    while (!pending_.empty()) {
        run_until(pending_.front().at);
    }
}

void VirtualService::complete(InFlight& call) {
    const ScriptedAnswer& upstream = call.request.upstream;
    if (!upstream.takes || *upstream.takes > options_.upstream_timeout) {
        engine_->finish(call.exchange, {.kind = Ending::Kind::timed_out}, now());
        put_answer(engine_->failure(call.exchange, BuiltIn::gateway_timeout), call.request.method,
                   now().wall, call.answer);
    } else {
        std::vector<Header> fields;
        for (const auto& [name, value] : upstream.headers) {
            fields.push_back({name, value});
        }
        const Ending ending{
            .kind = Ending::Kind::answered, .status = upstream.status, .response_headers = fields};
        engine_->finish(call.exchange, ending, now());
        put_upstream_answer(*engine_, call.exchange, upstream, now().wall, call.answer);
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
