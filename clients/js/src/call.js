// One logical call: admit, send, decide, wait, again. Everything that knows a rule is elsewhere.

import {Attempt, abandon} from './attempt.js';
import {Waiter} from './clock.js';
import {decide, readAnswer} from './decide.js';
import {MESSAGES, RationError} from './errors.js';
import {makeTicket} from './gate.js';
import {mark} from './marks.js';
import {PATH_BUCKET, fieldValue} from './request.js';

const SUCCESS = {action: 'stop', reason: 'success', retryAtUnixMs: null}; // as decide says of every answer below 400
const WAKEABLE = new Set(['gate', 'concurrency']); // other waits end at their moment and not before

export class Call {
    constructor(shared, request, settings, policy) {
        this.shared = shared;
        this.request = request;
        this.settings = settings;
        this.policy = policy;
        this.clock = settings.clock;
        this.ownWaiter = null;
        this.startedAt = this.clock.now();
        this.method = request.method.toUpperCase();
        this.origin = shared.origin(request.place.origin);
        this.attempts = 0;
        this.waitedMs = 0;
        this.last = {status: null, errorType: null};
        this.redirectReason = null;
        this.spread = false;
        this.sameOrigin = true; // false when redirects led the attempt away, where the key does not go
        this.readKey();
        const {operation, prefix, narrow} = request.place.keysOf(this.method, settings.credential(request));
        this.narrowKey = narrow;
        this.gateKey = settings.bucket === PATH_BUCKET ? narrow
            : prefix + settings.bucket({method: this.method, url: request.url, operation});
    }

    get waiter() {
        this.ownWaiter ??= new Waiter(this.clock);
        return this.ownWaiter;
    }

    readKey() {
        const {request, policy, settings, method} = this;
        const given = fieldValue(request.headers, policy.idempotencyHeader.toLowerCase());
        const wanted = given === null && (method === 'POST' || method === 'PATCH') && settings.makesKey(method, request.url);
        this.madeKey = wanted ? settings.newKey() : null;
        this.key = given === null ? this.madeKey : given || null; // an empty one is none, and none is made in its place
        this.doubtKey = this.key === null ? null : `${request.place.origin}\n${this.key}`;
    }

    run() {
        this.shared.counters.calls += 1;
        return this.round(this.startedAt);
    }

    // One send and all that comes of it. Async only where something has to be waited for: each layer of promises costs
    // every call.
    round(now) {
        this.throwIfCancelled();
        const places = this.shared.pacer === null ? this.admittedAtOnce(now) : null;
        return places === null ? this.admitted().then((each) => this.send(each, this.clock.now())) : this.send(places, now);
    }

    // Admission

    async paced() {
        const sendAt = this.shared.pacer.reserve(this.clock.now());
        this.stopIfLate(sendAt, null);
        await this.wait(sendAt, 'pace');
    }

    // The usual case without a promise: the only gate is open. Null when the call has to wait.
    admittedAtOnce(now) {
        if (this.origin.concurrency !== null || this.narrowGate() !== undefined) {
            return null;
        }
        const gate = this.mainGate(now);
        const ticket = makeTicket(null, this.spread);
        return gate.enter(ticket, now) ? this.passedAll({narrow: null, main: {gate, ticket}}, now) : null;
    }

    // The places at the gates that let this call in: they must be handed to `learn`.
    async admitted() {
        if (this.shared.pacer !== null) {
            await this.paced();
        }
        const places = {narrow: null, main: null};
        try {
            await this.passStations(places);
        } catch (error) {
            this.giveBackAll(places);
            throw error;
        }
        return this.passedAll(places, this.clock.now());
    }

    passedAll(places, now) {
        try {
            this.passLocalRefusals(now);
            return places;
        } catch (error) {
            this.giveBackAll(places);
            throw error;
        }
    }

    // That of its operation, if there is one.
    narrowGate() {
        const {shared} = this;
        // A repeat under a key may be of a call that was done: its answer is there to be had.
        const repeats = this.key !== null && (this.attempts > 0 || shared.doubts.has(this.doubtKey));
        return repeats ? undefined : shared.narrowGates.find(this.narrowKey);
    }

    mainGate(now) {
        return this.shared.gates.open(this.gateKey, now);
    }

    // The gates, then the in-flight limit. After a wait all are asked again: what was learnt meanwhile counts.
    async passStations(places) {
        const {concurrency} = this.origin;
        const place = {wake: this.waiter.wake};
        try {
            for (;;) {
                const waitUntil = this.askGates(places);
                if (waitUntil !== undefined) {
                    concurrency?.leave(place); // it holds up nobody who may go
                    this.stopIfLate(waitUntil ?? this.clock.now(), waitUntil);
                    await this.wait(waitUntil, 'gate');
                } else if (concurrency === null || concurrency.ask(place)) {
                    return;
                } else {
                    this.stopIfLate(this.clock.now(), null);
                    await this.wait(null, 'concurrency');
                }
            }
        } catch (error) {
            concurrency?.leave(place);
            throw error;
        }
    }

