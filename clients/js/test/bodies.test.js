// What fetch takes, this takes; and every attempt carries the same bytes.

import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import vm from 'node:vm';

import {createClient} from '../src/index.js';
import {HostileServer, reply} from './hostile.js';

let server;
before(async () => {
    server = await HostileServer.start();
});
after(() => server.stop());

const field = (entry, name) => entry.headers.find(([field]) => field.toLowerCase() === name)?.[1];
const BUSY = reply(503);
const OK = reply(200, {}, 'good');

// Sends through one refusal; gives the two requests.
async function twice(init, {input = (url) => url, ...options} = {}) {
    const {url, log} = await server.script([BUSY, OK]);
    const client = createClient({backoffBaseMs: 5, ...options});
    const answer = await client(input(url), init);
    return {sends: await log(), status: answer.status, info: client.info(answer)};
}

function streamOf(...chunks) {
    return new ReadableStream({
        start(controller) {
            chunks.forEach((chunk) => controller.enqueue(new TextEncoder().encode(chunk)));
            controller.close();
        },
    });
}

const BODIES = {
    'text': ['plain text', 'plain text'],
    'an ArrayBuffer': [new TextEncoder().encode('bytes').buffer, 'bytes'],
    'a view': [new Uint8Array(new TextEncoder().encode('[view]').buffer, 1, 4), 'view'],
    'a Blob': [new Blob(['blob'], {type: 'text/x'}), 'blob'],
    'URLSearchParams': [new URLSearchParams({a: '1 2'}), 'a=1+2'],
    'a function': [() => streamOf('made ', 'anew'), 'made anew'],
};

for (const [name, [body, text]] of Object.entries(BODIES)) {
    test(`${name} is sent twice`, async () => {
        const {sends, status} = await twice({method: 'PUT', body});
        assert.equal(status, 200);
        assert.deepEqual(sends.map((entry) => entry.body), [text, text]);
        assert.equal(field(sends[0], 'content-type'), field(sends[1], 'content-type'));
    });
}

test('a body that was used is no body: nothing is sent, as fetch has it', async () => {
    const {url, log} = await server.script([OK]);
    const client = createClient({bufferStreams: true});
    const request = new Request(url, {method: 'PUT', body: 'x'});
    await (await client(request)).text();
    await assert.rejects(client(request), TypeError);
    const read = new Request(url, {method: 'PUT', body: 'x'});
    await read.text();
    await assert.rejects(client(read), TypeError);
    const begun = streamOf('a', 'b');
    const reader = begun.getReader();
    await reader.read();
    await assert.rejects(client(url, {method: 'PUT', body: begun, duplex: 'half'}), TypeError); // it is locked
    reader.releaseLock();
    await assert.rejects(client(url, {method: 'PUT', body: begun, duplex: 'half'}), TypeError); // its beginning is gone
    assert.equal((await log()).length, 1);
});

// fetch reads them when it is called, and so does this: what changes afterwards is not sent, nor another thing each time.
const CHANGEABLE = {
    'an ArrayBuffer': () => {
        const body = new TextEncoder().encode('ABC').buffer;
        return {body, change: () => new Uint8Array(body).fill(88), text: 'ABC'};
    },
    'an ArrayBuffer of another realm': () => {
        const body = vm.runInNewContext('new Uint8Array([65, 66, 67]).buffer');
        return {body, change: () => new Uint8Array(body).fill(88), text: 'ABC'};
    },
    'a view of another realm': () => {
        const body = vm.runInNewContext('new Uint8Array([65, 66, 67])');
        return {body, change: () => body.fill(88), text: 'ABC'};
    },
    'URLSearchParams': () => {
        const body = new URLSearchParams({a: '1'});
        return {body, change: () => body.set('a', '2'), text: 'a=1'};
    },
    'a form': () => {
        const body = new FormData();
        body.set('a', 'one');
        return {body, change: () => body.set('a', 'two'), has: 'one'};
    },
    'a large form': () => {
        const body = new FormData();
        body.set('a', 'one');
        return {body, change: () => body.set('a', 'two'), has: 'one', options: {bufferBody: 0}, attempts: 1};
    },
    'an array': () => {
        const body = [1, 2, 3];
        return {body, change: () => body.fill(9), text: '1,2,3'};
    },
    'an object': () => {
        let asked = 0;
        const body = {toString: () => `v${asked += 1}`};
        return {body, change: () => {}, text: 'v1'};
    },
    'a number': () => ({body: 5, change: () => {}, text: '5'}),
};

for (const [name, make] of Object.entries(CHANGEABLE)) {
    test(`${name} is read when the call is made`, async () => {
        const {body, change, text, has, options, attempts = 2} = make();
        const {url, log} = await server.script([BUSY, OK]);
        const client = createClient({backoffBaseMs: 5, ...options, hooks: {onAnswer: change}});
        const sending = client(url, {method: 'PUT', body});
        change();
        assert.equal(client.info(await sending).attempts, attempts);
        for (const send of await log()) {
            has ? assert.ok(send.body.includes(has)) : assert.equal(send.body, text);
        }
    });
}

