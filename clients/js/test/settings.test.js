// What settings may be: what cannot be meant is told at once, by name, and all that the manual shows is taken.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {makePolicy} from '../src/core.js';
import {createClient, DEFAULT_POLICY} from '../src/index.js';
import {VirtualClock} from './virtual.js';

const NO_NUMBERS = [-1, NaN, -Infinity, '1', true, null, [], {}, () => 1];
const NO_FLAGS = ['no', 0, 1, [], {}];
const NO_FUNCTIONS = ['x', 1, true, {}, []];
const NO_TEXTS = ['x', 7, true, null, {}, new Set(['x']), [7], [null], ['x', undefined], [['x']], new Array(1)];
const NO_NAMES = ['X-Secret', 7, {}, new Set(['X-Secret']), [7], [''], ['a b'], ['X-Secret:'], ['X-Api-Key', null], ['ü']];
const NO_PARTS = ['x', '', 0, 1, [], [1], () => 1];
const POLICY_NUMBERS = Object.keys(DEFAULT_POLICY).filter((name) => typeof DEFAULT_POLICY[name] === 'number');

// Of the policy, and so of one call too.
const BAD_FIELDS = {
    ...Object.fromEntries(POLICY_NUMBERS.map((name) => [name, NO_NUMBERS])),
    maxRetries: [...NO_NUMBERS, 1.5],
    maxRedirects: [...NO_NUMBERS, 1.5],
    backoffFactor: [...NO_NUMBERS, 0, 0.5],
    retryStatuses: [429, '503', ['503'], [200], [399], [600], [0], [503.5], [NaN], [Infinity], [429, null], [true], {}, new Set([503])],
    retryTypes: NO_TEXTS,
    neverRetryTypes: NO_TEXTS,
    narrowTypes: NO_TEXTS,
    safeMethods: [...NO_TEXTS, [''], ['GET /x']],
    retryErrorKinds: [...NO_TEXTS, ['connection_lots'], ['cancelled'], ['dns_failed', 'ECONNRESET']],
    nothingSentKinds: [...NO_TEXTS, ['connect_fialed']],
    idempotency: ['x', '', 'POST /v1/x', true, null, 1, {}, ['POST'], ['/v1/x'], ['POST v1/x'], ['post /v1/x'], ['POST  /v1/x'],
        ['POST /v1/x '], ['POST /v1/x?y=1'], ['POST /a', 7], ['']],
    idempotencyHeader: ['a b', '', 7, null, ['X'], 'X:'],
    redirectToGet: [...NO_FLAGS, null],
};
const OF_ALL_CALLS = ['gateGuardMs', 'budgetCapacity', 'budgetRetryCost', 'budgetSuccessDeposit', 'budgetFloorMs'];
const BAD_OF_CALLS = {
    ...BAD_FIELDS,
    ...Object.fromEntries(OF_ALL_CALLS.map((name) => [name, [1]])),
    bucket: ['x', '', 7, true, {}, ['path']],
    wholeAnswers: [-1, true, 'x', '1', 1.5, NaN, [], {}],
};
const BAD_SETTINGS = {
    ...BAD_OF_CALLS,
    ...Object.fromEntries(OF_ALL_CALLS.map((name) => [name, BAD_FIELDS[name]])),
    secretHeaders: NO_NAMES,
    attemptHeader: ['a b', 7, true, ['X'], {}, 'X:', 'ü'],
    hooks: ['x', 1, true, [], () => 1, {onWiat: 1}, {onWiat() {}}, {onWait: 1}, {onWait: 'x'}, {onWait: true}, {on_wait() {}}],
    bufferBody: [-1, true, 'x', 1.5, NaN],
    maxGates: [0, -1, true, 'x', 1.5, NaN],
    bufferStreams: NO_FLAGS,
    nested: NO_FLAGS,
    redirects: ['x', '', true, 7],
    fetch: NO_FUNCTIONS,
    random: NO_FUNCTIONS,
    newKey: NO_FUNCTIONS,
    credential: NO_FUNCTIONS,
    clock: ['x', 1, {}, {now: () => 0}, {...new VirtualClock(0), now: 1}],
    breaker: [...NO_PARTS, {opensMs: 1}, {windowMs: 0}, {minOutcomes: 0}, {minOutcomes: '9'}, {failureRatio: 0}, {failureRatio: 50},
        {openMs: -1}, {openMs: null}, {windowMs: true}],
    throttle: [...NO_PARTS, {window: 1}, {k: 0}, {k: 0.5}, {k: '2'}, {k: NaN}, {windowMs: 0}],
    concurrency: [...NO_PARTS, {min: 0}, {initial: 200}, {decreaseFactor: 1}, {initial: '10'}, {increasePerWindow: -1},
        {decreaseAtMostEveryMs: 'x'}, {most: 1}],
    pace: [...NO_PARTS, true, {}, {burst: 1}, {ratePerMin: 0}, {ratePerMin: '60'}, {ratePerMin: 60, burst: 0}, {ratePerMin: 60, burst: '2'},
        {ratePerMin: 1, bursts: 2}],
};

