// A fetch that behaves well against rate limits.
//
//   import {createClient} from 'ration-client';
//   const fetch = createClient();
//   const answer = await fetch('https://api.example/v1/quote');
//   fetch.info(answer); // {attempts, reason, retryAt, idempotencyKey, ...}
//
// All calls of one client share what answers told: make one client and keep it.

import {Call} from './call.js';
import {check, checkNames, isFunction, isListOf, isNumber, isToken, isWhole} from './checks.js';
import {SYSTEM_CLOCK} from './clock.js';
import {markOf} from './marks.js';
import {HOOKS, PlainCalls} from './plain.js';
import {DEFAULT_POLICY, makePolicy} from './policy.js';
import {
    NOTHING, ORIGIN_BUCKET, PATH_BUCKET, PlaceBook, copyHeaders, readRequest, routeMatcher, standardCredential,
} from './request.js';
import {MAX_GATES, Shared} from './shared.js';

export {RationError} from './errors.js';
export {DEFAULT_POLICY} from './policy.js';

const IN_BROWSER = typeof globalThis.document === 'object' ||
    (typeof globalThis.WorkerGlobalScope === 'function' && typeof globalThis.process === 'undefined');
const DEFAULT_BUFFER = 1024 * 1024;
// Of what all calls share, so that no call can have its own.
const SHARED_OPTIONS = ['gateGuardMs', 'budgetCapacity', 'budgetRetryCost', 'budgetSuccessDeposit', 'budgetFloorMs'];
const CALL_OPTIONS = new Set([...Object.keys(DEFAULT_POLICY), 'bucket', 'wholeAnswers']);
SHARED_OPTIONS.forEach((name) => CALL_OPTIONS.delete(name));
const CLIENT_OPTIONS = new Set([...CALL_OPTIONS, ...SHARED_OPTIONS, 'fetch', 'clock', 'random', 'newKey', 'hooks', 'credential', 'bufferBody',
    'bufferStreams', 'redirects', 'attemptHeader', 'secretHeaders', 'nested', 'maxGates', 'breaker', 'throttle',
    'concurrency', 'pace']);

export function createClient(options = {}) {
    const settings = makeSettings(options);
    const shared = new Shared(settings);
    const places = new PlaceBook();
    const plain = PlainCalls.suit(settings) ? new PlainCalls(shared, settings, places) : null;
    const client = (input, init) => { // not async: each layer of promises costs every call
        try {
            const headers = copyHeaders(init?.headers);
            const sent = plain === null ? null : plain.send(input, init, headers);
            if (sent !== null) {
                return sent;
            }
            const own = init?.ration ?? NOTHING;
            const policy = policyOf(settings, own);
            const ownSettings = settingsOf(settings, own);
            const run = (request) => new Call(shared, request, ownSettings, policy).run();
            const reading = readRequest(input, init ?? NOTHING, headers, settings, places);
            return reading instanceof Promise ? reading.then(run) : run(reading);
        } catch (error) {
            return Promise.reject(error);
        }
    };
    client.info = (result) => (Object(result) === result ? Object.freeze(markOf(result)) : undefined);
    client.stats = () => shared.stats();
    return client;
}

function makeSettings(options) {
    checkNames('settings', options, CLIENT_OPTIONS);
    const policy = makePolicy(options.nested ? {...options, maxRetries: 0} : options);
    const settings = {
        policy,
        nested: options.nested ?? false,
        fetch: options.fetch ?? null, // the platform's, as it is when a call is made
        clock: options.clock ?? SYSTEM_CLOCK,
        random: options.random ?? Math.random,
        newKey: options.newKey ?? (() => globalThis.crypto?.randomUUID?.() ?? uuidFrom(Math.random)),
        hooks: options.hooks ?? {},
        bucket: bucketOf(options.bucket ?? 'path'),
        credential: options.credential ?? standardCredential,
        makesKey: keyRule(policy.idempotency),
        bufferBody: options.bufferBody ?? DEFAULT_BUFFER,
        bufferStreams: options.bufferStreams ?? false,
        wholeAnswers: checkedWhole('wholeAnswers', options.wholeAnswers ?? 0),
        redirects: options.redirects ?? (IN_BROWSER ? 'platform' : 'client'),
        attemptHeader: options.attemptHeader === undefined ? (IN_BROWSER ? null : 'Retry-Attempt') : options.attemptHeader,
        secretHeaders: options.secretHeaders ?? ['X-Api-Key'],
        maxGates: options.maxGates ?? MAX_GATES,
        breaker: optional('breaker', options.breaker, ['windowMs', 'minOutcomes', 'failureRatio', 'openMs']),
        throttle: optional('throttle', options.throttle, ['k', 'windowMs']),
        concurrency: optional('concurrency', options.concurrency, ['initial', 'min', 'max', 'increasePerWindow',
            'decreaseFactor', 'decreaseAtMostEveryMs']),
        pace: optional('pace', options.pace, ['ratePerMin', 'burst']),
    };
    checkSettings(settings);
    return settings;
}