test('a form has one boundary on both sends', async () => {
    const form = new FormData();
    form.set('name', 'value');
    form.set('file', new Blob(['content']), 'a.txt');
    const {sends} = await twice({method: 'PUT', body: form});
    assert.equal(sends.length, 2);
    assert.equal(sends[0].body, sends[1].body);
    assert.match(sends[0].body, /name="file"; filename="a.txt"[^]*content/);
    assert.equal(field(sends[0], 'content-type'), field(sends[1], 'content-type'));
    assert.match(field(sends[0], 'content-type'), /^multipart\/form-data; boundary=/);
});

test('a form beyond the buffer is sent once', async () => {
    const form = new FormData();
    form.set('file', new Blob(['x'.repeat(2000)]), 'a.txt');
    const {sends, status, info} = await twice({method: 'PUT', body: form}, {bufferBody: 1000});
    assert.deepEqual([sends.length, status, info.reason], [1, 503, 'body_not_replayable']);
});

test('a stream is sent once', async () => {
    const {sends, status, info} = await twice({method: 'PUT', body: streamOf('only ', 'once'), duplex: 'half'});
    assert.deepEqual([sends.length, status, info.reason], [1, 503, 'body_not_replayable']);
    assert.equal(sends[0].body, 'only once');
});

test('an async iterable is sent once', async () => {
    async function* chunks() {
        yield new TextEncoder().encode('a');
        yield new TextEncoder().encode('b');
    }
    const {sends} = await twice({method: 'PUT', body: chunks(), duplex: 'half'});
    assert.deepEqual(sends.map((entry) => entry.body), ['ab']);
});

test('a stream is sent twice when streams may be buffered, up to the buffer', async () => {
    const options = {bufferStreams: true, bufferBody: 10};
    const good = await twice({method: 'PUT', body: streamOf('12345', '67890')}, options);
    assert.deepEqual(good.sends.map((entry) => entry.body), ['1234567890', '1234567890']);
    const long = await twice({method: 'PUT', body: streamOf('12345', '678901')}, options);
    assert.deepEqual([long.sends.map((entry) => entry.body), long.status], [['12345678901'], 503]);
});

test('a Request is sent twice, with its headers and method', async () => {
    const input = (url) => new Request(url, {method: 'PUT', body: 'from a request', headers: {'X-Note': 'n', 'Authorization': 'Bearer t'}});
    const {sends} = await twice(undefined, {input});
    assert.deepEqual(sends.map((entry) => [entry.method, entry.body, field(entry, 'x-note')]),
        [['PUT', 'from a request', 'n'], ['PUT', 'from a request', 'n']]);
});

test('init stands over the Request', async () => {
    const input = (url) => new Request(url, {headers: {'X-Note': 'request'}});
    const {sends} = await twice({headers: new Headers({'X-Note': 'init'}), method: 'DELETE'}, {input});
    assert.deepEqual(sends.map((entry) => [entry.method, field(entry, 'x-note')]), [['DELETE', 'init'], ['DELETE', 'init']]);
});

test('a URL object and headers in each form', async () => {
    for (const headers of [{'X-Note': 'n'}, new Headers({'X-Note': 'n'}), [['X-Note', 'n']]]) {
        const {sends} = await twice({headers}, {input: (url) => new URL(url)});
        assert.deepEqual(sends.map((entry) => field(entry, 'x-note')), ['n', 'n']);
    }
});

test('a key in a Headers object is seen, in any case', async () => {
    for (const headers of [new Headers({'IDEMPOTENCY-KEY': 'k'}), [['idempotency-key', 'k']], {'Idempotency-key': 'k'}]) {
        const {sends, status} = await twice({method: 'POST', body: 'x', headers}, {idempotency: 'auto'});
        assert.equal(status, 200);
        assert.deepEqual(sends.map((entry) => field(entry, 'idempotency-key')), ['k', 'k']);
    }
});

test('the caller\'s bytes may change after the call began', async () => {
    const bytes = new TextEncoder().encode('before');
    const {url, log} = await server.script([BUSY, OK]);
    const call = createClient({backoffBaseMs: 5})(url, {method: 'PUT', body: bytes});
    bytes.fill(0);
    await call;
    assert.deepEqual((await log()).map((entry) => entry.body), ['before', 'before']);
});

test('the last answer is given back unread', async () => {
    const {url} = await server.script([reply(429, {'Retry-After': '3600'}, '{"error":{"type":"rate_limited"}}')]);
    const answer = await createClient()(url);
    assert.deepEqual(await answer.json(), {error: {type: 'rate_limited'}});
});