const GOOD_FIELDS = {
    ...Object.fromEntries(POLICY_NUMBERS.map((name) => [name, [1, 3, Infinity, undefined]])),
    backoffFactor: [1, 1.5, 2],
    budgetSuccessDeposit: [0, 0.2],
    maxRetries: [0, 5],
    retryStatuses: [[], [429, 503], [400, 502, 599], DEFAULT_POLICY.retryStatuses],
    retryTypes: [[], ['still_running']],
    neverRetryTypes: [[], ['x', 'y']],
    narrowTypes: [[], ['x']],
    safeMethods: [[], ['get', 'QUERY']],
    retryErrorKinds: [[], ['connection_lost']],
    nothingSentKinds: [[], ['dns_failed']],
    idempotency: ['caller', 'auto', [], ['POST /v1/bookings', 'PATCH /v1/x/{id}', 'POST /v1/**', 'POST /{name}', 'POST **'], () => true],
    idempotencyHeader: ['Idempotency-Key', 'X-Key'],
    redirectToGet: [true, false],
    bucket: ['path', 'origin', () => 'x'],
    wholeAnswers: [0, 65536, Infinity],
};
const GOOD_SETTINGS = {
    ...GOOD_FIELDS,
    secretHeaders: [[], ['X-Api-Key', 'x_secret'], Object.freeze(['X-Secret'])],
    attemptHeader: [null, '', 'Attempt'],
    hooks: [{}, {onSend() {}, onAnswer() {}, onWait() {}, onDone() {}}, {onWait: undefined}],
    bufferBody: [0, 1024, Infinity],
    maxGates: [1, 100],
    bufferStreams: [true, false],
    nested: [true, false],
    redirects: ['client', 'platform'],
    fetch: [globalThis.fetch],
    random: [Math.random],
    newKey: [() => 'k'],
    credential: [() => 'me'],
    clock: [new VirtualClock(0)],
    breaker: [true, false, {}, {windowMs: 1000, minOutcomes: 1, failureRatio: 1, openMs: 0}, {openMs: undefined}],
    throttle: [true, false, {}, {k: 1}, {k: 1.5, windowMs: 1000}],
    concurrency: [true, false, {}, {initial: 1, min: 1, max: 1, increasePerWindow: 1, decreaseFactor: 0, decreaseAtMostEveryMs: 0}],
    pace: [null, {ratePerMin: 60}, {ratePerMin: 0.5, burst: 10}],
};

function names(setting) {
    return (error) => error instanceof TypeError && new RegExp(`\\b${setting}\\b`).test(error.message);
}

function* each(table) {
    for (const [name, values] of Object.entries(table)) {
        for (const value of values) {
            yield [name, value];
        }
    }
}

