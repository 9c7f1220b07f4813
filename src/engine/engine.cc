// The life of a request on one screen; each step has its own file.
#include "engine/engine.h"

#include <optional>
#include <string>
#include <utility>

#include "base/assert.h"
#include "engine/charge.h"
#include "engine/conclude.h"
#include "engine/durable.h"
#include "engine/identify.h"
#include "engine/match.h"
#include "engine/plan.h"
#include "engine/render.h"
#include "engine/settle.h"
#include "engine/strikes.h"

namespace ration {
namespace {

// FNV-1a: names a request among those in flight; its id is random already.
std::uint64_t hash_of(std::string_view id) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : id) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    return hash;
}

std::string_view origin_of(const RequestView& request) {
    const Header* origin = find_header(request.headers, "Origin");
    return origin == nullptr ? std::string_view{} : origin->value;
}

}  // namespace

Engine::Engine(Counters& counters, std::shared_ptr<const Snapshot> rules, Counters* local,
               unsigned replicas)
    : counters_(counters),
      local_(local),
      replicas_(replicas),
      rules_(rules->plan != nullptr && rules->cors != nullptr
                 ? std::move(rules)
                 : Snapshot::prepare(rules->policy, rules->directory, rules->since)) {}

std::shared_ptr<const Snapshot> Engine::rules() const {
    const std::lock_guard lock(mutex_);
    return rules_;
}

void Engine::swap_rules(std::shared_ptr<const Policy> policy,
                        std::shared_ptr<const Directory> directory, Now now) {
    const auto before = this->rules();
    auto rules = Snapshot::prepare(std::move(policy), std::move(directory), now.mono, before.get());
    const std::lock_guard lock(mutex_);
    rules_.swap(rules);
    generation_.fetch_add(1, std::memory_order_release);
}

// Under rules that are no longer in force a request reckons from the last change on.
void Engine::date_charges(Exchange& exchange) {
    if (exchange.generation == generation_.load(std::memory_order_acquire)) {
        return;
    }
    const Mono changed = rules()->since;
    for (std::size_t i = 0; i < exchange.charge_count; ++i) {
        exchange.charges[i].numbers_since = std::max(exchange.charges[i].numbers_since, changed);
    }
}

// Starts afresh, under the rules now in force. A connection that already has these keeps its
// reference, so the lock is met once per connection and reload.
void Engine::open(Exchange& exchange, const RequestView& request, Now now) {
    RATION_ASSERT(!exchange.open);
    if (exchange.engine != this ||
        exchange.generation != generation_.load(std::memory_order_acquire)) {
        const std::lock_guard lock(mutex_);
        exchange.rules = rules_;
        exchange.generation = generation_.load(std::memory_order_relaxed);
        exchange.engine = this;
    }
    exchange.open = true;
    exchange.arrived = now;
    exchange.request = request;
    exchange.method = request.method;
    exchange.preflight = false;
    exchange.route.route = no_route;
    exchange.route.parameter_count = 0;
    exchange.kind = kind_anonymous;
    exchange.credential = nullptr;
    exchange.issued.reset();
    exchange.origin = origin_of(request);
    exchange.bound.clear();
    exchange.decision = {};
    exchange.durable.reset();
    exchange.outcome.count = 0;
    exchange.charge_count = exchange.enforced_count = 0;
    exchange.to_settle = exchange.taken = exchange.local = exchange.judged = 0;
    exchange.lease = 0;
}

void Engine::begin(Exchange& exchange, const RequestView& request, Now now) {
    arrive(exchange, request, now);
    if (exchange.decision.kind == Decision::Kind::admit) {
        decide(exchange, request.body, now);
    }
}

void Engine::arrive(Exchange& exchange, const RequestView& request, Now now) {
    open(exchange, request, now);
    exchange.address = caller_address(exchange.policy().address, request.peer, request.headers);
    if (const std::optional<BuiltIn> refusal = read_target(exchange)) {
        return refuse(exchange, *refusal);
    }
    if (is_preflight(exchange)) {
        if (exchange.policy().cors.enabled) {
            exchange.decision.kind = Decision::Kind::preflight;
            return;
        }
        exchange.preflight = true;
        exchange.method = asked_method(exchange);
    }
    identify(exchange, issued_);
    match(exchange);
    if (standing(exchange) == Standing::forbidden) {
        refuse(exchange, BuiltIn::forbidden);
    }
}

