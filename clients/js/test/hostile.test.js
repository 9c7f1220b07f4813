// Real sockets and a server that misbehaves: nothing hangs, leaks, goes early or is sent twice.

import assert from 'node:assert/strict';
import {createServer} from 'node:net';
import {after, before, describe, test} from 'node:test';

import {createClient} from '../src/index.js';
import {HostileServer, reply} from './hostile.js';

const OK = reply(200, {}, 'good');
let server;

const field = (entry, name) => entry.headers.find(([field]) => field.toLowerCase() === name)?.[1];
const rejected = (promise) => promise.then(() => assert.fail('it was answered'), (error) => error);

function closedPort() {
    return new Promise((resolve) => {
        const listener = createServer().listen(0, '127.0.0.1', () => {
            const {port} = listener.address();
            listener.close(() => resolve(port));
        });
    });
}

async function twoSends(first, {atLeastMs = 0, atMostMs = 550, ...options} = {}) {
    const {url, log} = await server.script([first, OK], options);
    const waits = [];
    let answeredAt = null;
    const client = createClient({hooks: {
        onAnswer: () => {
            answeredAt ??= performance.now();
        },
        onWait: (wait) => waits.push({...wait, sinceAnswer: performance.now() - answeredAt}),
    }});
    const answer = await client(url);
    assert.equal(answer.status, 200);
    assert.equal(await answer.text(), 'good');
    const sends = await log();
    assert.equal(sends.length, 2);
    const {ms, sinceAnswer} = waits[0]; // the machine may have paused between the answer and the wait, which is then shorter
    assert.ok(ms + sinceAnswer >= atLeastMs && ms <= atMostMs, `waits ${ms} ms, ${sinceAnswer} ms after the answer`);
    assert.ok(sends[1].at_ms - sends[0].at_ms >= atLeastMs - 2, 'not before the told moment');
    return sends;
}

