// What a call ends with when there is no answer to give back.

// `reason` is a word of the decision core (gate_closed, deadline, breaker_open, ...); `info` is what
// `client.info(error)` gives too: attempts, idempotencyKey, retryAt, status and errorType of the
// last answer.
export class RationError extends Error {
    constructor(message, info) {
        super(message);
        this.name = 'RationError';
        this.reason = info.reason;
        this.info = Object.freeze(info);
    }
}

export const MESSAGES = {
    gate_closed: 'the server asked for no calls before a moment that is further off than calls may wait',
    deadline: 'the time for the whole call is over, or what the server asks for does not fit in it',
    breaker_open: 'the circuit breaker is open',
    throttled: 'refused locally: the server accepts too little of what it is sent',
};

const NOT_FOUND = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EAI_FAIL', 'EAI_NODATA', 'EAI_NONAME']);
const NOT_CONNECTED = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENETDOWN',
    'EADDRNOTAVAIL', 'UND_ERR_CONNECT_TIMEOUT', 'ConnectionRefused', 'FailedToOpenSocket']);
const TIMED_OUT = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']);
const LOST = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED', 'ETIMEDOUT', 'UND_ERR_SOCKET', 'ConnectionClosed',
    'ERR_HTTP2_STREAM_ERROR', 'ERR_HTTP2_STREAM_CANCEL', 'ERR_HTTP2_SESSION_ERROR', 'ERR_HTTP2_GOAWAY_SESSION']);
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH|^ERR_(TLS|SSL)_/;
// Browsers say no more than this, whatever went wrong on the way.
const BROWSER_FAILURE = /failed to fetch|networkerror|load failed|network error|fetch failed|terminated/i;

// The kind of a failed fetch, in the words of the decision core.
export function errorKind(error) {
    const cause = error?.cause;
    const causes = [cause, ...(Array.isArray(cause?.errors) ? cause.errors : []), error];
    for (const {code, syscall, message} of causes.filter(Boolean)) {
        // Node's words for a 100 or 101 that it did not ask for: the next one would be the same.
        const kind = code === 'UND_ERR_SOCKET' && /^bad (response|upgrade)$/.test(message) ? 'protocol_error' : kindOfCode(code, syscall);
        if (kind) {
            return kind;
        }
    }
    if (error instanceof TypeError && error.message === 'terminated') {
        return 'connection_lost'; // a body that broke off; its cause may have lost its code in a clone
    }
    if (error instanceof TypeError && (cause ?? null) === null) {
        return BROWSER_FAILURE.test(error.message) ? 'connection_lost' : 'bad_request';
    }
    return 'protocol_error';
}

function kindOfCode(code, syscall) {
    if (typeof code !== 'string') {
        return null;
    }
    if (NOT_FOUND.has(code)) {
        return 'dns_failed';
    }
    if (NOT_CONNECTED.has(code) || syscall === 'connect') {
        return 'connect_failed';
    }
    if (TIMED_OUT.has(code)) {
        return 'attempt_timeout';
    }
    if (LOST.has(code)) {
        return 'connection_lost';
    }
    return CERTIFICATE.test(code) ? 'tls_certificate' : null;
}
