// The hold-off that all calls with one origin, credential and bucket share.
//
// An answer that says "not before then" closes the gate until then; the moment only ever moves
// later. When it opens, one call goes first as a probe, and the others follow spread out once the
// probe was let in. While the server tells how many requests remain, no more than that many are in
// flight. Pure: the time is an argument, the caller sleeps until the moment that `ask` names.

export class Gate {
    constructor(policy, random) {
        this.policy = policy;
        this.random = random;
        this.toldAt = -Infinity; // the server's own moment
        this.opensAt = -Infinity; // with guard and random extra
        this.guard = 0;
        this.probeNeeded = false;
        this.probe = null;
        this.inFlight = 0;
        this.remaining = null; // as last told; null: unknown, no bound
        this.window = null; // {resetAt, epochMs} of `remaining`
        this.queue = []; // tickets, in the order in which they go
    }

    // The usual case of `ask`: nobody waits and nothing is closed. False, and nothing changed, when the call has to ask.
    enter(ticket, now) {
        const free = this.queue.length === 0 && !this.probeNeeded && !this.probe && now >= this.opensAt &&
            this.inFlight < this.bound();
        if (free) {
            this.inFlight += 1;
            ticket.queued = true;
            ticket.granted = true;
        }
        return free;
    }

    // May the ticket's call be sent now? 'go', {waitUntil} (null: until `ticket.wake` is called) or
    // {rejectUntil} when the gate opens later than the policy lets a call wait.
    ask(ticket, now) {
        if (ticket.granted) {
            const itsTurn = this.probe === ticket || (!this.probe && !this.probeNeeded);
            if (itsTurn && now >= this.opensAt && this.inFlight <= this.bound()) {
                return 'go';
            }
            this.revoke(ticket);
        }
        if (this.toldAt - now > (ticket.maxWaitMs ?? this.policy.maxServerWaitMs)) {
            this.leave(ticket, now);
            return {rejectUntil: this.toldAt + this.guard};
        }
        if (ticket.spread && now >= this.toldAt + this.guard) {
            this.opensAt = Math.min(this.opensAt, now); // it has waited a random extra of its own
        }
        if (!ticket.queued) {
            ticket.queued = true;
            this.lineUp(ticket, now);
        }
        const waitUntil = this.advance(now, ticket);
        return ticket.granted ? 'go' : {waitUntil};
    }

    // Behind all who may go, before those whose random moments are still to come: behind them it would go at the last
    // one's.
    lineUp(ticket, now) {
        const place = this.queue.findIndex(({notBefore}) => notBefore > now);
        this.queue.splice(place === -1 ? this.queue.length : place, 0, ticket);
    }

    // What was learnt between a grant and its call's waking: it waits again, as the first.
    revoke(ticket) {
        this.inFlight -= 1;
        ticket.granted = false;
        if (this.probe === ticket) {
            this.probe = null;
        }
        this.queue.unshift(ticket);
    }

    // A ticket that waits no longer.
    leave(ticket, now) {
        if (ticket.queued && !ticket.granted) {
            this.queue.splice(this.queue.indexOf(ticket), 1);
            ticket.queued = false;
            this.advance(now, ticket);
            this.queue[0]?.wake?.();
        }
    }

    // Grants what may go now; gives the moment at which more may, null when only an answer can help.
    // The new first one looks again, for it is the one that waits for that moment.
    advance(now, asking = null) {
        const first = this.queue[0];
        const moment = this.grant(now, asking);
        if (this.queue[0] !== first && this.queue[0] !== asking) {
            this.queue[0]?.wake?.();
        }
        return moment;
    }

    grant(now, asking) {
        while (this.queue.length > 0) {
            const first = this.queue[0];
            if (now < this.opensAt) {
                return this.opensAt;
            }
            if (this.probe || this.inFlight >= this.bound()) {
                return null;
            }
            if (this.probeNeeded) {
                this.probe = first;
            } else if (now < first.notBefore) {
                return first.notBefore;
            }
            this.queue.shift();
            this.inFlight += 1;
            first.granted = true;
            if (first !== asking) {
                first.wake?.();
            }
        }
        return null;
    }

    bound() {
        return this.remaining === null ? Infinity : Math.max(1, this.remaining);
    }

