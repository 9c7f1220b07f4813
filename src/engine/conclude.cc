#include "engine/conclude.h"

#include "ration/limit.h"

namespace ration {
namespace {

bool outranks(const Level& level, const Level& best) {
    if (level.verdict != best.verdict) {
        return level.verdict == Verdict::never;
    }
    return level.verdict == Verdict::refused && level.wait > best.wait;
}

// Blocks come first: who is blocked is told so, whatever the limits would say.
bool comes_before(const Exchange& exchange, std::size_t at, std::size_t best) {
    const bool block = exchange.rule_at(at).part == StrikePart::block;
    if (block != (exchange.rule_at(best).part == StrikePart::block)) {
        return block;
    }
    return outranks(exchange.outcome.levels[at], exchange.outcome.levels[best]);
}

// The charge that speaks for the refusal, or -1.
int refusing_charge(const Exchange& exchange) {
    int best = -1;
    for (int i = 0; i < exchange.enforced_count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const Level& level = exchange.outcome.levels[at];
        if ((exchange.judged >> i & 1) == 0 || level.verdict == Verdict::admitted) {
            continue;
        }
        if (best < 0 || comes_before(exchange, at, static_cast<std::size_t>(best))) {
            best = i;
        }
    }
    return best;
}

// The first enforced limit without an answer that is closed then, or -1.
int closed_charge(const Exchange& exchange) {
    for (int i = 0; i < exchange.enforced_count; ++i) {
        if ((exchange.judged >> i & 1) == 0 &&
            exchange.rule_at(static_cast<std::size_t>(i)).store_down == StoreDown::closed) {
            return i;
        }
    }
    return -1;
}

bool shows_when_admitted(HeaderFamily family) {
    return family != HeaderFamily::none && family != HeaderFamily::ratelimit_remaining_on_refusal;
}

// Of the limits that declare headers, the one with least left, or -1.
int shown_charge(const Exchange& exchange) {
    int best = -1;
    for (int i = 0; i < exchange.enforced_count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if ((exchange.judged >> i & 1) == 0 || !shows_when_admitted(exchange.rule_at(at).headers)) {
            continue;
        }
        if (best < 0 || exchange.outcome.levels[at].remaining <
                            exchange.outcome.levels[static_cast<std::size_t>(best)].remaining) {
            best = i;
        }
    }
    return best;
}

std::int16_t rule_of(const Exchange& exchange, int charge) {
    return static_cast<std::int16_t>(exchange.rule_of[static_cast<std::size_t>(charge)]);
}

std::uint32_t shadow_refusals(const Exchange& exchange) {
    std::uint32_t refused = 0;
    for (std::size_t i = exchange.enforced_count; i < exchange.charge_count; ++i) {
        if ((exchange.judged >> i & 1) != 0 &&
            exchange.outcome.levels[i].verdict != Verdict::admitted) {
            refused |= std::uint32_t{1} << i;
        }
    }
    return refused;
}

void refused_by(Exchange& exchange, int charge) {
    Decision& decision = exchange.decision;
    const Level& level = exchange.outcome.levels[static_cast<std::size_t>(charge)];
    decision.kind = Decision::Kind::refuse;
    decision.rule = rule_of(exchange, charge);
    decision.charge = static_cast<std::int16_t>(charge);
    decision.refusal = exchange.rule_at(static_cast<std::size_t>(charge)).refusal;
    // Attempts under way are like requests in flight: how they end, and when, nobody knows.
    const bool in_flight =
        exchange.charges[static_cast<std::size_t>(charge)].limit->kind == LimitKind::concurrency ||
        exchange.rule_at(static_cast<std::size_t>(charge)).part == StrikePart::attempts;
    if (level.verdict == Verdict::refused && !in_flight) {
        decision.wait = level.wait;
    }
}

}  // namespace

void refuse(Exchange& exchange, BuiltIn which) {
    exchange.decision.kind = Decision::Kind::refuse;
    exchange.decision.refusal = exchange.policy().built_in[static_cast<std::size_t>(which)];
}

void conclude(Exchange& exchange, Standing standing) {
    Decision& decision = exchange.decision;
    decision.shadow_refused = shadow_refusals(exchange);
    if (decision.store_down) {
        if (const int closed = closed_charge(exchange); closed >= 0) {
            refuse(exchange, BuiltIn::store_unavailable);
            decision.rule = rule_of(exchange, closed);
            return;
        }
    }
    if (!exchange.outcome.admitted) {
        refused_by(exchange, refusing_charge(exchange));
        return;
    }
    const int shown = shown_charge(exchange);
    decision.charge = static_cast<std::int16_t>(shown);
    switch (standing) {
        case Standing::welcome:
            decision.rule = shown < 0 ? std::int16_t{-1} : rule_of(exchange, shown);
            return;
        case Standing::unauthorized:
            return refuse(exchange, BuiltIn::unauthorized);
        case Standing::forbidden:
            return refuse(exchange, BuiltIn::forbidden);
        case Standing::not_found:
            return refuse(exchange, BuiltIn::not_found);
    }
}

}  // namespace ration
