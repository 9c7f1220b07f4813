// The header families that tell a limit's numbers:
//   RateLimit: "name";r=50;t=30                      (draft-ietf-httpapi-ratelimit-headers, structured)
//   RateLimit-Remaining, RateLimit-Reset             (earlier drafts)
//   X-RateLimit-Remaining, X-RateLimit-Reset         (before any draft)
// A family with a malformed number is ignored whole.

import {MAX_WAIT_MS, parseDelayOrMoment, trimBlanks} from './hints.js';

const MAX_HEADER_CHARACTERS = 4096;
const MAX_LIMITS = 16;
const MAX_REMAINING = Number.MAX_SAFE_INTEGER;

export function tellsLimits(header) {
    return (header('ratelimit') ?? header('x-ratelimit-remaining') ?? header('ratelimit-remaining') ?? null) !== null;
}

// `header` is a function from a name to its value or null. Gives a list of
// {name, remaining, resetInMs, epochMs}; resetInMs is null when no time was given, epochMs when the
// time was given as a delay.
export function parseLimits(header, nowUnixMs) {
    const limits = [];
    const structured = header('ratelimit');
    if (structured !== null && structured !== undefined) {
        limits.push(...parseStructured(structured));
    }
    for (const prefix of ['ratelimit', 'x-ratelimit']) {
        const remaining = header(`${prefix}-remaining`);
        if (remaining !== null && remaining !== undefined) {
            const limit = parseFields(remaining, header(`${prefix}-reset`), nowUnixMs);
            if (limit) {
                limits.push(limit);
            }
        }
    }
    return limits;
}

function parseFields(remainingText, resetText, nowUnixMs) {
    const remaining = wholeNumber(trimBlanks(remainingText));
    if (remaining === null) {
        return null;
    }
    const limit = {name: 'default', remaining, resetInMs: null, epochMs: null};
    if (resetText !== null && resetText !== undefined) {
        const reset = parseDelayOrMoment(trimBlanks(resetText), nowUnixMs);
        if (!reset) {
            return null;
        }
        limit.resetInMs = reset.waitMs;
        limit.epochMs = reset.epochMs;
    }
    return limit;
}

function wholeNumber(text) {
    return /^\d+$/.test(text) ? Math.min(Number(text), MAX_REMAINING) : null;
}

// One item of a structured list (RFC 9651): a string or token, then parameters. Sticky, so that a
// list is read front to back once.
const NAME = /"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"|([A-Za-z*][!#$%&'*+\-.^_`|~:/0-9A-Za-z]*)/y;
const PARAMETER = /; *([a-z*][a-z0-9_\-.*]*)(?:=(-?\d{1,15}(?:\.\d{1,3})?|"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"|:[A-Za-z0-9+/=]*:|\?[01]|@-?\d{1,15}|[A-Za-z*][!#$%&'*+\-.^_`|~:/0-9A-Za-z]*))?/y;
const SEPARATOR = /[ \t]*,[ \t]*/y;

function parseStructured(value) {
    const text = trimBlanks(value);
    if (text === '' || text.length > MAX_HEADER_CHARACTERS) {
        return [];
    }
    const limits = [];
    let at = 0;
    const take = (pattern) => {
        pattern.lastIndex = at;
        const match = pattern.exec(text);
        at = match ? pattern.lastIndex : at;
        return match;
    };
    for (;;) {
        const name = take(NAME);
        if (!name || limits.length === MAX_LIMITS) {
            return [];
        }
        const parameters = new Map();
        for (let match = take(PARAMETER); match; match = take(PARAMETER)) {
            parameters.set(match[1], match[2] ?? '?1');
        }
        const limit = structuredLimit(name, parameters);
        if (!limit) {
            return [];
        }
        limits.push(limit);
        if (at === text.length) {
            return limits;
        }
        if (!take(SEPARATOR)) {
            return [];
        }
    }
}

// RFC 9651 lets a zero be negative.
function structuredNumber(text) {
    return /^-0+$/.test(text) ? 0 : wholeNumber(text);
}

function structuredLimit(name, parameters) {
    const remaining = structuredNumber(parameters.get('r') ?? '');
    const seconds = parameters.has('t') ? structuredNumber(parameters.get('t')) : undefined;
    if (remaining === null || seconds === null) {
        return null;
    }
    return {
        name: name[1] !== undefined ? name[1].replace(/\\(.)/g, '$1') : name[2],
        remaining,
        resetInMs: seconds === undefined ? null : Math.min(seconds * 1000, MAX_WAIT_MS),
        epochMs: null,
    };
}