test('a client is not made with a setting that cannot be meant', () => {
    for (const [name, value] of each(BAD_SETTINGS)) {
        assert.throws(() => createClient({[name]: value}), names(name), `${name}: ${JSON.stringify(value)} ${typeof value}`);
    }
    assert.throws(() => createClient({maxRetrys: 1}), names('maxRetrys'));
    assert.throws(() => createClient({hooks: {onWiat() {}}}), names('onWiat'));
    for (const value of ['x', 5, null, []]) {
        assert.throws(() => createClient(value), names('settings'));
    }
    assert.equal(Object.isFrozen(DEFAULT_POLICY), true);
});

test('nor is a policy, nor is a call sent', async () => {
    for (const [name, value] of each(BAD_FIELDS)) {
        assert.throws(() => makePolicy({[name]: value}), names(name), `${name}: ${JSON.stringify(value)}`);
    }
    const client = createClient({fetch: () => assert.fail('sent')});
    for (const [name, value] of each(BAD_OF_CALLS)) {
        await assert.rejects(client('https://api.example/a', {ration: {[name]: value}}), names(name), `${name}: ${JSON.stringify(value)}`);
    }
    for (const value of ['x', 5, true, []]) {
        await assert.rejects(client('https://api.example/a', {ration: value}), names('ration'));
    }
});

test('what the manual shows is taken, and each setting is in these tables', async () => {
    const policies = Object.keys(DEFAULT_POLICY);
    for (const [name, value] of each(GOOD_SETTINGS)) {
        assert.doesNotThrow(() => createClient({[name]: value}), `${name}: ${JSON.stringify(value)}`);
    }
    for (const [name, value] of each(GOOD_FIELDS)) {
        if (OF_ALL_CALLS.includes(name)) {
            continue;
        }
        const client = createClient({fetch: async () => new Response('x')});
        assert.equal((await client('https://api.example/a', {ration: {[name]: value}})).status, 200, name);
    }
    assert.deepEqual(Object.keys(GOOD_SETTINGS).sort(), Object.keys(BAD_SETTINGS).sort());
    assert.deepEqual(policies.filter((name) => !(name in BAD_FIELDS)), []);
});

test('what a call leaves undefined is as the client has it', async () => {
    const sends = [];
    const refused = JSON.stringify({error: {type: 'never_mine', message: ''}});
    const fetch = async (url, init) => {
        sends.push(new Headers(init.headers).get('x-idem'));
        return new Response(refused, {status: 503, headers: {'Content-Type': 'application/json'}});
    };
    for (const [name, value] of [['maxRetries', 0], ['neverRetryTypes', ['never_mine']], ['retryStatuses', []],
        ['backoffBaseMs', 0]]) {
        const client = createClient({fetch, backoffBaseMs: 0, maxRetries: 1, [name]: value});
        sends.length = 0;
        const answer = await client('https://api.example/a', {ration: {[name]: undefined, bucket: undefined}});
        assert.equal(client.info(answer).attempts, name === 'backoffBaseMs' ? 2 : 1, name);
    }
    const client = createClient({fetch, idempotencyHeader: 'X-Idem', idempotency: 'auto', maxRetries: 0, newKey: () => 'k'});
    sends.length = 0;
    await client('https://api.example/a', {method: 'POST', ration: {idempotencyHeader: undefined, idempotency: undefined}});
    assert.deepEqual(sends, ['k']);
});

test('a message shows no value, which may be a secret in the wrong place', () => {
    for (const name of ['credential', 'secretHeaders', 'attemptHeader', 'newKey', 'bucket', 'idempotency']) {
        assert.throws(() => createClient({[name]: 'Bearer s3cret'}), (error) => !error.message.includes('s3cret'));
    }
});

test('a list that is changed later changes nothing', () => {
    const statuses = [503];
    const policy = makePolicy({retryStatuses: statuses});
    statuses.push('x');
    assert.deepEqual(policy.retryStatuses, [503]);
});
