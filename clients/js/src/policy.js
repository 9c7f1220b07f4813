// The numbers and lists that a decision is made from. All times are milliseconds.

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

// The defaults with the given fields over them; a field that cannot be meant throws a TypeError.
export function makePolicy(given = {}) {
    const policy = {...DEFAULT_POLICY};
    for (const [name, standard] of Object.entries(DEFAULT_POLICY)) {
        if (given[name] === undefined) {
            continue;
        }
        policy[name] = checkedField(name, given[name], standard);
    }
    return Object.freeze(policy);
}

function checkedField(name, value, standard) {
    if (typeof standard === 'number') {
        const good = typeof value === 'number' && value >= 0 && !Number.isNaN(value) &&
            (!WHOLE.has(name) || Number.isInteger(value) || value === Infinity);
        if (!good) {
            throw new TypeError(`${name} must be a number of at least 0, not ${String(value)}`);
        }
    } else if (typeof standard === 'boolean') {
        if (typeof value !== 'boolean') {
            throw new TypeError(`${name} must be true or false`);
        }
    } else if (name === 'idempotencyHeader') {
        if (typeof value !== 'string' || !/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(value)) {
            throw new TypeError(`${name} must be the name of a field`);
        }
    } else if (Array.isArray(standard)) {
        if (!Array.isArray(value)) {
            throw new TypeError(`${name} must be an array`);
        }
        return Object.freeze(name === 'safeMethods' ? value.map((method) => method.toUpperCase()) : [...value]);
    }
    return value;
}

// The most that a backoff may wait before retry number `retry`, counted from 0. Never overflows.
export function backoffBound(policy, retry) {
    const bound = policy.backoffBaseMs * policy.backoffFactor ** retry;
    return bound <= policy.backoffCapMs || policy.backoffBaseMs === 0 ? bound || 0 : policy.backoffCapMs;
}
