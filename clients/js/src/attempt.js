// One attempt: send, follow redirects, read what a decision needs. Never throws; gives an outcome
// in the decision core's words, with `response` or `error` beside it.

import {discard, isStream, peek, shownAs} from './bodies.js';
import {errorKind} from './errors.js';
import {MAX_BODY_BYTES} from './hints.js';
import {decideRedirect, isRedirect} from './redirect.js';
import {openTransfer} from './transfer.js';

const ERROR_BODY_MS = 5_000; // for reading why something was refused

// Not async, and with as few promises as can be: each of them costs every call.
export class Attempt {
    // Calls `settle` with the outcome, once.
    constructor(call, settle) {
        this.call = call;
        this.settle = settle;
        this.transfer = null;
        this.hop = null; // the first
        this.timedOut = false;
        this.headCame = false;
        this.redirected = false;
        this.at = 0;
        this.holds = true;
    }

    start(until) {
        const {call} = this;
        const {shared, request, settings} = call;
        this.at = until;
        shared.deadlines.add(this);
        this.hop = firstHop(call);
        try {
            this.transfer = openTransfer(settings.fetch ?? globalThis.fetch, request);
            Promise.resolve(this.sendHop(this.hop)).then((response) => this.answered(response), (error) => this.failed(error));
        } catch (error) {
            this.failed(error);
        }
    }

    // The attempt's time is over. What has begun to be answered fails where its body is read, if it has to be.
    late() {
        this.timedOut = true;
        const error = new DOMException('The attempt took too long.', 'TimeoutError');
        this.transfer.cut(error);
        if (!this.headCame) {
            this.failed(error);
        }
    }

    answered(given) {
        if (this.settle === null) {
            discard(given); // too late: nobody hears it
            return;
        }
        if (typeof given?.status !== 'number' || typeof given.headers?.get !== 'function') {
            this.failed(new TypeError('fetch gave no Response'));
            return;
        }
        this.headCame = true;
        const response = this.transfer.asAnswered(given);
        const redirected = this.hop.follows && isRedirect(response.status);
        if (!redirected && response.status < 400 && this.call.settings.wholeAnswers === 0) {
            this.ends(outcomeOf(response), true); // the usual case: nothing of the body has to be read
            return;
        }
        const reading = redirected ? this.followRedirects(response) : readOutcome(this.call, response);
        reading.then((outcome) => this.ends(outcome, true), (error) => this.failed(error));
    }

    failed(error) {
        if (this.settle !== null) {
            const cancelled = this.call.request.signal?.aborted;
            const kind = cancelled ? 'cancelled' : this.timedOut ? 'attempt_timeout' : this.kindOf(error);
            this.ends({type: 'transport_error', error: kind, cause: error}, false);
        }
    }

    // Whoever answered with a redirect was asked, wherever it led.
    kindOf(error) {
        const kind = errorKind(error);
        return this.redirected && this.call.policy.nothingSentKinds.includes(kind) ? 'connection_lost' : kind;
    }

    ends(outcome, answered) {
        const {call, settle, transfer} = this;
        this.settle = null;
        call.shared.deadlines.remove(this);
        transfer?.over(answered); // none for a signal that is no signal
        outcome.transfer = transfer;
        settle(outcome);
    }

    sendHop(hop) {
        const {call, transfer} = this;
        const {request} = call;
        const init = {
            method: hop.method, headers: headersFor(call, hop), redirect: hop.follows ? 'manual' : request.redirect,
        };
        if (hop.body !== null && hop.body.kind !== 'none') {
            init.body = hop.body.make();
            if (isStream(init.body)) {
                init.duplex = 'half';
            }
        }
        if (request.extras !== null) {
            Object.assign(init, request.extras);
        }
        return transfer.fetch(hop.url, init);
    }