bool Engine::needs_body(const Exchange& exchange) {
    const RouteIndex route = exchange.route.route;
    return exchange.decision.kind == Decision::Kind::admit && !exchange.preflight &&
           route != no_route && route < exchange.policy().body_routes.size() &&
           exchange.policy().body_routes[route];
}

// False: refused already.
bool Engine::plan_limits(Exchange& exchange, std::string_view body, Now now) {
    exchange.arrived = now;
    exchange.request.body = body;
    if (!plan(exchange)) {
        refuse(exchange, BuiltIn::internal_error);
        return false;
    }
    date_charges(exchange);
    if (exchange.to_settle != 0) {
        exchange.lease =
            hash_of(exchange.request.id) + lease_sequence_.fetch_add(1, std::memory_order_relaxed);
    }
    return true;
}

void Engine::conclude_limits(Exchange& exchange) {
    conclude(exchange, standing(exchange));
    if (exchange.decision.kind == Decision::Kind::admit && !exchange.preflight) {
        exchange.durable = plan_durable(exchange);
    }
}

void Engine::decide(Exchange& exchange, std::string_view body, Now now) {
    if (!plan_limits(exchange, body, now)) {
        return;
    }
    charge(exchange, stores(), now);
    conclude_limits(exchange);
    if (exchange.decision.kind != Decision::Kind::admit && counts_attempt(exchange)) {
        answered(exchange, own_status(exchange), now);
    }
}

bool Engine::prepare(Exchange& exchange, std::string_view body, Now now, ChargeBatch& batch) {
    if (!plan_limits(exchange, body, now)) {
        return false;
    }
    if (plan_batch(exchange, batch)) {
        return true;
    }
    charge(exchange, stores(), now);
    conclude_limits(exchange);
    return false;
}

void Engine::judge_limits(Exchange& exchange, const ChargeBatch& batch, Now now) {
    take_answers(exchange, batch, stores(), now);
    conclude_limits(exchange);
}

bool Engine::counts_attempt(const Exchange& exchange) {
    const std::uint32_t open = exchange.taken & exchange.to_settle;
    for (std::size_t i = 0; i < exchange.enforced_count; ++i) {
        if ((open >> i & 1) != 0 && exchange.rule_at(i).part == StrikePart::attempts) {
            return true;
        }
    }
    return false;
}

int Engine::own_status(const Exchange& exchange) {
    return exchange.decision.kind == Decision::Kind::refuse
               ? exchange.policy().refusals[exchange.decision.refusal].status
               : 0;
}

Answer Engine::answer(const Exchange& exchange) const {
    return render_decision(exchange);
}

Answer Engine::failure(const Exchange& exchange, BuiltIn which) const {
    return render_failure(exchange, which);
}

Answer Engine::failure(const Policy& policy, BuiltIn which, std::string_view request_id,
                       std::string_view detail) {
    return render_failure(policy, which, request_id, detail);
}

bool Engine::drops_response_field(const Exchange& exchange, std::string_view name,
                                  std::string_view value) const {
    return is_dropped_response_field(exchange, name, value);
}

void Engine::response_fields(const Exchange& exchange, FieldSink sink) const {
    render_response_fields(exchange, sink);
}

bool Engine::drops_request_field(std::string_view name) {
    return is_kept_from_upstream(name);
}

void Engine::request_fields(const Exchange& exchange, FieldSink sink) const {
    render_request_fields(exchange, sink);
}

bool Engine::ask(Exchange& exchange, std::string_view body) const {
    return ration::ask(exchange, *exchange.durable, body);
}

void Engine::judge(Exchange& exchange, const LedgerReply& reply) const {
    ration::judge(exchange, *exchange.durable, reply);
}

void Engine::answered(Exchange& exchange, int status, Now now, Counters* told) {
    if ((exchange.taken & exchange.to_settle) != 0) {
        date_charges(exchange);
        judge_attempts(exchange, status, stores(told), now);
    }
}

void Engine::finish(Exchange& exchange, const Ending& ending, Now now, Counters* told) {
    if (!exchange.open) {
        return;
    }
    exchange.open = false;
    const Stores where = stores(told);
    if (exchange.taken != 0) {
        date_charges(exchange);
    }
    if ((exchange.taken & exchange.to_settle) != 0) {
        judge_attempts(exchange, 0, where, now);
    }
    if (exchange.taken != 0) {
        settle(exchange, ending, where, now);
    }
}

}  // namespace ration
