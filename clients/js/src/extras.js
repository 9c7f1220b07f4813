// The optional parts, each off unless asked for: local refusal, circuit breaker, in-flight limit,
// load shaper. All are pure: the time is an argument.

// Counts in slots of time, so that a window of any length takes bounded room.
class Window {
    constructor(lengthMs, slots = 20) {
        this.slotMs = lengthMs / slots;
        this.slots = slots;
        this.counts = new Map(); // slot number to [all, good]
    }

    add(now, all, good) {
        const slot = Math.floor(now / this.slotMs);
        this.forget(slot);
        const counts = this.counts.get(slot) ?? [0, 0];
        this.counts.set(slot, [counts[0] + all, counts[1] + good]);
    }

    totals(now) {
        this.forget(Math.floor(now / this.slotMs));
        let all = 0;
        let good = 0;
        for (const counts of this.counts.values()) {
            all += counts[0];
            good += counts[1];
        }
        return {all, good};
    }

    forget(slot) {
        for (const old of this.counts.keys()) {
            if (old <= slot - this.slots) {
                this.counts.delete(old);
            }
        }
    }
}

// The share of calls to refuse locally when the server accepts less than 1/k of what it is sent.
export function rejectProbability(requests, accepts, k) {
    return Math.max(0, (requests - k * accepts) / (requests + 1));
}

export class Throttle {
    constructor({k = 2, windowMs = 120_000} = {}) {
        if (!(k >= 1 && windowMs > 0)) {
            throw new TypeError('throttle needs a k of at least 1 and windowMs above 0');
        }
        this.k = k;
        this.window = new Window(windowMs);
    }

    rejects(now, random) {
        const {all, good} = this.window.totals(now);
        return random() < rejectProbability(all, good, this.k);
    }

    sent(now) {
        this.window.add(now, 1, 0);
    }

    // A refusal for the caller's own rate is an answer of a healthy server.
    answered(now, healthy) {
        this.window.add(now, 0, healthy ? 1 : 0);
    }
}

// Opens when most of the recent outcomes are lost connections, timeouts or 503s; after a pause one
// call probes.
export class Breaker {
    constructor({windowMs = 10_000, minOutcomes = 10, failureRatio = 0.5, openMs = 5_000} = {}) {
        if (!(windowMs > 0 && minOutcomes >= 1 && failureRatio > 0 && failureRatio <= 1 && openMs >= 0)) {
            throw new TypeError('breaker needs windowMs above 0, minOutcomes of at least 1 and a failureRatio above 0 and at most 1');
        }
        Object.assign(this, {windowMs, minOutcomes, failureRatio, openMs});
        this.window = new Window(windowMs);
        this.openUntil = null;
        this.probing = false;
    }

    // True when the call may be sent; a true after the pause makes that call the probe.
    allows(now) {
        if (this.openUntil === null) {
            return true;
        }
        if (now < this.openUntil || this.probing) {
            return false;
        }
        this.probing = true;
        return true;
    }

    outcome(now, failed) {
        if (this.openUntil !== null) {
            if (this.probing) {
                this.probing = false;
                this.openUntil = failed ? now + this.openMs : null;
                this.window = new Window(this.windowMs);
            }
            return;
        }
        this.window.add(now, 1, failed ? 0 : 1);
        const {all, good} = this.window.totals(now);
        if (all >= this.minOutcomes && (all - good) / all >= this.failureRatio) {
            this.openUntil = now + this.openMs;
        }
    }

    // A probe that ended without an outcome (cancelled) leaves the place to the next.
    abandoned() {
        this.probing = false;
    }
}

// The number of calls in flight: one more after a full window in which the limit was the
// bottleneck, half at most once in a while when the server is throttled.
export class Concurrency {
    constructor({initial = 10, min = 1, max = 100, increasePerWindow = 1, decreaseFactor = 0.5,
        decreaseAtMostEveryMs = 1000} = {}) {
        if (!(min >= 1 && min <= initial && initial <= max && decreaseFactor >= 0 && decreaseFactor < 1)) {
            throw new TypeError('concurrency needs 1 <= min <= initial <= max and a decreaseFactor below 1');
        }
        Object.assign(this, {min, max, increasePerWindow, decreaseFactor, decreaseAtMostEveryMs});
        this.limit = initial;
        this.lastCut = -Infinity;
        this.inFlight = 0;
        this.reached = false;
        this.successes = 0;
        this.waiting = [];
    }

    windowOk(limitWasReached) {
        if (limitWasReached) {
            this.limit = Math.min(this.max, this.limit + this.increasePerWindow);
        }
    }

    throttled(now) {
        if (now - this.lastCut >= this.decreaseAtMostEveryMs) {
            this.lastCut = now;
            this.limit = Math.max(this.min, Math.floor(this.limit * this.decreaseFactor));
        }
    }

    // True when the ticket's call may go; else its `wake` is called when it may look again.
    ask(ticket) {
        if (this.inFlight < this.limit && (this.waiting.length === 0 || this.waiting[0] === ticket)) {
            this.leave(ticket);
            this.inFlight += 1;
            this.reached ||= this.inFlight >= this.limit;
            return true;
        }
        if (!this.waiting.includes(ticket)) {
            this.waiting.push(ticket);
        }
        return false;
    }

    leave(ticket) {
        const place = this.waiting.indexOf(ticket);
        if (place >= 0) {
            this.waiting.splice(place, 1);
            this.waiting[0]?.wake?.();
        }
    }

    // `signal`: 'ok', 'throttled' or null when nothing was learnt.
    done(now, signal) {
        this.inFlight -= 1;
        if (signal === 'throttled') {
            this.throttled(now);
        } else if (signal === 'ok' && ++this.successes >= this.limit) {
            this.windowOk(this.reached);
            this.successes = 0;
            this.reached = false;
        }
        this.waiting[0]?.wake?.();
    }
}

// Evenly spaced sends with a burst; idling never stores more than the burst; order is kept.
export class Pacer {
    constructor({ratePerMin, burst = 1}) {
        if (!(ratePerMin > 0) || !(burst >= 1)) {
            throw new TypeError('pace needs ratePerMin above 0 and a burst of at least 1');
        }
        this.intervalMs = 60_000 / ratePerMin;
        this.allowanceMs = (burst - 1) * this.intervalMs;
        this.nextAt = -Infinity;
    }

    // The moment at which what is offered now may be sent.
    reserve(now) {
        const sendAt = Math.max(now, this.nextAt - this.allowanceMs);
        this.nextAt = Math.max(this.nextAt, sendAt) + this.intervalMs;
        return sendAt;
    }
}