describe('a hostile server', {concurrency: 8}, () => {
    before(async () => {
        server = await HostileServer.start();
    });
    after(() => server.stop());

    for (const value of ['0', '-3', 'garbage', '', '1m0s', '1e3', '٣']) {
        test(`Retry-After "${value}" is backoff`, () => twoSends(reply(429, {'Retry-After': value})));
    }

    test('Retry-After of a second is a second', () => twoSends(reply(429, {'Retry-After': '1'}), {atLeastMs: 1000, atMostMs: 1500}));

    test('Retry-After of 10^30 ends the call at once', async () => {
        const {url, log} = await server.script([reply(429, {'Retry-After': `1${'0'.repeat(30)}`})]);
        const client = createClient();
        const begun = performance.now();
        const answer = await client(url);
        assert.equal(answer.status, 429);
        assert.equal(client.info(answer).reason, 'server_wait_too_long');
        assert.ok(performance.now() - begun < 5000);
        assert.equal((await log()).length, 1);
        const local = await rejected(client(url));
        assert.equal(local.reason, 'gate_closed');
        assert.ok(local.info.retryAt > Date.now() + 300 * 24 * 3600 * 1000);
        assert.equal((await log()).length, 1);
    });

    for (const form of ['fixed', 'rfc850', 'asctime']) {
        for (const skew of [-3600, 0, 86_400]) {
            test(`a ${form} date on a clock ${skew} s off`, () => twoSends(
                reply(503, {'Retry-After': `@${form}(1)`, 'Date': '@fixed(0)'}), {skew, atLeastMs: 1000, atMostMs: 1500}));
        }
    }

    test('429 without a body, the connection closed', () => twoSends({reply: 'HTTP/1.1 429 No\n\n', end: 'close'}));

    test('an endless body of a refusal is not waited for', async () => {
        const endless = {reply: 'HTTP/1.1 429 No\nTransfer-Encoding: chunked\n\n', chunks: 'endless', end: 'close'};
        await twoSends(endless);
    });

    test('a refusal whose body is cut half-way', () => twoSends(
        {reply: 'HTTP/1.1 429 No\nContent-Length: 100\n\n{"error":', end: 'close'}));

    test('a refusal that is not repeated goes back whatever its body does', async () => {
        const head = 'HTTP/1.1 429 No\nRetry-After: 3600\n';
        const cut = {reply: `${head}Content-Length: 100\n\n{"error":`, end: 'close'};
        const endless = {reply: `${head}Transfer-Encoding: chunked\n\n`, chunks: 'endless', end: 'close'};
        for (const step of [cut, {...cut, end: 'reset'}, {...cut, end: 'stall'}, {...cut, drip_ms: 20, end: 'stall'}, endless]) {
            const {url} = await server.script([step]);
            const client = createClient({totalDeadlineMs: 4000});
            const answer = await client(url);
            assert.deepEqual([answer.status, client.info(answer).reason], [429, 'server_wait_too_long'], JSON.stringify(step));
            await answer.body.cancel().catch(() => {});
        }
    });

    test('the type of a compressed refusal is read', async () => {
        const told = 'HTTP/1.1 429 No\nContent-Type: application/json\n\n{"error":{"type":"booking_volume_refused"}}';
        const {url, log} = await server.script([{reply: told, gzip: true}, OK]);
        const client = createClient();
        const answer = await client(url);
        assert.deepEqual(await answer.json(), {error: {type: 'booking_volume_refused'}});
        assert.deepEqual([client.info(answer).reason, (await log()).length], ['type_never_retry', 1]);
    });

    test('an answer that breaks off before its head is a lost connection', async () => {
        const {url, log} = await server.script([{reply: 'HTTP/1.1 20', end: 'reset'}, OK]);
        assert.equal((await createClient()(url)).status, 200);
        assert.equal((await log()).length, 2);
    });

    test('a connection reset after the request: GET again, POST not, keyed POST again under its key', async () => {
        const lost = {end: 'reset'};
        const get = await server.script([lost, OK]);
        assert.equal((await createClient()(get.url)).status, 200);
        const post = await server.script([lost, OK]);
        const error = await rejected(createClient()(post.url, {method: 'POST', body: 'x'}));
        assert.ok(error instanceof TypeError);
        assert.equal((await post.log()).length, 1);
        const keyed = await server.script([lost, {unread: true}, OK]);
        const client = createClient({idempotency: 'auto'});
        assert.equal((await client(keyed.url, {method: 'POST', body: 'x'})).status, 200);
        const keys = new Set((await keyed.log()).map((entry) => field(entry, 'idempotency-key')));
        assert.equal(keys.size, 1);
        assert.match([...keys][0], /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    });

    test('a server that resets every connection: the cap holds, the error is the last one', async () => {
        const client = createClient({maxRetries: 2, backoffBaseMs: 1});
        const error = await rejected(client(`http://localhost:${server.ports.reset}/x`, {headers: {'Idempotency-Key': 'k'}}));
        assert.equal(client.info(error).attempts, 3);
        assert.equal(client.info(error).reason, 'attempts_exhausted');
        assert.equal(client.info(error).idempotencyKey, 'k');
    });

    test('nothing listens: also a POST without a key is tried again', async () => {
        const port = await closedPort();
        const client = createClient({maxRetries: 2, backoffBaseMs: 1});
        const error = await rejected(client(`http://127.0.0.1:${port}/x`, {method: 'POST', body: 'x'}));
        assert.equal(client.info(error).attempts, 3);
    });

    test('a certificate that nobody signed is tried once', async () => {
        const {url, log} = await server.script([OK], {listener: 'https'});
        const client = createClient();
        const error = await rejected(client(url));
        assert.equal(client.info(error).reason, 'error_not_retryable');
        assert.equal(client.info(error).attempts, 1);
        assert.equal((await log()).length, 0);
    });

    test('what is no request is tried once', async () => {
        const client = createClient();
        const error = await rejected(client(`${server.origin}/x`, {headers: {'bad header': 'x'}}));
        assert.ok(error instanceof TypeError);
        await assert.rejects(client('http://['), TypeError);
    });

    test('a redirect loop ends after five', async () => {
        const {url, log} = await server.script([reply(302, {Location: '?again'})]);
        const client = createClient();
        const answer = await client(url);
        assert.equal(answer.status, 302);
        assert.equal(client.info(answer).reason, 'too_many_redirects');
        assert.equal(client.info(answer).attempts, 1);
        assert.equal((await log()).length, 6);
    });

    test('who answered with a redirect was asked, though it leads to nobody', async () => {
        const nobody = `http://127.0.0.1:${await closedPort()}/`;
        for (const [method, sends] of [['POST', 1], ['PUT', 3]]) {
            const {url, log} = await server.script([reply(307, {Location: nobody})]);
            const client = createClient({maxRetries: 2, backoffBaseMs: 1});
            const error = await rejected(client(url, {method, body: 'x'}));
            assert.deepEqual([client.info(error).attempts, (await log()).length], [sends, sends]);
        }
    });

    test('nor do the hops after it, though they lead back', async () => {
        const secrets = {'Authorization': 'Bearer s3cret', 'Cookie': 'a=s3cret', 'Idempotency-Key': 's3cret', 'X-Api-Key': 's3cret'};
        const home = await server.script([OK]);
        const third = await server.script([reply(307, {Location: home.url})], {listener: 'other'});
        const second = await server.script([reply(307, {Location: third.url})], {listener: 'other'});
        const {url} = await server.script([reply(307, {Location: second.url})]);
        const client = createClient();
        const answer = await client(url, {method: 'POST', body: 'thing', headers: secrets});
        assert.deepEqual([answer.status, client.info(answer).idempotencyKey], [200, 's3cret']);
        for (const script of [second, third, home]) {
            assert.ok(!JSON.stringify(await script.log()).includes('s3cret'));
        }
    });

    test('another host gets neither token nor cookie nor key', async () => {
        const target = await server.script([OK], {listener: 'other'});
        const {url} = await server.script([reply(307, {Location: target.url})]);
        const headers = {
            'Authorization': 'Bearer s3cret', 'Cookie': 'a=s3cret', 'Idempotency-Key': 's3cret', 'X-Api-Key': 's3cret',
            'Proxy-Authorization': 's3cret', 'X-Note': 'plain', 'Content-Type': 'text/x',
        };
        const answer = await createClient({attemptHeader: 'Attempt'})(url, {method: 'POST', body: 'thing', headers});
        assert.equal(answer.status, 200);
        const [entry] = await target.log();
        assert.ok(!JSON.stringify(entry).includes('s3cret'));
        assert.deepEqual([field(entry, 'x-note'), entry.method, entry.body], ['plain', 'POST', 'thing']);
    });

    test('a POST that went to another host without its key is sent there once', async () => {
        for (const failure of [{end: 'reset'}, reply(503)]) {
            const target = await server.script([failure], {listener: 'other'});
            const {url} = await server.script([reply(307, {Location: target.url})]);
            const client = createClient({backoffBaseMs: 1});
            const result = await client(url, {method: 'POST', body: 'x', headers: {'Idempotency-Key': 'k'}}).catch((error) => error);
            assert.deepEqual([client.info(result).reason, (await target.log()).length], ['unsafe_method', 1]);
            const safe = await client(url, {method: 'PUT', body: 'x', ration: {maxRetries: 1}}).catch((error) => error);
            assert.deepEqual([client.info(safe).attempts, (await target.log()).length], [2, 3]);
        }
    });

    test('the same host keeps them', async () => {
        const target = await server.script([OK]);
        const {url} = await server.script([reply(308, {Location: target.url})]);
        await createClient()(url, {method: 'PUT', body: 'thing', headers: {Authorization: 'Bearer t', 'Idempotency-Key': 'k'}});
        const [entry] = await target.log();
        assert.deepEqual([field(entry, 'authorization'), field(entry, 'idempotency-key'), entry.body], ['Bearer t', 'k', 'thing']);
    });

    test('https to http is not followed', async () => {
        const target = await server.script([OK]);
        const seen = [];
        // The decision is the client's; a fetch that trusts the test's certificate is not needed for it.
        const fetch = async (url) => {
            seen.push(url);
            return new Response(null, {status: 302, headers: {Location: target.url}});
        };
        const client = createClient({fetch});
        const answer = await client('https://localhost/x', {headers: {Authorization: 'Bearer t'}});
        assert.equal(answer.status, 302);
        assert.equal(client.info(answer).reason, 'redirect_to_insecure');
        assert.deepEqual([seen.length, (await target.log()).length], [1, 0]);
    });

    test('redirect: manual and error are the caller\'s own', async () => {
        const {url} = await server.script([reply(302, {Location: '/elsewhere'})]);
        assert.equal((await createClient()(url, {redirect: 'manual'})).status, 302);
        await assert.rejects(createClient()(url, {redirect: 'error'}));
    });

    test('a head that drips past the deadline', async () => {
        const {url} = await server.script([{reply: OK, drip_ms: 100}]);
        const client = createClient({totalDeadlineMs: 700});
        const begun = performance.now();
        const error = await rejected(client(url));
        assert.equal(error.reason, 'deadline');
        assert.ok(performance.now() - begun < 5000);
    });

    test('a body that drips past the deadline, when whole answers are asked for', async () => {
        const {url} = await server.script([{reply: reply(200, {}, 'x'.repeat(1000)), drip_ms: 5}]);
        const error = await rejected(createClient({totalDeadlineMs: 900, wholeAnswers: 65536})(url));
        assert.equal(error.reason, 'deadline');
    });

    test('a good answer cut half-way is asked for again, when whole answers are asked for', async () => {
        const cut = {reply: 'HTTP/1.1 201 Made\nContent-Length: 100\n\n{"id":', end: 'reset'};
        const {url, log} = await server.script([cut, reply(201, {}, '{"id":7}')]);
        const client = createClient({idempotency: ['POST /{name}'], wholeAnswers: 65536});
        const answer = await client(url, {method: 'POST', body: 'x'});
        assert.deepEqual(await answer.json(), {id: 7});
        assert.equal(new Set((await log()).map((entry) => field(entry, 'idempotency-key'))).size, 1);
    });

    test('1xx answers are passed over', async () => {
        const {url, log} = await server.script([`HTTP/1.1 103 Early Hints\nLink: </x>\n\nHTTP/1.1 102 Processing\n\n${OK}`]);
        const answer = await createClient()(url);
        assert.deepEqual([answer.status, await answer.text()], [200, 'good']);
        assert.equal((await log()).length, 1);
    });

    test('a 100 or 101 that nobody asked for, which Node does not take, is an error, once', async () => {
        for (const head of ['HTTP/1.1 100 Continue', 'HTTP/1.1 101 Switching Protocols\nConnection: upgrade\nUpgrade: x']) {
            const {url, log} = await server.script([{reply: `${head}\n\n${OK}`}, OK]);
            const client = createClient();
            const result = await client(url).catch((error) => error);
            if (result.status !== 200) { // a later Node may pass over them
                assert.equal(client.info(result).reason, 'error_not_retryable', head);
            }
            assert.equal((await log()).length, 1, head);
        }
    });

    test('endless interim answers end', async () => {
        const {url} = await server.script([{interim: 'endless'}]);
        const client = createClient({totalDeadlineMs: 700});
        const error = await rejected(client(url));
        assert.ok(['deadline', 'error_not_retryable'].includes(client.info(error).reason), client.info(error).reason);
    });

    test('an answer that is not HTTP is an error, once', async () => {
        const {url, log} = await server.script([{reply: 'SSH-2.0-hello\n\n', end: 'close'}]);
        const client = createClient();
        const error = await rejected(client(url));
        assert.equal(client.info(error).reason, 'error_not_retryable');
        assert.equal((await log()).length, 1);
    });

    test('repeats carry the attempt number, the first send does not', async () => {
        const {url, log} = await server.script([reply(503), reply(503), OK]);
        await createClient({backoffBaseMs: 10})(url);
        assert.deepEqual((await log()).map((entry) => field(entry, 'retry-attempt')), [undefined, '2', '3']);
    });

    test('inside another retrying client nothing is tried again', async () => {
        const {url, log} = await server.script([reply(503)]);
        assert.equal((await createClient({nested: true})(url)).status, 503);
        assert.equal((await log()).length, 1);
    });
});
