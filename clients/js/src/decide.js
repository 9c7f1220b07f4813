// What to do when an attempt has ended. Pure: times, tokens and the random source are arguments.
// The checks stand in the order in which they are told; the first that speaks ends it.

import {parseRetryAfter, readErrorBody, serverNow} from './hints.js';
import {parseLimits, tellsLimits} from './limits.js';
import {backoffBound} from './policy.js';

// What one answer tells: {status, errorType, limits, floorMs, source}. `floorMs` is the wait that
// the server asks for, null when it names none; `source` says which words it comes from.
export function readAnswer(outcome, nowUnixMs) {
    const told = {status: outcome.status ?? null, errorType: null, limits: [], floorMs: null, source: 'backoff'};
    if (outcome.type !== 'response' || (outcome.status < 400 && !tellsLimits(outcome.header))) {
        return told;
    }
    const now = serverNow(outcome.header('date'), nowUnixMs);
    told.limits = parseLimits(outcome.header, now);
    if (outcome.status < 400) {
        return told;
    }
    const body = readErrorBody(outcome.body);
    told.errorType = body.type;
    const empty = told.limits.filter((limit) => limit.remaining === 0 && limit.resetInMs > 0);
    const candidates = [
        ['retry_after', parseRetryAfter(outcome.header('retry-after'), now)],
        ['reset', empty.length > 0 ? Math.max(...empty.map((limit) => limit.resetInMs)) : null],
        ['body', body.waitMs],
    ];
    for (const [source, ms] of candidates) {
        if (ms !== null) {
            return {...told, floorMs: ms, source};
        }
    }
    return told;
}

// `state`: {policy, method, keyed, body, attemptsMade, elapsedMs, outcome, told, retryTokens,
// cancelled, nowUnixMs, random}. `body` is none, buffered, rewindable, stream_once or
// stream_once_consumed; `told` is readAnswer's result, made here when left out.
// Gives {action: 'retry', waitMs, source} or {action: 'stop', reason}, both with errorType and
// retryAtUnixMs (null when the server named no time).
export function decide(state) {
    const told = state.told ?? readAnswer(state.outcome, state.nowUnixMs);
    const common = {
        errorType: told.errorType,
        retryAtUnixMs: told.floorMs === null ? null : state.nowUnixMs + told.floorMs,
    };
    const reason = reasonToStop(state, told);
    if (reason) {
        return {action: 'stop', reason, ...common};
    }
    return {action: 'retry', waitMs: waitFor(state, told), source: told.source, ...common};
}

function reasonToStop(state, told) {
    const {policy, outcome} = state;
    if (state.cancelled) {
        return 'cancelled';
    }
    if (outcome.type === 'response' && outcome.status < 400) {
        return 'success';
    }
    return reasonInOutcome(policy, outcome, told) ?? reasonInRequest(state) ?? reasonInTime(state, told);
}

function reasonInOutcome(policy, outcome, told) {
    if (outcome.type !== 'response') {
        return policy.retryErrorKinds.includes(outcome.error) ? null : 'error_not_retryable';
    }
    if (policy.neverRetryTypes.includes(told.errorType)) {
        return 'type_never_retry';
    }
    if (policy.narrowTypes.includes(told.errorType) && told.floorMs === null) {
        return 'type_never_retry'; // clears at a moment that it did not tell
    }
    const good = policy.retryStatuses.includes(outcome.status) || policy.retryTypes.includes(told.errorType);
    return good ? null : 'status_not_retryable';
}

function reasonInRequest({policy, outcome, method, keyed, body, attemptsMade}) {
    const nothingSent = outcome.type !== 'response' && policy.nothingSentKinds.includes(outcome.error);
    if (!nothingSent && !keyed && !policy.safeMethods.includes(method)) {
        return 'unsafe_method';
    }
    if (body === 'stream_once_consumed') {
        return 'body_not_replayable';
    }
    return attemptsMade > policy.maxRetries ? 'attempts_exhausted' : null;
}

function reasonInTime(state, told) {
    if (told.floorMs !== null && told.floorMs > state.policy.maxServerWaitMs) {
        return 'server_wait_too_long';
    }
    if (roomFor(state) < (told.floorMs ?? 0)) {
        return 'deadline';
    }
    return state.retryTokens < state.policy.budgetRetryCost ? 'budget_exhausted' : null;
}

// The longest wait after which an attempt still has its least time.
function roomFor({policy, elapsedMs}) {
    return policy.totalDeadlineMs - elapsedMs - policy.minAttemptMs;
}

// What the server asked for and a little more, or any time up to the backoff's bound.
function waitFor(state, told) {
    const {policy, random} = state;
    const room = roomFor(state);
    if (told.floorMs !== null) {
        return told.floorMs + random() * Math.min(policy.retryAfterExtraMs, room - told.floorMs);
    }
    return random() * Math.min(backoffBound(policy, state.attemptsMade - 1), room);
}
