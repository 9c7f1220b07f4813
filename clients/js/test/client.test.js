// The client on a virtual clock: what is shared, what is optional, what can be watched.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {createClient, RationError} from '../src/index.js';
import {toResponse, transportError, VirtualClock} from './virtual.js';

const URL_A = 'https://api.example/a';

function world(reply, options = {}) {
    const clock = new VirtualClock(1_795_996_800_000);
    const sends = [];
    const fetch = async (url, init) => {
        sends.push({at: clock.time, url, init});
        const answer = await reply(sends.length, clock, url);
        if (answer instanceof Error) {
            throw answer;
        }
        return toResponse(answer);
    };
    const client = createClient({clock, fetch, random: () => 0.5, ...options});
    const go = (...calls) => clock.drive(Promise.all(calls.map((call) => call.then((answer) => answer, (error) => error))));
    return {client, clock, sends, go};
}

test('a call may have a policy of its own', async () => {
    const {client, sends, go} = world(() => ({status: 503}));
    const [answer] = await go(client(URL_A, {ration: {maxRetries: 1}}));
    assert.deepEqual([answer.status, sends.length], [503, 2]);
    assert.equal('ration' in sends[0].init, false);
    const [misspelt] = await go(client(URL_A, {ration: {maxRetrys: 1}}));
    assert.deepEqual([misspelt.name, sends.length], ['TypeError', 2]);
});

test('inside another retrying client a call\'s own policy makes no retries either', async () => {
    const {client, sends, go} = world(() => ({status: 503}), {nested: true});
    await go(client(URL_A, {ration: {maxRetries: 3}}));
    assert.equal(sends.length, 1);
});

test('one bucket for an origin, one for a path, one of the caller\'s choice', async () => {
    const refusal = () => ({status: 429, headers: {'Retry-After': '3600'}});
    for (const [bucket, sent] of [['path', 2], ['origin', 1], [({url}) => url.pathname.slice(0, 2), 1]]) {
        const {client, sends, go} = world(refusal, {bucket});
        await go(client('https://api.example/a'));
        await go(client('https://api.example/ab'));
        assert.equal(sends.length, sent, String(bucket));
    }
});

test('keys are made for listed routes only', async () => {
    const {client, sends, go} = world(() => ({status: 201}), {idempotency: ['POST /v1/bookings', 'POST /v1/x/{id}/y'], newKey: () => 'made'});
    for (const path of ['/v1/bookings', '/v1/bookings/7', '/v1/x/7/y', '/v1/x/7/8/y']) {
        await go(client(`https://api.example${path}`, {method: 'POST', body: 'x'}));
    }
    assert.deepEqual(sends.map(({init}) => new Headers(init.headers).get('idempotency-key')), ['made', null, 'made', null]);
});

test('the key is told with every error', async () => {
    const {client, go} = world(() => transportError('connection_lost'), {idempotency: 'auto', newKey: () => 'made', maxRetries: 1});
    const [error] = await go(client(URL_A, {method: 'POST', body: 'x'}));
    assert.deepEqual(client.info(error).idempotencyKey, 'made');
    assert.equal(error.message, 'fetch failed');
});

test('counters and hooks; no secret is in them', async () => {
    const events = [];
    const hooks = Object.fromEntries(['onSend', 'onAnswer', 'onWait', 'onDone'].map((name) => [name, (event) => events.push([name, event])]));
    const {client, go} = world((n) => (n === 1 ? {status: 429, headers: {'Retry-After': '2'}} : {status: 200}), {hooks});
    await go(client(URL_A, {headers: {'Authorization': 'Bearer s3cret', 'Idempotency-Key': 's3cret'}}));
    const stats = client.stats();
    assert.deepEqual([stats.calls, stats.sends, stats.retries], [1, 2, {429: 1}]);
    assert.equal(stats.waitMs.retry_after, 2250);
    assert.equal(stats.budgets['https://api.example'], 49.2);
    assert.deepEqual(events.map(([name]) => name), ['onSend', 'onAnswer', 'onWait', 'onSend', 'onAnswer', 'onDone']);
    assert.ok(!JSON.stringify([stats, events.filter(([name]) => name !== 'onAnswer')]).includes('s3cret'));
});

test('a hook that throws changes nothing', async () => {
    const hooks = {onSend: () => {
        throw new Error('hook');
    }};
    const {client, go} = world(() => ({status: 200}), {hooks});
    assert.equal((await go(client(URL_A)))[0].status, 200);
});