function checkSettings(settings) {
    for (const name of ['nested', 'bufferStreams']) {
        check(name, typeof settings[name] === 'boolean', 'true or false');
    }
    for (const name of ['random', 'newKey', 'credential']) {
        check(name, isFunction(settings[name]), 'a function');
    }
    check('fetch', settings.fetch === null || isFunction(settings.fetch), 'a function');
    for (const name of ['now', 'wall', 'setTimeout', 'clearTimeout']) {
        check('clock', isFunction(settings.clock[name]), `an object with a function ${name}`);
    }
    checkNames('hooks', settings.hooks, new Set(HOOKS));
    for (const name of HOOKS) {
        check(`hooks.${name}`, settings.hooks[name] === undefined || isFunction(settings.hooks[name]), 'a function');
    }
    checkedWhole('bufferBody', settings.bufferBody);
    check('maxGates', isWhole(settings.maxGates) && settings.maxGates >= 1, 'a whole number of at least 1');
    check('redirects', settings.redirects === 'client' || settings.redirects === 'platform', "'client' or 'platform'");
    check('attemptHeader', [null, ''].includes(settings.attemptHeader) || isToken(settings.attemptHeader),
        'the name of a field or null');
    check('secretHeaders', isListOf(settings.secretHeaders, isToken), 'an array of names of fields');
}

function checkedWhole(name, value) {
    check(name, isWhole(value), 'a whole number of at least 0');
    return value;
}

// One of the optional parts: null when it is off, else its numbers.
function optional(name, value, names) {
    if (value === undefined || value === null || value === false) {
        return null;
    }
    if (value === true && name !== 'pace') {
        return {};
    }
    checkNames(name, value, new Set(names));
    for (const [own, number] of Object.entries(value)) {
        check(`${name}.${own}`, number === undefined || isNumber(number), 'a number of at least 0');
    }
    return {...value};
}

function bucketOf(bucket) {
    if (bucket === 'path') {
        return PATH_BUCKET;
    }
    if (bucket === 'origin') {
        return ORIGIN_BUCKET;
    }
    check('bucket', isFunction(bucket), "'path', 'origin' or a function");
    return bucket;
}

function keyRule(idempotency) {
    if (idempotency === 'caller' || idempotency === 'auto') {
        return () => idempotency === 'auto';
    }
    if (Array.isArray(idempotency)) {
        const matches = routeMatcher(idempotency);
        return (method, url) => matches(method, url.pathname);
    }
    return idempotency;
}

function policyOf(settings, own) {
    if (own === NOTHING) {
        return settings.policy;
    }
    checkNames('ration', own, CALL_OPTIONS);
    if (Object.keys(own).length === 0) {
        return settings.policy;
    }
    return makePolicy(settings.nested ? {...own, maxRetries: 0} : own, settings.policy);
}

function settingsOf(settings, own) {
    if (own === NOTHING) {
        return settings;
    }
    const changed = {};
    if (own.bucket !== undefined) {
        changed.bucket = bucketOf(own.bucket);
    }
    if (own.idempotency !== undefined) {
        changed.makesKey = keyRule(own.idempotency);
    }
    if (own.wholeAnswers !== undefined) {
        changed.wholeAnswers = checkedWhole('wholeAnswers', own.wholeAnswers);
    }
    return Object.keys(changed).length === 0 ? settings : {...settings, ...changed};
}

// RFC 9562 version 4, where crypto.randomUUID is missing (pages that are not served over TLS).
function uuidFrom(random) {
    const bytes = new Uint8Array(16);
    if (globalThis.crypto?.getRandomValues) {
        globalThis.crypto.getRandomValues(bytes);
    } else {
        bytes.forEach((_, index) => {
            bytes[index] = Math.floor(random() * 256);
        });
    }
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
    return [8, 12, 16, 20].reduceRight((text, at) => `${text.slice(0, at)}-${text.slice(at)}`, hex);
}
