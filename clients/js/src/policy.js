// The numbers and lists that a decision is made from. All times are milliseconds.

import {check, isFunction, isListOf, isNumber, isRefusal, isRoute, isText, isToken, isWhole} from './checks.js';

export const DEFAULT_POLICY = Object.freeze({
    maxRetries: 5,
    backoffBaseMs: 500,
    backoffFactor: 2,
    backoffCapMs: 30_000,
    retryAfterExtraMs: 500,
    maxServerWaitMs: 60_000,
    totalDeadlineMs: 120_000,
    attemptTimeoutMs: 30_000,
    minAttemptMs: 100,
    gateGuardMs: 50,
    retryStatuses: Object.freeze([429, 503]),
    retryTypes: Object.freeze([]),
    neverRetryTypes: Object.freeze(['booking_volume_refused', 'idempotency_mismatch']),
    narrowTypes: Object.freeze(['daily_booking_limit']),
    safeMethods: Object.freeze(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']),
    retryErrorKinds: Object.freeze(['dns_failed', 'connect_failed', 'connection_lost', 'attempt_timeout']),
    nothingSentKinds: Object.freeze(['dns_failed', 'connect_failed']),
    idempotency: 'caller',
    idempotencyHeader: 'Idempotency-Key',
    budgetCapacity: 50,
    budgetRetryCost: 1,
    budgetSuccessDeposit: 0.2,
    budgetFloorMs: 10_000,
    maxRedirects: 5,
    redirectToGet: false,
});

const WHOLE = new Set(['maxRetries', 'maxRedirects']);

const ERROR_KINDS = ['dns_failed', 'connect_failed', 'connection_lost', 'attempt_timeout', 'tls_certificate', 'bad_request',
    'protocol_error'];
const isErrorKind = (value) => ERROR_KINDS.includes(value);

// `over` with the given fields over it; a field that cannot be meant throws a TypeError.
export function makePolicy(given = {}, over = DEFAULT_POLICY) {
    const policy = {...over};
    for (const [name, standard] of Object.entries(DEFAULT_POLICY)) {
        if (given[name] === undefined) {
            continue;
        }
        policy[name] = checkedField(name, given[name], standard);
    }
    return Object.freeze(policy);
}

function checkedField(name, value, standard) {
    if (WHOLE.has(name)) {
        check(name, isWhole(value), 'a whole number of at least 0');
    } else if (name === 'backoffFactor') {
        check(name, isNumber(value) && value >= 1, 'a number of at least 1');
    } else if (typeof standard === 'number') {
        check(name, isNumber(value), 'a number of at least 0');
    } else if (typeof standard === 'boolean') {
        check(name, typeof value === 'boolean', 'true or false');
    } else if (name === 'idempotencyHeader') {
        check(name, isToken(value), 'the name of a field');
    } else if (name === 'idempotency') {
        check(name, value === 'caller' || value === 'auto' || isFunction(value) || isListOf(value, isRoute),
            "'caller', 'auto', an array of routes such as 'POST /v1/bookings' or a function");
    } else {
        return checkedList(name, value);
    }
    return value;
}

function checkedList(name, value) {
    if (name === 'retryStatuses') {
        check(name, isListOf(value, isRefusal), 'an array of whole numbers from 400 to 599');
    } else if (name === 'safeMethods') {
        check(name, isListOf(value, isToken), 'an array of methods');
        return Object.freeze(value.map((method) => method.toUpperCase()));
    } else if (name === 'retryErrorKinds' || name === 'nothingSentKinds') {
        check(name, isListOf(value, isErrorKind), `an array of ${ERROR_KINDS.join(', ')}`);
    } else {
        check(name, isListOf(value, isText), 'an array of texts');
    }
    return Object.freeze([...value]);
}

// The most that a backoff may wait before retry number `retry`, counted from 0. Never overflows.
export function backoffBound(policy, retry) {
    const bound = policy.backoffBaseMs * policy.backoffFactor ** retry;
    return bound <= policy.backoffCapMs || policy.backoffBaseMs === 0 ? bound || 0 : policy.backoffCapMs;
}
