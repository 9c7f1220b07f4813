// What is to be sent, read from fetch's arguments: once per call, whatever the number of attempts.

import {readBody, streamBody} from './bodies.js';

export const NOTHING = Object.freeze({});
const NO_BODY = Object.freeze({kind: 'none', make: () => undefined, type: null});
const COPIED = ['cache', 'credentials', 'integrity', 'keepalive', 'mode', 'referrer', 'referrerPolicy', 'redirect'];
const SET_EACH_TIME = new Set(['method', 'headers', 'body', 'signal', 'redirect', 'ration']);
const PLACEHOLDER = /\\\{[^/]+\\\}/g;

// {url, method, headers, body, signal, redirect, extras, own}: `extras` is what goes to fetch unchanged, `own`
// the call's own settings (`init.ration`).
//
// Gives it at once where there is no body to read, else a promise of it.
export function readRequest(input, given, settings) {
    const init = given ?? NOTHING;
    const request = typeof Request === 'function' && input instanceof Request ? input : null;
    const fields = request ? {...fieldsOf(request), ...init} : init;
    const method = fields.method ?? 'GET';
    const url = new URL(request ? request.url : input, globalThis.location?.href);
    const result = {
        url, origin: url.origin, method, headers: fields.headers, body: NO_BODY, signal: fields.signal ?? null,
        redirect: fields.redirect, extras: extrasOf(fields), own: init.ration ?? NOTHING,
    };
    if (init.body === undefined && !request?.body) {
        return result;
    }
    const reading = init.body === undefined ? streamBody(request.body, settings.bufferBody) : readBody(init.body, settings);
    return reading.then((body) => {
        result.body = body;
        return result;
    });
}

// The fields that go to fetch unchanged; null in the usual case that there are none. Nothing is copied that is
// set anew for each attempt.
function extrasOf(fields) {
    let extras = null;
    for (const name in fields) {
        if (!SET_EACH_TIME.has(name)) {
            extras ??= {};
            extras[name] = fields[name];
        }
    }
    return extras;
}

function fieldsOf(request) {
    const fields = {method: request.method, headers: request.headers, signal: request.signal};
    for (const name of COPIED) {
        // What a page may not set again ("navigate") and what is unset stays as fetch has it.
        if (request[name] !== undefined && request[name] !== '' && request[name] !== 'navigate' &&
            request[name] !== 'about:client') {
            fields[name] = request[name];
        }
    }
    return fields;
}

// The value of a field in any of the forms that fetch takes, by a lower-case name; null when absent.
export function fieldValue(headers, name) {
    if (headers === undefined || headers === null) {
        return null;
    }
    if (typeof headers.get === 'function') {
        return headers.get(name);
    }
    const pairs = typeof headers[Symbol.iterator] === 'function' ? headers : Object.entries(headers);
    for (const [field, value] of pairs) {
        if (field.toLowerCase() === name) {
            return String(value);
        }
    }
    return null;
}

// A function that says whether a request ("POST", "/v1/bookings") is on the list of patterns;
// `{x}` in a pattern is one segment, `**` the rest.
export function routeMatcher(patterns) {
    const expressions = patterns.map((pattern) => {
        const text = pattern.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
        return new RegExp(`^${text.replace(PLACEHOLDER, '[^/]+').replaceAll('\\*\\*', '.*')}$`);
    });
    return (method, path) => expressions.some((expression) => expression.test(`${method} ${path}`));
}
