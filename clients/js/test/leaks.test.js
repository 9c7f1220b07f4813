// After a call has ended, however it ended, nothing of it is left: no timer, listener or socket.

import assert from 'node:assert/strict';
import {getEventListeners} from 'node:events';
import {after, before, test} from 'node:test';

import {createClient} from '../src/index.js';
import {HostileServer, reply} from './hostile.js';

let server;
before(async () => {
    server = await HostileServer.start();
});
after(() => server.stop());

const count = (kind) => process.getActiveResourcesInfo().filter((name) => name === kind).length;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(condition, what) {
    for (let tries = 0; tries < 500; tries += 1) {
        if (condition()) {
            return;
        }
        await sleep(10);
    }
    assert.fail(what);
}

// Cancels once `ready`; says whether the caller's reason came out before a timer of `CUT_MS`. The timer is as late as the
// machine is.
const CUT_MS = 20;

async function cancelled(client, url, ready, init = {}) {
    const controller = new AbortController();
    const reason = {why: 'enough'};
    const call = client(url, {signal: controller.signal, ...init}).then(() => assert.fail('answered'), (error) => error);
    await ready();
    let late = false;
    const timer = setTimeout(() => {
        late = true;
    }, CUT_MS);
    controller.abort(reason);
    assert.equal(await call, reason, 'the caller\'s own reason');
    clearTimeout(timer);
    await until(() => getEventListeners(controller.signal, 'abort').length === 0, 'listeners are left');
    return !late;
}

test('cancelled in a wait', async () => {
    const {url, log} = await server.script([reply(429, {'Retry-After': '30'})]);
    const timers = count('Timeout');
    for (let round = 0; round < 10; round += 1) {
        let waiting;
        const waits = new Promise((resolve) => {
            waiting = resolve;
        });
        const client = createClient({hooks: {onWait: waiting}});
        assert.ok(await cancelled(client, url, () => waits), 'the wait is cut at once');
    }
    await until(() => count('Timeout') <= timers, 'a timer is left');
    assert.equal((await log()).length, 10);
});

test('cancelled at the gate', async () => {
    const {url, log} = await server.script([reply(429, {'Retry-After': '30'})]);
    const timers = count('Timeout');
    const client = createClient({hooks: {}});
    await client(url, {ration: {maxRetries: 0}});
    assert.ok(await cancelled(client, url, () => until(() => client.stats().gates[0].waiting === 1, 'it does not wait')),
        'the hold is cut at once');
    assert.equal(client.stats().gates[0].waiting, 0);
    await until(() => count('Timeout') <= timers, 'a timer is left');
    assert.equal((await log()).length, 1);
});

test('cancelled while it is answered', async () => {
    const {url, log} = await server.script([{end: 'stall'}]);
    const timers = count('Timeout');
    const sockets = count('TCPSocketWrap');
    const client = createClient();
    await cancelled(client, url, () => until(() => client.stats().gates[0]?.inFlight === 1, 'it is not sent'));
    assert.equal(client.stats().gates[0].inFlight, 0);
    await until(() => count('Timeout') <= timers, 'a timer is left');
    await until(() => count('TCPSocketWrap') <= sockets, 'a socket is left');
    assert.ok((await log()).length <= 1);
});

test('cancelled before it began', async () => {
    const {url, log} = await server.script([reply(200)]);
    const reason = new Error('never mind');
    await assert.rejects(createClient()(url, {signal: AbortSignal.abort(reason)}), reason);
    assert.equal((await log()).length, 0);
});

test('given a signal that is none', async () => {
    const {url, log} = await server.script([reply(200)]);
    const timers = count('Timeout');
    const client = createClient();
    for (const signal of [{}, 'stop', 1]) {
        await assert.rejects(client(url, {signal}), TypeError);
    }
    assert.equal(client.stats().gates[0].inFlight, 0);
    await until(() => count('Timeout') <= timers, 'a timer is left');
    assert.equal((await log()).length, 0);
});

test('an abort still cuts a body that is being read', async () => {
    const {url} = await server.script([{reply: 'HTTP/1.1 200 OK\nContent-Length: 100\n\nbegun', end: 'stall'}]);
    const controller = new AbortController();
    const answer = await createClient()(url, {signal: controller.signal});
    const text = answer.text();
    controller.abort(new Error('enough'));
    await assert.rejects(text, /enough/);
});

test('a thousand calls under one signal leave no listener on it', async () => {
    const {url} = await server.script([reply(200, {}, 'x')]);
    const controller = new AbortController();
    const client = createClient();
    for (let round = 0; round < 40; round += 1) {
        await Promise.all(Array.from({length: 25}, () =>
            client(url, {signal: controller.signal}).then((answer) => answer.text())));
    }
    const timers = count('Timeout');
    assert.ok(timers < 30, `${timers} timers`);
    await until(() => getEventListeners(controller.signal, 'abort').length === 0, 'listeners are left');
});

test('refused answers give their connection back', async () => {
    const refusal = reply(503, {'Content-Type': 'application/json'}, '{"error":"busy"}');
    const {url, log} = await server.script([refusal, refusal, refusal, reply(200)], {listener: 'other'});
    await (await createClient({backoffBaseMs: 20})(url)).text();
    const connections = new Set((await log()).map(({connection}) => connection));
    assert.equal(connections.size, 1);
});
