// One attempt: send, follow redirects, read what a decision needs. Never throws; gives an outcome
// in the decision core's words, with `response` or `error` beside it.

import {discard, isStream, peek} from './bodies.js';
import {errorKind} from './errors.js';
import {MAX_BODY_BYTES} from './hints.js';
import {decideRedirect, isRedirect} from './redirect.js';

const ERROR_BODY_MS = 5_000; // for reading why something was refused

export async function attempt(call, timeoutMs) {
    const {deadlines} = call.shared;
    const controller = new AbortController();
    const state = {timedOut: false, unlink: null};
    const deadline = deadlines.add(timeoutMs, () => {
        state.timedOut = true;
        controller.abort(new DOMException('The attempt took too long.', 'TimeoutError'));
    });
    try {
        const signal = linked(call.request.signal, controller, state);
        const first = firstHop(call);
        call.sameOrigin = true;
        let response = await sendHop(call, first, signal);
        if (first.follows && isRedirect(response.status)) {
            response = await followRedirects(call, first, response, signal);
        }
        const outcome = readAtOnce(call, response) ?? await readOutcome(call, response);
        outcome.controller = controller;
        state.unlink = null;
        return outcome;
    } catch (error) {
        if (call.request.signal?.aborted) {
            return {type: 'transport_error', error: 'cancelled', cause: error};
        }
        return {type: 'transport_error', error: state.timedOut ? 'attempt_timeout' : errorKind(error), cause: error};
    } finally {
        deadlines.remove(deadline);
        state.unlink?.();
    }
}

// The caller's abort must reach the body too, which is read after the attempt is over.
function linked(signal, controller, state) {
    if (!signal) {
        return controller.signal;
    }
    if (typeof AbortSignal.any === 'function') {
        return AbortSignal.any([signal, controller.signal]);
    }
    const follow = () => controller.abort(signal.reason);
    signal.addEventListener('abort', follow, {once: true});
    state.unlink = () => signal.removeEventListener('abort', follow);
    return controller.signal;
}

function firstHop({request, settings}) {
    return {
        url: request.place.href, method: request.method, body: request.body, dropSecrets: false,
        follows: settings.redirects === 'client' && (request.redirect ?? 'follow') === 'follow',
    };
}

function sendHop(call, hop, signal) {
    const {request, settings} = call;
    const init = {
        method: hop.method, headers: headersFor(call, hop), signal,
        redirect: hop.follows ? 'manual' : request.redirect, body: hop.body?.make(),
    };
    if (request.extras) {
        Object.assign(init, request.extras);
    }
    if (isStream(init.body)) {
        init.duplex = 'half';
    }
    return settings.fetch(hop.url, init);
}

async function followRedirects(call, first, redirect, signal) {
    let hop = first;
    let response = redirect;
    for (let followed = 0; isRedirect(response.status); followed += 1) {
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
        response = await sendHop(call, hop, signal);
    }
    return response;
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
        outcome.controller.abort();
    }
}

function outcomeOf(response) {
    const {headers} = response;
    return {
        type: 'response', status: response.status, header: (name) => headers.get(name), body: null, response,
        drained: false, controller: null,
    };
}

// The usual case without a promise: nothing of the body has to be read. Null otherwise.
function readAtOnce(call, response) {
    return response.status < 400 && call.settings.wholeAnswers === 0 ? outcomeOf(response) : null;
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