test('the breaker refuses locally and probes later', async () => {
    let up = false;
    const {client, clock, sends, go} = world(() => (up ? {status: 200} : transportError('connection_lost')), {breaker: true, maxRetries: 0});
    for (let n = 0; n < 10; n += 1) {
        await go(client(URL_A));
    }
    const [refused] = await go(client(URL_A));
    assert.ok(refused instanceof RationError);
    assert.deepEqual([refused.reason, sends.length, client.stats().localRefusals], ['breaker_open', 10, {breaker_open: 1}]);
    up = true;
    await clock.drive(clock.sleep(5001));
    assert.equal((await go(client(URL_A)))[0].status, 200);
});

test('a server that accepts too little is spared', async () => {
    const {client, sends, go} = world(() => ({status: 503}), {throttle: {k: 2}, maxRetries: 0});
    for (let n = 0; n < 20; n += 1) {
        await go(client(URL_A));
    }
    assert.ok(sends.length < 5, `${sends.length} sends`);
});

test('refusals for the caller\'s own rate are no ill health', async () => {
    const {client, sends, go} = world(() => ({status: 429}), {throttle: true, maxRetries: 0});
    for (let n = 0; n < 20; n += 1) {
        await go(client(URL_A));
    }
    assert.equal(sends.length, 20);
});

test('the in-flight limit holds and moves', async () => {
    let inFlight = 0;
    let most = 0;
    const {client, go} = world(async (n, clock) => {
        inFlight += 1;
        most = Math.max(most, inFlight);
        await clock.sleep(10);
        inFlight -= 1;
        return {status: 200};
    }, {concurrency: {initial: 2}});
    await go(...Array.from({length: 30}, () => client(URL_A)));
    assert.ok(most > 2 && most < 10, `${most} in flight`);
});

test('the load shaper spaces sends evenly', async () => {
    const {client, sends, go} = world(() => ({status: 200}), {pace: {ratePerMin: 600, burst: 2}});
    await go(...Array.from({length: 5}, () => client(URL_A)));
    assert.deepEqual(sends.map(({at}) => at), [0, 0, 100, 200, 300]);
});

test('no more gates than the bound', async () => {
    const {client, go} = world(() => ({status: 200}), {maxGates: 10});
    for (let n = 0; n < 25; n += 1) {
        await go(client(`https://api.example/${n}`));
    }
    assert.equal(client.stats().gates.length, 10);
    assert.equal(client.stats().gates[9].bucket, 'GET /24');
});

test('a redirect elsewhere teaches nothing about this origin', async () => {
    const {client, go} = world((n, clock, url) => (url === URL_A ? {status: 307, headers: {Location: 'https://other.example/'}}
        : {status: 200, headers: {'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '3600'}}));
    await go(client(URL_A));
    assert.equal(client.stats().gates[0].state, 'open');
});

test('a POST becomes a GET only when asked for', async () => {
    const reply = (n) => (n === 1 ? {status: 303, headers: {Location: '/b'}} : {status: 200});
    const plain = world(reply);
    assert.equal((await plain.go(plain.client(URL_A, {method: 'POST', body: 'x'})))[0].status, 303);
    const asked = world(reply, {redirectToGet: true});
    await asked.go(asked.client(URL_A, {method: 'POST', body: 'x', headers: {'Content-Type': 'text/x'}}));
    const {init} = asked.sends[1];
    assert.deepEqual([init.method, init.body, new Headers(init.headers).has('content-type')], ['GET', undefined, false]);
});

test('a hook that rejects later changes nothing', async () => {
    const failing = async () => {
        throw new Error('a hook');
    };
    const hooks = {onSend: failing, onAnswer: failing, onWait: failing, onDone: failing};
    const client = createClient({fetch: async () => new Response('good'), hooks});
    assert.equal(await (await client('https://api.example/a')).text(), 'good');
    await new Promise((resolve) => setImmediate(resolve)); // an unhandled rejection would end the test
});

test('a fetch of the caller that gives no answer ends the call', async () => {
    for (const given of [undefined, null, 'text', {}, {status: 200}, {status: 503}]) {
        const client = createClient({fetch: async () => given, maxRetries: 1, backoffBaseMs: 1});
        await assert.rejects(client('https://api.example/a'), undefined, JSON.stringify(given));
        assert.deepEqual(client.stats().gates.map(({inFlight}) => inFlight), [0]);
    }
});

test('a fetch of the caller may answer at once', async () => {
    const client = createClient({fetch: () => new Response('good')});
    assert.equal(await (await client('https://api.example/a')).text(), 'good');
});