    // Undefined when all let the call go, else until when it has to wait (null: until it is woken).
    askGates(places) {
        const now = this.clock.now();
        places.narrow ??= this.placeAt(this.narrowGate()); // it may have come meanwhile
        if (places.narrow !== null) {
            const waitUntil = this.askGate(places.narrow, now);
            if (waitUntil !== undefined) {
                this.giveBack(places.main, now); // it holds up nobody who may go
                places.main = null;
                return waitUntil;
            }
        }
        places.main ??= this.placeAt(this.mainGate(now)); // not before: a gate that nobody has asked may be forgotten
        return this.askGate(places.main, now);
    }

    placeAt(gate) {
        return gate === undefined ? null : {gate, ticket: makeTicket(this.waiter.wake, this.spread, this.policy.maxServerWaitMs)};
    }

    askGate({gate, ticket}, now) {
        const answer = gate.ask(ticket, now);
        if (answer.rejectUntil !== undefined) {
            throw this.refusal('gate_closed', this.clock.wall() + answer.rejectUntil - now);
        }
        return answer === 'go' ? undefined : answer.waitUntil;
    }

    passLocalRefusals(now) {
        const {breaker, throttle, concurrency} = this.origin;
        const reason = throttle?.rejects(now, this.settings.random) ? 'throttled'
            : breaker && !breaker.allows(now) ? 'breaker_open' : null;
        if (reason) {
            concurrency?.done(now, null);
            throw this.refusal(reason, reason === 'breaker_open' ? this.clock.wall() + breaker.openUntil - now : null);
        }
        throttle?.sent(now);
    }

    // Nothing is learnt of it.
    giveBack(place, now) {
        if (place === null) {
            return;
        }
        const {gate, ticket} = place;
        if (ticket.granted) {
            gate.done(ticket, {told: null, refused: false}, now);
        } else {
            gate.leave(ticket, now);
        }
    }

    giveBackAll({narrow, main}) {
        const now = this.clock.now();
        this.giveBack(narrow, now);
        this.giveBack(main, now);
    }

    // Sending and learning

    send(places, now) {
        this.attempts += 1;
        this.shared.counters.sends += 1;
        if (this.settings.hooks.onSend) { // an event that nobody hears is not made
            this.hook('onSend', {attempt: this.attempts, method: this.method, url: this.request.place.href});
        }
        const end = Math.min(now + this.policy.attemptTimeoutMs, this.startedAt + this.policy.totalDeadlineMs);
        return new Promise((resolve, reject) => this.attempt(places, resolve, reject).start(Math.max(now + 1, end)));
    }

    // The first attempt of a call that began as a plain one.
    goOn({startedAt, gate, ticket}, resolve, reject) {
        this.startedAt = startedAt;
        this.attempts = 1;
        return this.attempt({narrow: null, main: {gate, ticket}}, resolve, reject);
    }

    // An attempt whose outcome decides what the call comes to.
    attempt(places, resolve, reject) {
        return new Attempt(this, (outcome) => {
            try {
                resolve(this.settle(places, outcome));
            } catch (error) {
                reject(error);
            }
        });
    }

    // What the call comes to after an attempt: its answer, or a promise of the next round.
    settle(places, outcome) {
        if (this.settings.hooks.onAnswer) {
            this.hook('onAnswer', {attempt: this.attempts, status: outcome.status ?? null, error: outcome.error ?? null,
                response: outcome.response ?? null});
        }
        const told = readAnswer(outcome, this.clock.wall());
        this.learn(places, outcome, told);
        if (outcome.status < 400 && !this.request.signal?.aborted) {
            return this.end(outcome, SUCCESS);
        }
        const decision = this.decision(outcome, told);
        if (decision.action === 'stop') {
            return this.end(outcome, decision);
        }
        return this.waitToRetry(outcome, decision).then(() => this.round(this.clock.now()));
    }

    learn({narrow: narrowPlace, main}, outcome, told) {
        const now = this.clock.now();
        const answered = outcome.type === 'response';
        const refused = answered && this.policy.retryStatuses.includes(outcome.status);
        const narrow = refused && this.policy.narrowTypes.includes(told.errorType);
        this.last = {status: told.status, errorType: told.errorType};
        if (narrow && told.floorMs !== null) {
            this.shared.narrowGates.open(this.narrowKey, now).close(now + told.floorMs, 0);
        }
        const mute = narrow || !this.sameOrigin || this.policy.neverRetryTypes.includes(told.errorType);
        const lesson = !answered ? null : mute ? {...told, floorMs: null, limits: []} : told;
        narrowPlace?.gate.done(narrowPlace.ticket, {told: lesson, refused: refused && !narrow}, now);
        main.gate.done(main.ticket, {told: lesson, refused: refused && !narrow}, now);
        this.learnHealth(outcome, now);
        this.learnDoubt(outcome, answered);
    }

