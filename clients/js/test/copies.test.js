// What a call was given is read while it is made, as fetch does: what its caller changes afterwards reaches no attempt.

import assert from 'node:assert/strict';
import http from 'node:http';
import {after, before, test} from 'node:test';

import {createClient} from '../src/index.js';

const USERS = ['ana', 'ben', 'eva'];
const FORMS = {
    'Headers': {make: () => new Headers(), set: (headers, name, value) => headers.set(name, value)},
    'an object': {make: () => ({}), set: (headers, name, value) => {
        headers[name] = value;
    }},
    'an array': {make: () => [], set: (headers, name, value) => {
        const pair = headers.find(([field]) => field === name);
        if (pair) {
            pair[1] = value;
        } else {
            headers.push([name, value]);
        }
    }},
    'an object of lists': {make: () => ({}), set: (headers, name, value) => {
        headers[name] ??= [];
        headers[name][0] = value;
    }},
};
const OF_THE_CONNECTION = ['connection', 'content-length', 'transfer-encoding', 'host', 'retry-attempt'];

let origin;
let refusals = 0; // of each path's first requests
let seen = [];
const server = http.createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (chunk) => {
        body += chunk;
    });
    request.on('end', () => {
        if (request.url === '/closes') {
            response.writeHead(200, {'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '1'}).end();
            return;
        }
        const before = seen.filter(({path}) => path === request.url).length;
        seen.push({path: request.url, method: request.method, headers: request.headers, body});
        response.writeHead(before < refusals ? 503 : 200).end('good');
    });
});

