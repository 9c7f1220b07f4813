// What an answer says about waiting: Retry-After, the body's own words, the error's type. Reading
// never throws; what cannot be read is as if it were absent.

import {parseHttpDate} from './http_date.js';

export const MAX_WAIT_MS = 365 * 24 * 3600 * 1000; // longer ones saturate here
export const MAX_BODY_BYTES = 64 * 1024; // of a body that is searched for a type

const NUMBER = /^(\d+)(?:\.(\d+))?$/;
const FIRST_EPOCH_DIGITS = 10; // from 10^9 on; smaller numbers are delays

// "1.5" to {ms: 1500, digits: 1}: rounded up, so that a wait is never shortened; null when `text` is
// not digits with at most one point between them.
export function parseSeconds(text) {
    const match = NUMBER.exec(text);
    if (!match) {
        return null;
    }
    const whole = match[1].replace(/^0+(?=\d)/, '');
    if (whole.length > 15) {
        return {ms: Infinity, digits: whole.length};
    }
    const fraction = match[2] ?? '';
    const thousandths = Number(fraction.slice(0, 3).padEnd(3, '0')) + (/[1-9]/.test(fraction.slice(3)) ? 1 : 0);
    return {ms: Number(whole) * 1000 + thousandths, digits: whole.length};
}

// A number that is a delay or a moment, to {waitMs, epochMs}: 13 digits are Unix milliseconds, from
// 10^9 on they are Unix seconds, else it is a delay. A moment already past gives 0.
export function parseDelayOrMoment(text, nowUnixMs) {
    const number = parseSeconds(text);
    if (!number) {
        return null;
    }
    let epochMs = null;
    if (number.digits === 13) {
        epochMs = number.ms / 1000;
    } else if (number.digits >= FIRST_EPOCH_DIGITS) { // of the whole part: rounding makes no delay a moment
        epochMs = number.ms;
    }
    const wait = epochMs === null ? number.ms : Math.ceil(Math.max(0, epochMs - nowUnixMs));
    return {waitMs: Math.min(wait, MAX_WAIT_MS), epochMs};
}

export function trimBlanks(text) {
    return text.replace(/^[ \t]+|[ \t]+$/g, '');
}

// Retry-After to milliseconds, null when it says nothing usable: unreadable, zero, negative, past.
export function parseRetryAfter(value, nowUnixMs) {
    if (typeof value !== 'string') {
        return null;
    }
    const text = trimBlanks(value);
    let wait = parseDelayOrMoment(text, nowUnixMs)?.waitMs ?? null;
    if (wait === null) {
        const date = parseHttpDate(text, nowUnixMs);
        wait = date === null ? null : Math.min(date - nowUnixMs, MAX_WAIT_MS);
    }
    return wait !== null && wait > 0 ? wait : null;
}

// The server's clock as its Date header tells it, else `nowUnixMs`.
export function serverNow(dateHeader, nowUnixMs) {
    if (typeof dateHeader !== 'string') {
        return nowUnixMs;
    }
    return parseHttpDate(trimBlanks(dateHeader), nowUnixMs) ?? nowUnixMs;
}

// {type, waitMs} of a body, each null when it does not say. `bytes` beyond MAX_BODY_BYTES, and what
// is not JSON, say nothing.
export function readErrorBody(bytes) {
    const nothing = {type: null, waitMs: null};
    if (!bytes || bytes.length === 0 || bytes.length > MAX_BODY_BYTES) {
        return nothing;
    }
    let body;
    try {
        body = JSON.parse(new TextDecoder().decode(bytes));
    } catch {
        return nothing;
    }
    if (body === null || typeof body !== 'object' || Array.isArray(body)) {
        return nothing;
    }
    return {type: typeOf(body), waitMs: waitOf(body)};
}

function typeOf(body) {
    const {error} = body;
    const candidates = [error !== null && typeof error === 'object' ? error.type : undefined, error, body.type];
    return candidates.find((value) => typeof value === 'string') ?? null;
}

function waitOf(body) {
    const nested = body.error !== null && typeof body.error === 'object' ? body.error : {};
    for (const holder of [body, nested]) {
        for (const name of ['retry_after', 'retry_after_seconds']) {
            const value = holder[name];
            if (typeof value === 'number' && value > 0) {
                return Math.min(Math.ceil(value * 1000), MAX_WAIT_MS);
            }
            const text = typeof value === 'string' ? parseSeconds(trimBlanks(value)) : null;
            if (text && text.ms > 0) {
                return Math.min(text.ms, MAX_WAIT_MS);
            }
        }
    }
    return null;
}