    learnHealth(outcome, now) {
        const {breaker, throttle, concurrency, budget} = this.origin;
        if (outcome.error === 'cancelled') {
            breaker?.abandoned();
            concurrency?.done(now, null);
            return;
        }
        const down = outcome.type !== 'response' || outcome.status === 503;
        const throttled = outcome.status === 429 || outcome.status === 503 || outcome.error === 'attempt_timeout';
        breaker?.outcome(now, down);
        throttle?.answered(now, !down);
        concurrency?.done(now, throttled ? 'throttled' : outcome.type === 'response' ? 'ok' : null);
        if (outcome.status < 400) {
            budget.success();
        }
    }

    learnDoubt(outcome, answered) {
        if (this.key === null) {
            return;
        }
        if (answered) {
            this.shared.doubts.delete(this.doubtKey);
        } else if (!this.policy.nothingSentKinds.includes(outcome.error)) {
            this.shared.addDoubt(this.doubtKey);
        }
    }

    // Nothing was sent: it was no load to anybody and costs nothing, so that many calls outlive a restart.
    costsNothing(outcome) {
        return outcome.type !== 'response' && this.policy.nothingSentKinds.includes(outcome.error);
    }

    decision(outcome, told) {
        const now = this.clock.now();
        return decide({
            policy: this.policy, method: this.method, keyed: this.key !== null && this.sameOrigin, body: this.request.body.kind,
            attemptsMade: this.attempts, elapsedMs: now - this.startedAt, outcome, told,
            retryTokens: this.costsNothing(outcome) ? Infinity : this.origin.budget.tokens(now), cancelled: this.request.signal?.aborted ?? false,
            nowUnixMs: this.clock.wall(), random: this.settings.random,
        });
    }

    // Waiting

    async waitToRetry(outcome, decision) {
        const reason = String(outcome.status ?? outcome.error);
        abandon(outcome);
        this.shared.count('retries', reason);
        const now = this.clock.now();
        if (!this.costsNothing(outcome)) {
            this.origin.budget.retry(now);
        }
        this.spread = decision.source !== 'backoff';
        await this.wait(now + decision.waitMs, decision.source, reason);
    }

    // Until the moment, a wake or the deadline; throws the caller's reason when cancelled.
    async wait(moment, source, reason = null) {
        const from = this.clock.now();
        const latest = this.startedAt + this.policy.totalDeadlineMs - this.policy.minAttemptMs;
        const until = moment === null ? latest : Math.min(moment, latest);
        if (until > from || reason !== null) {
            this.hook('onWait', {attempt: this.attempts, source, reason, ms: moment === null ? null : moment - from});
            do {
                await this.waiter.until(until, this.request.signal);
            } while (!WAKEABLE.has(source) && this.clock.now() < until && !this.request.signal?.aborted);
            const waited = this.clock.now() - from;
            this.waitedMs += waited;
            this.shared.count('waitMs', source, waited);
        }
        this.throwIfCancelled();
    }

    // Stops the call when nothing could be sent at `moment` any more.
    stopIfLate(moment, opensAt) {
        const now = this.clock.now();
        const latest = this.startedAt + this.policy.totalDeadlineMs - this.policy.minAttemptMs;
        if (moment > latest || now >= latest) {
            throw this.refusal('deadline', opensAt === null ? null : this.clock.wall() + opensAt - now);
        }
    }

    throwIfCancelled() {
        if (this.request.signal?.aborted) {
            this.finish('cancelled', null);
            throw this.noted(this.request.signal.reason);
        }
    }

    // Ends

    end(outcome, decision) {
        const reason = decision.reason === 'success' && this.redirectReason ? this.redirectReason : decision.reason;
        this.finish(reason, decision.retryAtUnixMs);
        if (outcome.type === 'response') {
            if (reason === 'cancelled') {
                abandon(outcome);
                throw this.noted(this.request.signal.reason);
            }
            return this.noted(outcome.response);
        }
        if (reason === 'cancelled') {
            throw this.noted(this.request.signal.reason);
        }
        if (reason === 'deadline') {
            throw this.noted(Object.assign(new RationError(MESSAGES.deadline, this.info), {cause: outcome.cause}));
        }
        throw this.noted(outcome.cause);
    }

    refusal(reason, retryAt) {
        this.shared.count('localRefusals', reason);
        this.finish(reason, retryAt);
        return this.noted(new RationError(MESSAGES[reason], this.info));
    }

    finish(reason, retryAt) {
        const {status, errorType} = this.last;
        this.info = { // frozen when it is asked for
            attempts: this.attempts, reason, retryAt, idempotencyKey: this.key, waitedMs: this.waitedMs, status, errorType,
        };
        if (this.settings.hooks.onDone) {
            const {idempotencyKey, ...told} = this.info; // hooks lead to logs, where no key belongs
            this.hook('onDone', {...told, attempt: this.attempts});
        }
    }

    noted(result) {
        if (result !== null && (typeof result === 'object' || typeof result === 'function')) {
            mark(result, this.info);
        }
        return result;
    }

    // Watching changes nothing: what a hook throws is its own matter.
    hook(name, event) {
        const hook = this.settings.hooks[name];
        if (hook) {
            try {
                hook(event)?.then?.(undefined, () => {});
            } catch {
                // not the call's failure
            }
        }
    }
}
