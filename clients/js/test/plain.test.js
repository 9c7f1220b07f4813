// The usual call goes without a signal and by a way of its own: it must come to the same as any other.

import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {createClient} from '../src/index.js';
import {Transfer, dispatcherFor} from '../src/transfer.js';
import {HostileServer, reply} from './hostile.js';

const OK = reply(200, {}, 'good');
const PLATFORM = globalThis.fetch;
let server;

before(async () => {
    server = await HostileServer.start();
    await (await createClient()((await server.script([OK])).url)).text();
    await (await createClient()((await server.script([OK])).url)).text();
});
after(() => server.stop());

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Sends through a fetch that is watched: {inits} has what it was given.
async function watched(work) {
    const inits = [];
    const {url, log} = await server.script(work.script);
    const asks = (input, init) => {
        inits.push(init);
        return PLATFORM(input, init);
    };
    globalThis.fetch = asks;
    try {
        await (await createClient()((await server.script([OK])).url)).text(); // shows that this fetch asks its dispatcher
        inits.length = 0;
        return {...await work.run(url), inits, sends: await log()};
    } finally {
        globalThis.fetch = PLATFORM;
    }
}

async function told(client, url, init) {
    const result = await client(url, init).catch((error) => error);
    const body = result instanceof Response ? await result.text() : null;
    const [gate] = client.stats().gates;
    return {
        info: {...client.info(result), retryAt: null, waitedMs: 0}, body, name: result.name ?? null, counters: client.stats().sends,
        gate: [gate.state, gate.inFlight, gate.remaining], budget: Object.values(client.stats().budgets),
    };
}

const SCRIPTS = {
    'a good answer': [OK],
    'no content': [reply(204)],
    'not modified': [reply(304)],
    'limits that close nothing': [reply(200, {'X-RateLimit-Remaining': '7', 'X-RateLimit-Reset': '30'}, 'x')],
    'a limit that is used up': [reply(200, {'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '30'}, 'x')],
    'a refusal, then a good answer': [reply(503), OK],
    'a refusal for long': [reply(429, {'Retry-After': '3600', 'Content-Type': 'application/json'}, '{"error":"rate_limited"}')],
    'a failure': [reply(500, {}, 'oh')],
    'a redirect': [reply(307, {Location: '/elsewhere'}), OK],
    'a lost connection, then a good answer': [{end: 'reset'}, OK],
    'a stalled answer': [{end: 'stall'}, {end: 'stall'}],
};

for (const [name, script] of Object.entries(SCRIPTS)) {
    for (const init of [undefined, {headers: {'Authorization': 'Bearer t'}}, {method: 'POST', headers: [['X-Note', 'n']], body: 'text'}]) {
        test(`${name}: ${init?.method ?? 'GET'}${init?.headers ? ' with fields' : ''}, the same by both ways`, async () => {
            const options = {backoffBaseMs: 5, attemptTimeoutMs: 400, maxRetries: 1};
            const plain = await watched({script, run: (url) => told(createClient(options), url, init)});
            const {url, log} = await server.script(script);
            const other = await told(createClient({...options, fetch: (input, given) => PLATFORM(input, given)}), url, init);
            assert.equal(plain.inits[0].signal, undefined, 'it went without a signal');
            const {inits, sends, ...result} = plain;
            assert.deepEqual(result, other);
            const seen = (entries) => entries.map(({method, body}) => [method, body]);
            assert.deepEqual(seen(sends), seen(await log()));
        });
    }
}

test('what is unusual goes the other way', async () => {
    for (const [options, init] of [[{}, {signal: new AbortController().signal}], [{}, {dispatcher: globalThis[Symbol.for('undici.globalDispatcher.1')]}]]) {
        const {inits} = await watched({script: [OK], run: (url) => told(createClient(options), url, init)});
        assert.ok(inits[0].signal instanceof AbortSignal);
    }
    const events = [];
    class Hooks {
        onDone({reason}) {
            events.push(reason);
        }
    }
    await watched({script: [OK], run: (url) => told(createClient({hooks: new Hooks()}), url)});
    assert.deepEqual(events, ['success']);
});

test('a stalled call gives up its connection at its time, and nothing is left', async () => {
    const {url} = await server.script([{end: 'stall'}]);
    const sockets = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
    const before = sockets();
    const client = createClient({attemptTimeoutMs: 200, maxRetries: 0});
    const begun = performance.now();
    const error = await client(url).catch((thrown) => thrown);
    assert.equal(error.name, 'TimeoutError');
    assert.ok(performance.now() - begun >= 199);
    for (let tries = 0; sockets() > before && tries < 500; tries += 1) {
        await sleep(10);
    }
    assert.ok(sockets() <= before);
    assert.equal(client.stats().gates[0].inFlight, 0);
});

test('a body may be read for longer than an attempt may take', async () => {
    const {url} = await server.script([{reply: 'HTTP/1.1 200 OK\nContent-Length: 10\n\n0123456789', drip_ms: 60}]);
    const answer = await createClient({attemptTimeoutMs: 5000})(url);
    assert.equal(await answer.text(), '0123456789');
});

test('a fetch that stops asking its dispatcher is still given up at its time', async () => {
    let answer;
    let asks = true;
    globalThis.fetch = (input, init) => (asks ? PLATFORM(input, init) : new Promise((resolve) => {
        answer = resolve;
    }));
    try {
        const client = createClient({attemptTimeoutMs: 100, maxRetries: 0});
        const {url} = await server.script([OK, OK]);
        await (await client(url)).text();
        asks = false;
        const error = await client(url).catch((thrown) => thrown);
        assert.equal(error.name, 'TimeoutError');
        let ended = false;
        answer(new Response(new ReadableStream({cancel: () => {
            ended = true;
        }})));
        await sleep(0);
        assert.ok(ended, 'what comes too late is not left open');
        globalThis.fetch = () => {
            throw new TypeError('never');
        };
        await assert.rejects(createClient()(url), /never/);
    } finally {
        globalThis.fetch = PLATFORM;
    }
});

test('a fetch that was never seen to ask gets a signal', async () => {
    globalThis.fetch = async (input, init) => {
        assert.ok(init.signal instanceof AbortSignal);
        return new Response('x');
    };
    try {
        const client = createClient();
        for (let n = 0; n < 3; n += 1) {
            assert.equal(await (await client('http://api.example/')).text(), 'x');
        }
        assert.equal(dispatcherFor(globalThis.fetch), undefined);
    } finally {
        globalThis.fetch = PLATFORM;
    }
});

test('a request is ended by its handle, also one that has no connection yet', () => {
    for (const step of ['onConnect', 'onRequestStart']) {
        const seen = [];
        const handle = step === 'onConnect' ? (reason) => seen.push(reason) : {abort: (reason) => seen.push(reason)};
        const begun = [];
        const run = (cutFirst) => {
            let connect;
            const transfer = new Transfer(null, {isMockActive: 'as told', dispatch: (options, handler) => {
                connect = () => handler[step](handle, 'context');
                return options;
            }});
            assert.equal(transfer.isMockActive, 'as told');
            assert.equal(transfer.dispatch('options', {[step](...given) {
                begun.push([this !== undefined, ...given]);
            }}), 'options');
            const order = [connect, () => transfer.cut('enough')];
            (cutFirst ? order.reverse() : order).forEach((each) => each());
        };
        run(false);
        assert.deepEqual([seen, begun], [['enough'], [[true, handle, 'context']]]);
        run(true);
        assert.deepEqual([seen.length, begun.length], [2, 1], 'it never begins');
    }
});