before(async () => {
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${server.address().port}`;
    for (let n = 0; n < 2; n += 1) {
        await (await createClient()(`${origin}/warm`)).text(); // from now on a plain call is one
    }
});
after(() => {
    server.close();
    server.closeAllConnections();
});

// All calls begin before the first is answered, with the same headers, which each sets anew.
async function together(fetch, form, initOf, inputOf, names) {
    const headers = form.make();
    const calls = USERS.map((user) => {
        names.forEach((name) => form.set(headers, name, `${name} of ${user}`));
        return fetch(inputOf(user), {...initOf(user), headers});
    });
    names.forEach((name) => form.set(headers, name, 'changed'));
    const answers = await Promise.all(calls);
    await Promise.all(answers.map((answer) => answer.text()));
    return answers;
}

// What a server sees of a request, but for what is the connection's or by chance.
function shown({path, method, headers, body}, hidden = []) {
    const boundary = /boundary=(.*)$/.exec(headers['content-type'] ?? '')?.[1] ?? '\n';
    const fields = Object.entries(headers).filter(([name]) => ![...OF_THE_CONNECTION, ...hidden].includes(name));
    return JSON.stringify([path, method, fields.sort(), body]).replaceAll(boundary, 'boundary');
}

function formOf(user) {
    const form = new FormData();
    form.set('user', user);
    form.set('file', new Blob([user]), 'a.txt');
    return form;
}

function streamOf(text) {
    return new ReadableStream({
        start(controller) {
            controller.enqueue(new TextEncoder().encode(text));
            controller.close();
        },
    });
}

const ways = (all) => Object.entries(all).map(([name, way]) => ({name, options: {}, init: () => ({}), refusals: 0, keyed: true, ...way}));
const put = (bodyOf) => (user) => ({method: 'PUT', body: bodyOf(user)});
const post = (user) => ({method: 'POST', body: user});
const WAYS = ways({
    'a plain GET': {keyed: false},
    'a plain GET refused once': {keyed: false, refusals: 1},
    'a plain GET refused twice': {keyed: false, refusals: 2},
    'a plain text': {keyed: false, init: put((user) => user), refusals: 1},
    'a plain POST': {keyed: false, init: post},
    'a GET': {},
    'a GET by another bucket': {options: {bucket: 'origin'}},
    'a GET refused once': {refusals: 1},
    'a GET refused twice': {refusals: 2},
    'a GET that is watched': {options: {hooks: {onWait() {}}}, refusals: 1},
    'a GET with a signal': {init: () => ({signal: new AbortController().signal}), refusals: 1},
    'a GET with a policy of its own': {options: {}, init: () => ({ration: {maxRetries: 1}}), refusals: 1},
    'a paced GET': {options: {pace: {ratePerMin: 6000, burst: 1}}},
    'a held GET': {options: {bucket: 'origin', credential: () => 'one'}, closes: true},
    'a GET of a Request': {input: (url) => new Request(url, {headers: {'X-Note': 'request'}}), refusals: 1},
    'a DELETE': {init: () => ({method: 'DELETE'}), refusals: 1},
    'a text': {init: put((user) => user), refusals: 1},
    'bytes': {init: put((user) => new TextEncoder().encode(user)), refusals: 1},
    'a Blob': {init: put((user) => new Blob([user], {type: 'text/x'})), refusals: 1},
    'URLSearchParams': {init: put((user) => new URLSearchParams({user})), refusals: 1},
    'a form': {init: put(formOf), refusals: 1},
    'a form beyond the buffer': {options: {bufferBody: 1}, init: put(formOf)},
    'a stream': {init: (user) => ({method: 'PUT', body: streamOf(user), duplex: 'half'})},
    'a stream that is read ahead': {
        options: {bufferStreams: true}, init: (user) => ({method: 'PUT', body: streamOf(user), duplex: 'half'}), refusals: 1,
    },
    'a function': {init: (user) => ({method: 'PUT', body: () => user}), bare: put((user) => user), refusals: 1},
    'a POST with its key': {init: post, refusals: 1},
    'a POST with its key, where keys are made': {options: {idempotency: 'auto'}, init: post, refusals: 1},
    'a POST whose key is made': {
        options: {idempotency: 'auto', idempotencyHeader: 'X-Key'}, init: post, refusals: 1, keyField: 'x-key',
    },
    'a POST through another fetch': {options: {fetch: (input, init) => fetch(input, init)}, init: post, refusals: 1},
});

for (const [formName, form] of Object.entries(FORMS)) {
    for (const way of WAYS) {
        test(`${way.name}, ${formName}: each request as fetch sends it`, async () => {
            const input = way.input ?? ((url) => url);
            const inputOf = (user) => input(`${origin}/${user}`);
            const names = ['Authorization', 'X-Note', ...(way.keyed ? ['Idempotency-Key'] : [])];
            refusals = 0;
            seen = [];
            await together(fetch, form, way.bare ?? ((user) => ({...way.init(user), ration: undefined})), inputOf, names);
            const bare = new Map(seen.map((entry) => [entry.path, shown(entry)]));
            assert.equal(bare.size, USERS.length);

            ({refusals} = way);
            const client = createClient({backoffBaseMs: 2, ...way.options});
            if (way.closes) {
                await (await client(`${origin}/closes`)).text();
            }
            seen = [];
            const answers = await together(client, form, way.init, inputOf, names);
            assert.equal(seen.length, USERS.length * (refusals + 1));
            const keyField = way.keyField ?? 'idempotency-key';
            for (const [index, user] of USERS.entries()) {
                const own = seen.filter(({path}) => path === `/${user}`);
                for (const entry of own) {
                    assert.equal(shown(entry, way.keyField ? [keyField] : []), bare.get(`/${user}`));
                }
                assert.deepEqual([...new Set(own.map(({headers}) => headers[keyField] ?? null))], [client.info(answers[index]).idempotencyKey]);
                assert.equal(answers[index].status, 200);
            }
        });
    }
}

// Sends through one refusal; `change` is called between the call and its first answer.
async function changed(input, init, change, options = {}) {
    refusals = 1;
    seen = [];
    const client = createClient({backoffBaseMs: 2, ...options});
    const call = client(input, init);
    change();
    const answer = await call;
    return {status: answer.status, info: client.info(answer)};
}

test('the address may change', async () => {
    for (const options of [{}, {pace: {ratePerMin: 6000}}]) {
        const url = new URL(`${origin}/first`);
        await changed(url, {}, () => {
            url.pathname = '/second';
        }, options);
        assert.deepEqual(seen.map(({path}) => path), ['/first', '/first']);
    }
});

test('init itself may change, and the policy in it', async () => {
    const options = [{}, {pace: {ratePerMin: 6000}}, {fetch: (input, init) => fetch(input, init)}];
    for (const [body, each] of ['text', new TextEncoder().encode('text'), new URLSearchParams('text')].flatMap(
        (body) => options.map((each) => [body, each]))) {
        for (const ration of [undefined, {maxRetries: 1, retryStatuses: [503]}]) {
            const init = {method: 'PUT', body, headers: {'X-Note': 'first'}, redirect: 'follow', ration};
            const {status} = await changed(`${origin}/first`, init, () => {
                if (ration) {
                    Object.assign(ration, {maxRetries: 0});
                    ration.retryStatuses.length = 0;
                }
                Object.assign(init, {method: 'DELETE', body: 'other', headers: {}, redirect: 'error', ration: {maxRetries: 0}});
            }, each);
            assert.equal(status, 200);
            assert.deepEqual(seen.map(({method, headers, body: sent}) => [method, headers['x-note'], sent.replace('=', '')]),
                [['PUT', 'first', 'text'], ['PUT', 'first', 'text']]);
        }
    }
});

test('a body may change', async () => {
    const bodies = {
        'first': [new TextEncoder().encode('first'), (body) => body.fill(0)],
        'firs': [new TextEncoder().encode('firs').buffer, (body) => new Uint8Array(body).fill(0)],
        'a=first': [new URLSearchParams({a: 'first'}), (body) => body.set('a', 'second')],
    };
    for (const [text, [body, change]] of Object.entries(bodies)) {
        await changed(`${origin}/first`, {method: 'PUT', body}, () => change(body));
        assert.deepEqual(seen.map((entry) => entry.body), [text, text]);
    }
    for (const [bufferBody, sends] of [[1000, 2], [1, 1]]) {
        const form = formOf('first');
        await changed(`${origin}/first`, {method: 'PUT', body: form}, () => form.set('user', 'second'), {bufferBody});
        assert.equal(seen.length, sends);
        assert.ok(seen.every((entry) => /first[^]*filename="a.txt"/.test(entry.body) && !entry.body.includes('second')));
    }
});

test('a Request may change', async () => {
    for (const init of [undefined, {}, {headers: undefined, method: undefined, body: undefined}]) {
        for (const body of [undefined, 'text']) {
            const request = new Request(`${origin}/first`, {method: body ? 'PUT' : 'DELETE', body, headers: {'Authorization': 'Bearer one'}});
            await changed(request, init, () => request.headers.set('Authorization', 'Bearer two'));
            assert.deepEqual(seen.map(({method, headers, body: sent}) => [method, headers.authorization, sent]),
                Array(2).fill([request.method, 'Bearer one', body ?? '']));
        }
    }
});

test('headers that can be read only once', async () => {
    function* pairs() {
        yield ['Authorization', 'Bearer one'];
        yield ['Idempotency-Key', 'one'];
    }
    for (const headers of [pairs, () => new Map(pairs()), () => new Set(pairs())]) {
        for (const options of [{}, {pace: {ratePerMin: 6000}}]) {
            const {info} = await changed(`${origin}/first`, {method: 'POST', body: 'x', headers: headers()}, () => {}, options);
            assert.deepEqual(seen.map((entry) => [entry.headers.authorization, entry.headers['idempotency-key']]),
                [['Bearer one', 'one'], ['Bearer one', 'one']]);
            assert.equal(info.idempotencyKey, 'one');
        }
    }
});

test('the key that is told is the one that is sent', async () => {
    for (const headers of [{'Idempotency-Key': ' k\t'}, [['idempotency-key', '\tk ']], {'Idempotency-Key': 7}, {'IDEMPOTENCY-KEY': ['a', 'b']},
        [['Idempotency-Key', 'a'], ['idempotency-key', 'b']], {'Idempotency-Key': 'a', 'idempotency-key': ' b'},
        new Headers([['Idempotency-Key', ' a'], ['idempotency-key', 'b ']])]) {
        const {info} = await changed(`${origin}/first`, {method: 'POST', body: 'x', headers}, () => {});
        assert.deepEqual(seen.map((entry) => entry.headers['idempotency-key']), [info.idempotencyKey, info.idempotencyKey]);
    }
});

test('an empty key is none, and none is made in its place', async () => {
    for (const text of ['', ' ', '\t ']) {
        for (const headers of [{'Idempotency-Key': text}, [['idempotency-key', text]], new Headers({'Idempotency-Key': text})]) {
            for (const options of [{}, {idempotency: 'auto'}, {pace: {ratePerMin: 6000}}]) {
                const {status, info} = await changed(`${origin}/first`, {method: 'POST', body: 'x', headers}, () => {}, options);
                assert.deepEqual([status, seen.length, seen[0].headers['idempotency-key']], [503, 1, '']);
                assert.deepEqual([info.reason, info.idempotencyKey], ['unsafe_method', null]);
            }
        }
    }
});
