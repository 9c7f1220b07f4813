// Counting must cost a request nearly nothing and never make two I/O threads fight for a cache
// line. So each thread gets a number when it first counts, the number picks a shard, and with no
// more threads than shards each line has one writer; a sum over the shards is made only when
// somebody asks. The adds are atomic all the same, so sharing a shard is slower, never wrong.
#include "server/metrics/metrics.h"

#include "engine/durable.h"
#include "server/metrics/thread_number.h"

namespace ration {

namespace {

using Count = std::atomic<std::uint64_t>;

void add_one(Count& count) {
    count.fetch_add(1, std::memory_order_relaxed);
}

RuleEvent event_of(StoreDown choice) {
    switch (choice) {
        case StoreDown::open:
            return RuleEvent::down_open;
        case StoreDown::closed:
            return RuleEvent::down_closed;
        case StoreDown::local:
            return RuleEvent::down_local;
    }
    return RuleEvent::down_open;
}

std::size_t status_class(int status) {
    return status >= 100 && status < 600 ? static_cast<std::size_t>(status / 100) : 0;
}

// False when the rule refused only because the counters gave no answer.
bool binding_judged(const Exchange& exchange) {
    for (std::size_t i = 0; i < exchange.charge_count; ++i) {
        if (exchange.rule_of[i] == exchange.decision.rule) {
            return (exchange.judged >> i & 1U) != 0;
        }
    }
    return false;
}

template <std::size_t size>
void sum(const std::array<Count, size>& from, std::array<std::uint64_t, size>& to) {
    for (std::size_t i = 0; i < size; ++i) {
        to[i] += from[i].load(std::memory_order_relaxed);
    }
}

}  // namespace

struct Metrics::Shard {
    std::array<Count, request_outcomes> requests{};
    std::array<Count, status_classes> statuses{};
    Count store_answers{0};
    Count store_failures{0};
    Histogram wait{wait_scale};
    Histogram total{latency_scale};
    Histogram upstream{latency_scale};
    std::array<std::array<Count, rule_events>, max_rule_series> rules{};

    void count_rule(std::uint16_t slot, RuleEvent event) {
        add_one(rules[slot][static_cast<std::size_t>(event)]);
    }
};

Metrics::Metrics() = default;

Metrics::~Metrics() {
    for (const auto& shard : shards_) {
        delete shard.load(std::memory_order_acquire);
    }
}

Metrics::Shard& Metrics::shard() {
    auto& place = shards_[thread_number() % shard_count];
    Shard* found = place.load(std::memory_order_acquire);
    if (found == nullptr) {
        auto fresh = std::make_unique<Shard>();
        if (place.compare_exchange_strong(found, fresh.get(), std::memory_order_acq_rel)) {
            found = fresh.release();
        }
    }
    return *found;
}

void Metrics::on_request(const RequestRecord& record) {
    Shard& mine = shard();
    add_one(mine.requests[static_cast<std::size_t>(record.outcome)]);
    add_one(mine.statuses[status_class(record.status)]);
    mine.total.add(record.total);
    if (record.upstream > Nanos(0)) {
        mine.upstream.add(record.upstream);
    }
    if (record.exchange != nullptr && record.exchange->rules != nullptr) {
        count_rules(mine, *record.exchange);
    }
}

void Metrics::count_rules(Shard& mine, const Exchange& exchange) {
    const Decision& decision = exchange.decision;
    const auto& slots = names_.slots(exchange.rules->policy);
    const bool refused = decision.kind == Decision::Kind::refuse;
    if (exchange.charge_count > 0) {
        add_one(decision.store_down ? mine.store_failures : mine.store_answers);
    }
    for (std::size_t i = 0; i < exchange.charge_count; ++i) {
        const std::uint16_t slot = slots[exchange.rule_of[i]];
        const bool judged = (exchange.judged >> i & 1U) != 0;
        if (!judged || (exchange.local >> i & 1U) != 0) {
            mine.count_rule(slot, event_of(exchange.rule_at(i).store_down));
        }
        if (judged && (decision.shadow_refused >> i & 1U) != 0) {
            mine.count_rule(slot, RuleEvent::shadow_refused);
        } else if (judged && !refused) {
            mine.count_rule(slot, RuleEvent::admitted);
        }
    }
    if (refused && decision.rule >= 0 && binding_judged(exchange)) {
        mine.count_rule(slots[static_cast<std::size_t>(decision.rule)], RuleEvent::refused);
    }
    if (exchange.durable != nullptr) {
        count_durable(mine, exchange);
    }
    if (refused && decision.wait.has_value()) {
        mine.wait.add(*decision.wait);
    }
}

// A replay is the answer of its key's rule and passed nothing; the limits before it let it pass.
void Metrics::count_durable(Shard& mine, const Exchange& exchange) {
    const Durable& durable = *exchange.durable;
    if (exchange.decision.kind == Decision::Kind::refuse) {
        if (!exchange.binding_name().empty()) {
            mine.count_rule(names_.slot(exchange.binding_name()), RuleEvent::refused);
        }
        return;
    }
    if (exchange.decision.kind != Decision::Kind::admit || !durable.passed()) {
        return;
    }
    const Policy& policy = exchange.policy();
    const auto& slots = names_.slots(exchange.rules->policy);
    std::size_t first = policy.limits.size();
    const auto admitted = [&](const auto& rules, const auto* rule) {
        const auto index = static_cast<std::size_t>(rule - rules.data());
        mine.count_rule(slots[first + index], RuleEvent::admitted);
    };
    for (const CeilingRule* rule : durable.ceilings()) {
        admitted(policy.ceilings, rule);
    }
    first += policy.ceilings.size();
    for (const QuotaRule* rule : durable.quotas()) {
        admitted(policy.quotas, rule);
    }
    first += policy.quotas.size();
    if (durable.keyed()) {
        admitted(policy.idempotency, durable.rule());
    }
}

void Metrics::announce(const std::shared_ptr<const Policy>& policy) {
    static_cast<void>(names_.slots(policy));
}

MetricsTotals Metrics::totals() const {
    MetricsTotals totals;
    const auto names = names_.names();
    for (const auto& [slot, name] : names) {
        totals.rules.push_back({.rule = name});
    }
    for (const auto& place : shards_) {
        const Shard* shard = place.load(std::memory_order_acquire);
        if (shard == nullptr) {
            continue;
        }
        sum(shard->requests, totals.requests);
        sum(shard->statuses, totals.statuses);
        totals.store_answers += shard->store_answers.load(std::memory_order_relaxed);
        totals.store_failures += shard->store_failures.load(std::memory_order_relaxed);
        shard->wait.merge_into(totals.wait);
        shard->total.merge_into(totals.total);
        shard->upstream.merge_into(totals.upstream);
        for (std::size_t i = 0; i < names.size(); ++i) {
            sum(shard->rules[names[i].first], totals.rules[i].events);
        }
    }
    return totals;
}

}  // namespace ration
