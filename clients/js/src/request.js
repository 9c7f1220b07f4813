// What is to be sent, read from fetch's arguments: once per call, whatever the number of attempts.

import {readBody, streamBody} from './bodies.js';

export const NOTHING = Object.freeze({});
export const PATH_BUCKET = ({operation}) => operation; // each method and path has a gate of its own
export const ORIGIN_BUCKET = () => '';
const NO_BODY = Object.freeze({kind: 'none', make: () => undefined, type: null});
const COPIED = ['cache', 'credentials', 'integrity', 'keepalive', 'mode', 'referrer', 'referrerPolicy', 'redirect'];
const SET_EACH_TIME = new Set(['method', 'headers', 'body', 'signal', 'redirect', 'ration']);
const BLANKS = '\t\n\r ';
const PLACEHOLDER = /\\\{[^/]+\\\}/g;

// A place that is asked: what the client needs of a URL, read once for all calls to it.
class Place {
    constructor(text) {
        const url = new URL(text, globalThis.location?.href);
        this.href = url.href;
        this.origin = url.origin;
        this.path = url.pathname;
        this.method = null;
        this.credential = null;
        this.keys = null;
    }

    // {operation, prefix, narrow} of a method and a credential. Those of the last ones are kept: a text that was
    // looked up before is found faster than one that is made anew.
    keysOf(method, credential) {
        if (this.method !== method || this.credential !== credential) {
            const operation = `${method} ${this.path}`;
            const prefix = `${this.origin}\n${credential}\n`;
            this.method = method;
            this.credential = credential;
            this.keys = {operation, prefix, narrow: prefix + operation};
        }
        return this.keys;
    }
}

// The places by their text, at most so many and none of a longer text; all are forgotten when there are more.
export const MAX_PLACES = 256;
export const MAX_PLACE_CHARACTERS = 2_048;

export class PlaceBook {
    constructor() {
        this.places = new Map();
    }

    // Where texts are relative to a page that may change, nothing is kept.
    find(text) {
        if (globalThis.location !== undefined || typeof text !== 'string' || text.length > MAX_PLACE_CHARACTERS) {
            return new Place(text);
        }
        let place = this.places.get(text);
        if (!place) {
            place = new Place(text);
            if (this.places.size >= MAX_PLACES) {
                this.places.clear();
            }
            this.places.set(text, place);
        }
        return place;
    }
}

// {place, url, method, headers, body, signal, redirect, extras}: `extras` is what goes to fetch unchanged.
class Asked {
    constructor(place, method, headers, fields) {
        this.place = place;
        this.method = method;
        this.headers = headers;
        this.body = NO_BODY;
        this.signal = fields.signal ?? null;
        this.redirect = fields.redirect;
        this.extras = extrasOf(fields);
    }

    get url() {
        return new URL(this.place.href);
    }
}

// The Asked of a plain call.
export function askedPlainly({place, method, headers, body}) {
    const result = new Asked(place, method, headers, NOTHING);
    if (body !== undefined) {
        result.body = {kind: 'buffered', make: () => body, type: null};
    }
    return result;
}

// Gives an Asked at once where there is no body to read, else a promise of it. What the caller may change afterwards is
// copied before this returns, as fetch itself does; `given` are init's headers, copied already.
export function readRequest(input, init, given, settings, places) {
    const request = typeof Request === 'function' && input instanceof Request ? input : null;
    const fields = request ? fieldsOf(request, init) : init;
    const headers = request && given === undefined ? copyHeaders(request.headers) : given;
    const place = places.find(request ? request.url : input);
    const result = new Asked(place, fields.method ?? 'GET', headers, fields);
    if (init.body === undefined && !request?.body) {
        return result;
    }
    if (init.body === undefined && request.bodyUsed) {
        throw new TypeError('the body of this Request was used before');
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

// Those of a Request, and init's over them.
function fieldsOf(request, init) {
    const fields = {method: request.method, signal: request.signal};
    for (const name of COPIED) {
        // What a page may not set again ("navigate") and what is unset stays as fetch has it.
        if (request[name] !== undefined && request[name] !== '' && request[name] !== 'navigate' &&
            request[name] !== 'about:client') {
            fields[name] = request[name];
        }
    }
    for (const name in init) {
        if (init[name] !== undefined) {
            fields[name] = init[name];
        }
    }
    return fields;
}

// Headers in the form that they were given in, which later changes of the given ones do not reach.
export function copyHeaders(headers) {
    if (typeof headers !== 'object' || headers === null) {
        return headers;
    }
    if (headers instanceof Headers) {
        return new Headers(headers);
    }
    if (typeof headers[Symbol.iterator] === 'function') {
        return Array.from(headers, (pair) => Array.from(pair, textOf));
    }
    const copy = {...headers};
    for (const name in copy) {
        copy[name] = textOf(copy[name]);
    }
    return copy;
}

function textOf(value) {
    return typeof value === 'object' && value !== null ? String(value) : value;
}

// The value of a field in any of the forms that fetch takes, by a lower-case name, as fetch sends it: without blanks
// around it, several as one. Null when absent.
export function fieldValue(headers, name) {
    if (headers === undefined || headers === null) {
        return null;
    }
    if (typeof headers.get === 'function') {
        return headers.get(name);
    }
    let found = null;
    if (typeof headers[Symbol.iterator] !== 'function') {
        for (const field of Object.keys(headers)) {
            if (field.length === name.length && field.toLowerCase() === name) {
                found = withValue(found, headers[field]);
            }
        }
        return found;
    }
    for (const [field, value] of headers) {
        if (String(field).toLowerCase() === name) {
            found = withValue(found, value);
        }
    }
    return found;
}

function withValue(before, value) {
    const text = withoutBlanks(String(value));
    return before === null ? text : `${before}, ${text}`;
}

function withoutBlanks(text) {
    let start = 0;
    let end = text.length;
    while (start < end && BLANKS.includes(text[start])) {
        start += 1;
    }
    while (end > start && BLANKS.includes(text[end - 1])) {
        end -= 1;
    }
    return text.slice(start, end);
}

export function standardCredential({headers}) {
    return fieldValue(headers, 'authorization') ?? fieldValue(headers, 'x-api-key') ?? '';
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
