// What the caller is shown of an answer: what the server said, asked once, whatever fetch or the client made of it since.

import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {after, before, describe, test} from 'node:test';
import {promisify} from 'node:util';

import {createClient} from '../src/index.js';
import {Transfer} from '../src/transfer.js';
import {HostileServer, reply} from './hostile.js';

const OK = reply(200, {}, 'good');
const MISDIRECTED = 'HTTP/1.1 421 Wrong Place\nX-Note: n\nContent-Length: 4\n\nelse';
const IN_FORCE = Symbol.for('undici.globalDispatcher.2');
const IN_FORCE_BEFORE = Symbol.for('undici.globalDispatcher.1');
let server;

before(async () => {
    server = await HostileServer.start();
});
after(() => server.stop());

const REQUESTS = {
    'GET': {},
    'PUT': {method: 'PUT', body: 'x'},
    'POST': {method: 'POST', body: 'x'},
    'POST without a body': {method: 'POST'},
    'POST of a buffer': {method: 'POST', body: new Uint8Array([120])},
    'POST under a key': {method: 'POST', body: 'x', headers: {'Idempotency-Key': 'k'}},
};

// A dispatcher as a caller gives one: it hands on to the one in force, and counts.
function counting() {
    const given = {
        asked: 0,
        dispatch(options, handler) {
            given.asked += 1;
            const place = handler.onConnect === undefined ? IN_FORCE : IN_FORCE_BEFORE;
            return globalThis[place].dispatch(options, handler);
        },
    };
    return given;
}

const WAYS = {
    'the usual way': async (url, init) => {
        const client = createClient();
        await (await client((await server.script([OK])).url)).text(); // from here on without a signal
        return [client, await client(url, init)];
    },
    'inside another client': async (url, init) => {
        const client = createClient({nested: true, hooks: {onSend() {}}});
        return [client, await client(url, init)];
    },
    'with a signal': async (url, init) => {
        const client = createClient();
        return [client, await client(url, {...init, signal: new AbortController().signal})];
    },
    'with a dispatcher of the caller\'s': async (url, init) => {
        const dispatcher = counting();
        const client = createClient();
        const answer = await client(url, {...init, dispatcher});
        assert.equal(dispatcher.asked, 1);
        return [client, answer];
    },
    'with a fetch and a dispatcher of the caller\'s': async (url, init) => {
        const dispatcher = counting();
        const client = createClient({fetch: (input, given) => fetch(input, given)});
        const answer = await client(url, {...init, dispatcher});
        assert.equal(dispatcher.asked, 1);
        return [client, answer];
    },
    'as a Request': async (url, init) => {
        const client = createClient();
        return [client, await client(new Request(url, init))];
    },
    'redirected by the platform': async (url, init) => {
        const client = createClient({redirects: 'platform'});
        const from = await server.script([reply(307, {Location: url})]);
        return [client, await client(from.url, init)];
    },
    'redirected by the client': async (url, init) => {
        const client = createClient();
        const from = await server.script([reply(307, {Location: url})]);
        return [client, await client(from.url, init)];
    },
};

for (const [way, ask] of Object.entries(WAYS)) {
    for (const [name, init] of Object.entries(REQUESTS)) {
        if (way === 'redirected by the platform' && name === 'POST of a buffer') {
            continue; // Node 20's fetch cannot send a buffer on after a redirect
        }
        test(`421 is asked once and is what it was: ${name}, ${way}`, async () => {
            const {url, log} = await server.script([MISDIRECTED, OK]);
            const [client, answer] = await ask(url, init);
            const copy = answer.clone();
            for (const each of [answer, copy, copy.clone()]) {
                assert.deepEqual([each.status, each.ok, each.statusText, each.url, each.headers.get('x-note')],
                    [421, false, 'Wrong Place', url, 'n']);
            }
            assert.deepEqual([await answer.text(), await copy.text()], ['else', 'else']);
            assert.equal((await log()).length, 1);
            const {attempts, reason, status} = client.info(answer);
            assert.deepEqual([attempts, reason, status], [1, 'status_not_retryable', 421]);
        });
    }
}

test('421 is repeated by the client alone, where it is told to, and what comes then is shown', async () => {
    const client = createClient({retryStatuses: [421], backoffBaseMs: 1});
    const get = await server.script([MISDIRECTED, OK]);
    const answer = await client(get.url);
    assert.deepEqual([answer.status, client.info(answer).attempts, (await get.log()).length], [200, 2, 2]);
    const post = await server.script([MISDIRECTED, OK]);
    const refused = await client(post.url, {method: 'POST', body: 'x'});
    assert.deepEqual([refused.status, client.info(refused).reason, (await post.log()).length], [421, 'unsafe_method', 1]);
});

test('421 with a body that is read for the error type keeps what it is', async () => {
    const {url, log} = await server.script([reply(421, {'Content-Type': 'application/json'}, '{"error":"elsewhere"}'), OK]);
    const client = createClient();
    const answer = await client(url, {method: 'POST', body: 'x'});
    assert.deepEqual([answer.status, answer.clone().status, answer.url, answer.clone().url], [421, 421, url, url]);
    assert.deepEqual(await answer.json(), {error: 'elsewhere'});
    assert.deepEqual([client.info(answer).errorType, (await log()).length], ['elsewhere', 1]);
});

