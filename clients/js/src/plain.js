// The usual call by the shortest way: a text as address, headers and perhaps a text as body, to a place that asks for no
// patience, through a fetch that needs no signal (see transfer.js), in a client without the optional parts. Until it is
// answered nothing is made for it that only a repeat would need. What turns out unusual goes on as a Call, which knows
// all the rules; here are only those that a good answer at the first attempt can meet.

import {firstHop} from './attempt.js';
import {discard} from './bodies.js';
import {Call} from './call.js';
import {readAnswer} from './decide.js';
import {makeTicket} from './gate.js';
import {tellsLimits} from './limits.js';
import {markPlain} from './marks.js';
import {ORIGIN_BUCKET, PATH_BUCKET, askedPlainly, fieldValue, standardCredential} from './request.js';
import {Transfer, dispatcherFor} from './transfer.js';

const METHODS = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'POST', 'PATCH']); // as fetch sends them
export const HOOKS = ['onSend', 'onAnswer', 'onWait', 'onDone'];
const NOTHING_TOLD = {told: null, refused: false};

export class PlainCalls {
    constructor(shared, settings, places) {
        this.shared = shared;
        this.settings = settings;
        this.places = places;
        this.keyField = settings.policy.idempotencyHeader.toLowerCase();
        this.info = infoOf(200);
    }

    // Whether a client with these settings makes calls that may go this way.
    static suit({policy, hooks, fetch, bucket, credential, redirects, wholeAnswers, breaker, throttle, concurrency, pace}) {
        return policy.idempotency === 'caller' && (bucket === PATH_BUCKET || bucket === ORIGIN_BUCKET) &&
            credential === standardCredential && redirects === 'client' && wholeAnswers === 0 && fetch === null &&
            !HOOKS.some((name) => hooks[name]) && !breaker && !throttle && !concurrency && !pace;
    }

    // A promise as the client gives it, or null when the call has to go the other way. `headers`: a copy of init's, since
    // a repeat sends them too.
    send(input, init, headers) {
        const {fetch} = globalThis;
        const inForce = dispatcherFor(fetch);
        if (inForce === undefined || typeof input !== 'string') {
            return null;
        }
        let method = 'GET';
        let body;
        for (const name in init) {
            const value = init[name];
            if (name === 'method' && METHODS.has(value)) {
                method = value;
            } else if (name === 'body' && typeof value === 'string') {
                body = value;
            } else if (name !== 'headers' && value !== undefined) {
                return null;
            }
        }
        if (fieldValue(headers, this.keyField) !== null) {
            return null;
        }
        const {shared, settings} = this;
        const place = this.places.find(input);
        const keys = place.keysOf(method, standardCredential({headers}));
        const now = settings.clock.now();
        const gate = shared.gates.open(settings.bucket === PATH_BUCKET ? keys.narrow : keys.prefix, now);
        const ticket = makeTicket(null);
        if (shared.narrowGates.find(keys.narrow) !== undefined || !gate.enter(ticket, now)) {
            return null;
        }
        shared.counters.calls += 1;
        shared.counters.sends += 1;
        return new PlainCall(this, fetch, inForce, {place, method, headers, body, gate, ticket, startedAt: now}).promise();
    }

    infoOf(status) {
        if (this.info.status !== status) {
            this.info = infoOf(status);
        }
        return this.info;
    }
}

function infoOf(status) {
    return Object.freeze({
        attempts: 1, reason: 'success', retryAt: null, idempotencyKey: null, waitedMs: 0, status, errorType: null,
    });
}

class PlainCall extends Transfer {
    constructor(calls, fetch, inForce, asked) {
        super(fetch, inForce);
        this.calls = calls;
        this.asked = asked;
        this.resolve = null;
        this.reject = null;
        const {attemptTimeoutMs, totalDeadlineMs} = calls.settings.policy;
        this.at = asked.startedAt + Math.max(1, Math.min(attemptTimeoutMs, totalDeadlineMs));
        this.holds = false; // its connection does
    }

    promise() {
        return new Promise((resolve, reject) => {
            this.resolve = resolve;
            this.reject = reject;
            this.calls.shared.deadlines.add(this);
            const {place, method, headers, body} = this.asked;
            const init = {method, headers, redirect: 'manual', body, dispatcher: this};
            const {send} = this;
            try {
                send(place.href, init).then((response) => this.answered(response), (error) => this.failed(error));
            } catch (error) {
                this.failed(error);
            }
        });
    }

    answered(response) {
        const {calls} = this;
        if (calls === null) {
            discard(response); // too late: nobody hears it
            return;
        }
        const {status, headers} = response;
        if (status >= 300) {
            this.attempt().answered(response);
            return;
        }
        const {shared, settings} = calls;
        const {gate, ticket, place} = this.asked;
        const header = (name) => headers.get(name);
        let learnt = NOTHING_TOLD;
        if (tellsLimits(header)) {
            learnt = {told: readAnswer({type: 'response', status, header}, settings.clock.wall()), refused: false};
        }
        gate.done(ticket, learnt, settings.clock.now());
        shared.origin(place.origin).budget.success();
        shared.deadlines.remove(this);
        this.calls = null;
        this.asked = null;
        markPlain(response, calls.infoOf(status));
        this.resolve(response);
    }

    failed(error) {
        if (this.calls !== null) {
            this.attempt().failed(error);
        }
    }

    late() {
        this.attempt().late();
    }

    // The same as an attempt of a Call.
    attempt() {
        const {calls, asked} = this;
        const {shared, settings} = calls;
        const call = new Call(shared, askedPlainly(asked), settings, settings.policy);
        const attempt = call.goOn(asked, this.resolve, this.reject);
        attempt.transfer = this;
        attempt.hop = firstHop(call);
        shared.deadlines.remove(this);
        attempt.at = this.at;
        shared.deadlines.add(attempt);
        this.calls = null;
        return attempt;
    }
}