    // A granted call has its answer, or has failed. `told` is readAnswer's result, or null when
    // nothing was learnt; `refused` says that the answer was a refusal.
    done(ticket, {told, refused}, now) {
        this.inFlight -= 1;
        if (told) {
            this.learn(told, refused, now);
        }
        if (this.probe === ticket) {
            this.probe = null;
            if (told && !refused && now >= this.opensAt) {
                this.probeNeeded = false;
                this.spread(now);
            }
        }
        this.advance(now);
        this.queue[0]?.wake?.(); // its moment may have moved
    }

    learn(told, refused, now) {
        if (refused) {
            if (told.floorMs !== null) {
                this.close(now + told.floorMs, told.source === 'reset' ? this.policy.gateGuardMs : 0);
            }
            return;
        }
        if (told.limits.length === 0) {
            return;
        }
        const least = told.limits.reduce((a, b) => (b.remaining < a.remaining ? b : a));
        this.learnRemaining(least, now);
        for (const limit of told.limits) {
            if (limit.remaining === 0 && limit.resetInMs !== null) {
                this.close(now + limit.resetInMs, this.policy.gateGuardMs);
            }
        }
    }

    // Answers overtake one another: within one window the least told counts, and a window that is
    // over says nothing.
    learnRemaining({remaining, resetInMs, epochMs}, now) {
        const window = {resetAt: resetInMs === null ? null : now + resetInMs, epochMs};
        const order = this.remaining === null ? 'new' : compareWindows(window, this.window);
        if (order === 'new') {
            this.remaining = remaining;
            this.window = window;
        } else if (order === 'same') {
            this.remaining = Math.min(this.remaining, remaining);
        }
    }

    close(toldAt, guard) {
        if (toldAt + guard <= this.toldAt + this.guard) {
            return;
        }
        this.toldAt = toldAt;
        this.guard = guard;
        this.opensAt = Math.max(this.opensAt, toldAt + guard + this.random() * this.policy.retryAfterExtraMs);
        this.probeNeeded = true;
        this.remaining = null; // of a window that will be over
    }

    // The waiting calls go at random moments within the extra, in the order in which they came.
    spread(now) {
        const moments = this.queue.map(() => now + this.random() * this.policy.retryAfterExtraMs);
        moments.sort((a, b) => a - b);
        this.queue.forEach((ticket, index) => {
            ticket.notBefore = moments[index];
        });
    }

    idle(now) {
        return this.inFlight === 0 && this.queue.length === 0 && now >= this.opensAt;
    }
}

function compareWindows(window, known) {
    if (window.epochMs !== null && known.epochMs !== null) {
        return window.epochMs === known.epochMs ? 'same' : window.epochMs > known.epochMs ? 'new' : 'old';
    }
    if (window.resetAt === null || known.resetAt === null) {
        return 'new';
    }
    return Math.abs(window.resetAt - known.resetAt) <= 1000 ? 'same' : 'new'; // whole seconds are told
}

// `spread`: the call comes from a wait that the server asked for, with a random extra. `maxWaitMs`: how far off the
// server's moment may be; null: as the gate's policy says.
export function makeTicket(wake, spread = false, maxWaitMs = null) {
    return {wake, spread, maxWaitMs, notBefore: -Infinity, queued: false, granted: false};
}

const MOST_LOOKS = 64;

// Gates by key, at most `max` of them. One that nobody uses and that holds nobody back is forgotten for a new one; where
// none is found, newcomers share a gate.
export class GateBook {
    constructor(policy, random, max) {
        this.policy = policy;
        this.random = random;
        this.max = max;
        this.gates = new Map();
        this.shared = null;
    }

    find(key) {
        return this.gates.size === 0 ? undefined : this.gates.get(key);
    }

    open(key, now) {
        let gate = this.gates.get(key);
        if (!gate) {
            if (this.gates.size >= this.max && !this.forgetOne(now)) {
                this.shared ??= new Gate(this.policy, this.random);
                return this.shared;
            }
            gate = new Gate(this.policy, this.random);
            this.gates.set(key, gate);
        }
        return gate;
    }

    // Looks at a few; those that have to stay are looked at last the next time.
    forgetOne(now) {
        for (const [key, gate] of Array.from(firstOf(this.gates, MOST_LOOKS))) {
            this.gates.delete(key);
            if (gate.idle(now)) {
                return true;
            }
            this.gates.set(key, gate);
        }
        return false;
    }
}

function* firstOf(entries, most) {
    let left = most;
    for (const entry of entries) {
        if (left === 0) {
            return;
        }
        left -= 1;
        yield entry;
    }
}