    async followRedirects(redirect) {
        const {call} = this;
        let {hop} = this;
        let response = redirect;
        let followed = 0;
        for (; isRedirect(response.status); followed += 1) {
            const location = response.headers.get('location');
            const decision = decideRedirect(call.policy, {
                method: hop.method.toUpperCase(), status: response.status, from: hop.url, location, followed});
            if (decision.action === 'stop' || hop.body?.kind === 'stream_once_consumed') {
                call.redirectReason = decision.reason ?? 'body_not_replayable';
                break;
            }
            discard((await peek(response, MAX_BODY_BYTES)).response);
            hop = {
                url: decision.url, method: decision.method, body: decision.dropBody ? null : hop.body,
                dropSecrets: hop.dropSecrets || decision.dropSecrets, follows: true,
            };
            call.sameOrigin = !hop.dropSecrets;
            this.headCame = false;
            this.redirected = true;
            response = this.transfer.asAnswered(await this.sendHop(hop));
            if (this.settle === null) {
                discard(response);
                throw this.transfer.reason; // too late: nobody hears it
            }
            this.headCame = true;
        }
        return readOutcome(call, followed === 0 ? response : shownAs(response, {redirected: true}));
    }
}

export function firstHop(call) {
    const {request, settings} = call;
    call.sameOrigin = true;
    return {
        url: request.place.href, method: request.method, body: request.body, dropSecrets: false,
        follows: settings.redirects === 'client' && (request.redirect ?? 'follow') === 'follow',
    };
}

// The caller's own value is passed on as it is unless something has to be added or taken away.
function headersFor(call, hop) {
    const {request, settings, policy} = call;
    if (call.attempts === 1 && hop.body === request.body && !call.madeKey && !hop.body.type && !hop.dropSecrets) {
        return request.headers; // the usual case, without a list
    }
    const added = [];
    if (call.madeKey) {
        added.push([policy.idempotencyHeader, call.madeKey]);
    }
    if (call.attempts > 1 && settings.attemptHeader) {
        added.push([settings.attemptHeader, String(call.attempts)]);
    }
    if (hop.body?.type) {
        added.push(['Content-Type', hop.body.type]);
    }
    if (added.length === 0 && !hop.dropSecrets && hop.body === request.body) {
        return request.headers;
    }
    const headers = new Headers(request.headers);
    for (const [name, value] of added) {
        headers.set(name, value);
    }
    if (hop.dropSecrets) {
        const secrets = ['authorization', 'cookie', 'proxy-authorization', policy.idempotencyHeader];
        [...secrets, ...settings.secretHeaders].forEach((name) => headers.delete(name));
    }
    if (hop.body !== request.body) {
        ['content-type', 'content-length', 'content-encoding', 'content-language'].forEach((name) => headers.delete(name));
    }
    return headers;
}

// An answer that nobody will see ends here, and its transfer with it.
export function abandon(outcome) {
    if (outcome.type === 'response' && !outcome.drained) {
        discard(outcome.response);
        outcome.transfer.cut();
    }
}

function outcomeOf(response) {
    const {headers} = response;
    return {
        type: 'response', status: response.status, header: (name) => headers.get(name), body: null, response,
        drained: false, transfer: null,
    };
}

async function readOutcome(call, response) {
    const outcome = outcomeOf(response);
    const {wholeAnswers, clock} = call.settings;
    if (response.status >= 400 && wantsBody(call.policy, response)) {
        // A refusal whose body is endless, slow or cut is judged by its status and headers.
        const seen = await withinTime(clock, ERROR_BODY_MS, (late) => peek(response, MAX_BODY_BYTES, late));
        return {...outcome, body: seen.complete ? seen.bytes : null, drained: seen.complete, response: seen.response};
    }
    if (response.status < 400 && wholeAnswers > 0) {
        const seen = await peek(response, wholeAnswers);
        if (seen.broken) {
            throw seen.broken;
        }
        return {...outcome, response: seen.response};
    }
    return outcome;
}

function wantsBody(policy, {status, headers}) {
    if (policy.retryStatuses.includes(status) || policy.retryTypes.length > 0) {
        return true;
    }
    const length = headers.get('content-length');
    return length !== null && Number(length) <= MAX_BODY_BYTES && /json/i.test(headers.get('content-type') ?? '');
}

async function withinTime(clock, ms, work) {
    let timer;
    const late = new Promise((resolve) => {
        timer = clock.setTimeout(resolve, ms);
    });
    try {
        return await work(late);
    } finally {
        clock.clearTimeout(timer);
    }
}