test('also the first request of a process is asked once', async () => {
    const {url, log} = await server.script([MISDIRECTED, OK]);
    const program = `import {createClient} from ${JSON.stringify(new URL('../src/index.js', import.meta.url).href)};
        const answer = await createClient()(${JSON.stringify(url)}, {method: 'POST', body: 'x'});
        console.log(answer.status, await answer.text());`;
    const {stdout} = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
    assert.equal(stdout, '421 else\n');
    assert.equal((await log()).length, 1);
});

test('both kinds of handlers are shown 400 in place of 421, and nothing else in place of another', () => {
    for (const kind of ['onConnect', 'onRequestStart']) {
        let answers;
        const transfer = new Transfer(null, {dispatch: (options, handler) => {
            answers = (status) => (kind === 'onConnect' ? handler.onHeaders(status, 'fields', 'resume', 'text')
                : handler.onResponseStart('control', status, 'fields', 'text'));
        }});
        const seen = [];
        const handler = {
            [kind]() {},
            onHeaders: (...given) => seen.push(given),
            onResponseStart: (...given) => seen.push(given),
        };
        const toldAs = (status) => (kind === 'onConnect' ? [status, 'fields', 'resume', 'text'] : ['control', status, 'fields', 'text']);
        transfer.dispatch({}, {...handler});
        assert.equal(answers(103), 1, 'what the handler gives back is handed on');
        answers(421);
        assert.equal(transfer.asAnswered(new Response('x', {status: 400})).status, 421);
        transfer.dispatch({}, {...handler});
        answers(400);
        assert.equal(transfer.asAnswered(new Response('x', {status: 400})).status, 400, 'the next answer is what it is');
        assert.deepEqual(seen, [toldAs(103), toldAs(400), toldAs(400)]);
    }
});

describe('no other refusal is repeated unseen', () => {
    const told = {'WWW-Authenticate': 'Basic realm="x"', 'Proxy-Authenticate': 'Basic realm="x"', 'Content-Range': 'bytes */1'};
    for (const status of [400, 401, 408, 409, 413, 416, 425, 426, 500, 502, 504, 511]) {
        test(String(status), async () => {
            for (const init of [{headers: {Range: 'bytes=5-'}}, {method: 'POST', body: 'x', credentials: 'include'}]) {
                const {url, log} = await server.script([reply(status, told), OK]);
                assert.deepEqual([(await createClient()(url, init)).status, (await log()).length], [status, 1]);
            }
        });
    }

    test('407, which Node does not show, is an error, once', async () => {
        for (const init of [{}, {method: 'POST', body: 'x'}]) {
            const {url, log} = await server.script([reply(407, told), OK]);
            const client = createClient();
            const error = await client(url, init).then(() => assert.fail('it was answered'), (reason) => reason);
            assert.deepEqual([error.name, client.info(error).reason, client.info(error).attempts, (await log()).length],
                ['TypeError', 'error_not_retryable', 1, 1]);
        }
    });
});

test('an answer after redirects says so, its clones too', async () => {
    for (const last of [OK, reply(404, {}, 'none'), reply(404, {'Content-Type': 'application/json'}, '{}')]) {
        const target = await server.script([last]);
        const {url} = await server.script([reply(302, {Location: target.url})]);
        const there = await server.script([reply(307, {Location: url})]);
        const answer = await createClient()(there.url);
        for (const each of [answer, answer.clone(), answer.clone().clone()]) {
            assert.deepEqual([each.redirected, each.url], [true, target.url]);
        }
    }
});

test('an answer without redirects, and a redirect that is not followed, do not', async () => {
    const straight = await server.script([OK]);
    assert.equal((await createClient()(straight.url)).redirected, false);
    const asked = await server.script([reply(302, {Location: '/x'})]);
    assert.equal((await createClient()(asked.url, {redirect: 'manual'})).redirected, false);
    const kept = await createClient()((await server.script([reply(303, {Location: '/x'})])).url, {method: 'POST', body: 'x'});
    assert.deepEqual([kept.status, kept.redirected, kept.clone().redirected], [303, false, false]);
});

test('of too many redirects the last one is redirected', async () => {
    const second = await server.script([reply(302, {Location: '/x'})]);
    const first = await server.script([reply(302, {Location: second.url})]);
    const client = createClient({maxRedirects: 1});
    const answer = await client(first.url);
    assert.deepEqual([answer.status, answer.redirected, answer.url, client.info(answer).reason],
        [302, true, second.url, 'too_many_redirects']);
});

test('a status past 599 and a text beyond Latin-1 go back as they came', async () => {
    const json = {'Content-Type': 'application/json'};
    const {url} = await server.script([reply(999, json, '{"error":"no"}')]);
    const client = createClient();
    const answer = await client(url);
    assert.deepEqual([answer.status, answer.clone().status, answer.ok, client.info(answer).errorType], [999, 999, false, 'no']);
    const odd = async () => Object.defineProperty(new Response('{}', {status: 429, headers: {'Retry-After': '3600'}}),
        'statusText', {value: 'Später – bitte'});
    const refused = await createClient({fetch: odd})(url);
    assert.deepEqual([refused.statusText, refused.clone().statusText, await refused.text()], ['Später – bitte', 'Später – bitte', '{}']);
});
