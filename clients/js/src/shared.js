// What all calls of one client share: gates, budgets, the optional parts, counters.

import {Budget} from './budget.js';
import {Deadlines} from './clock.js';
import {Breaker, Concurrency, Pacer, Throttle} from './extras.js';
import {GateBook} from './gate.js';

export const MAX_GATES = 10_000;
export const MAX_ORIGINS = 1_000;
export const MAX_DOUBTS = 1_024;

function newOrigin({policy, breaker, throttle, concurrency}) {
    return {
        budget: new Budget(policy),
        breaker: breaker ? new Breaker(breaker) : null,
        throttle: throttle ? new Throttle(throttle) : null,
        concurrency: concurrency ? new Concurrency(concurrency) : null,
    };
}

export class Shared {
    constructor(settings) {
        newOrigin(settings); // throws for settings that cannot be meant: now, not at the first call
        this.settings = settings;
        this.gates = new GateBook(settings.policy, settings.random, settings.maxGates);
        this.narrowGates = new GateBook(settings.policy, settings.random, settings.maxGates);
        this.deadlines = new Deadlines(settings.clock);
        this.origins = new Map();
        this.doubts = new Set(); // keys of attempts whose outcome is unknown
        this.pacer = settings.pace ? new Pacer(settings.pace) : null;
        this.counters = {calls: 0, sends: 0, retries: {}, waitMs: {}, localRefusals: {}};
    }

    origin(name) {
        let origin = this.origins.get(name);
        if (!origin) {
            origin = newOrigin(this.settings);
            if (this.origins.size >= MAX_ORIGINS) {
                this.origins.delete(this.origins.keys().next().value);
            }
            this.origins.set(name, origin);
        }
        return origin;
    }

    addDoubt(key) {
        if (this.doubts.size >= MAX_DOUBTS) {
            this.doubts.delete(this.doubts.values().next().value);
        }
        this.doubts.add(key);
    }

    count(table, name, amount = 1) {
        this.counters[table][name] = (this.counters[table][name] ?? 0) + amount;
    }

    // A copy for whoever watches; credentials are not in it.
    stats() {
        const now = this.settings.clock.now();
        const budgets = {};
        for (const [name, origin] of this.origins) {
            budgets[name] = origin.budget.left;
        }
        const gates = [];
        for (const [key, gate] of this.gates.gates) {
            const [origin, , bucket] = key.split('\n');
            gates.push({
                origin, bucket,
                state: now < gate.opensAt ? 'closed' : gate.probeNeeded ? 'probing' : 'open',
                opensInMs: Math.max(0, gate.opensAt - now),
                inFlight: gate.inFlight, waiting: gate.queue.length, remaining: gate.remaining,
            });
        }
        return {...structuredClone(this.counters), budgets, gates};
    }
}
