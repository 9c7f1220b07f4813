// A fetch that speaks HTTP/2 (Node's own does not unless told to): resets of streams and GOAWAY are lost connections,
// which safe and keyed calls survive, and which no unsafe call is repeated after.

import assert from 'node:assert/strict';
import {connect, constants, createServer} from 'node:http2';
import {test} from 'node:test';

import {createClient} from '../src/index.js';

// One session for each request: what matters here is how it fails, in the words of node:http2.
function fetchHttp2(url, {method, headers}) {
    return new Promise((resolve, reject) => {
        const {origin, pathname} = new URL(url);
        const session = connect(origin);
        const stream = session.request({':method': method, ':path': pathname, ...Object.fromEntries(new Headers(headers))});
        const fail = (cause) => {
            session.destroy();
            reject(new TypeError('fetch failed', {cause}));
        };
        session.on('error', fail);
        stream.on('error', fail);
        stream.on('response', ({':status': status}) => {
            stream.resume();
            session.close();
            resolve(new Response(null, {status}));
        });
        stream.end();
    });
}

// The first stream goes as `loss` says, the others are answered.
async function withServer(loss, check) {
    const seen = [];
    const server = createServer();
    server.on('session', (session) => session.on('error', () => {}));
    server.on('stream', (stream, headers) => {
        stream.on('error', () => {});
        seen.push(headers);
        if (seen.length === 1) {
            loss(stream);
        } else {
            stream.respond({':status': 200}, {endStream: true});
        }
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const client = createClient({fetch: fetchHttp2, backoffBaseMs: 1});
    try {
        await check((init) => client(`http://127.0.0.1:${server.address().port}/`, init), client.info, seen);
    } finally {
        server.close();
    }
}

const LOSSES = {
    'a stream that is refused': (stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM),
    'a stream that is reset': (stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
    'a session that goes away': (stream) => stream.session.destroy(new Error('away'), constants.NGHTTP2_INTERNAL_ERROR),
};

for (const [name, loss] of Object.entries(LOSSES)) {
    test(`${name}: safe and keyed calls are sent again`, async () => {
        for (const init of [{method: 'GET'}, {method: 'POST', headers: {'Idempotency-Key': 'k'}}]) {
            await withServer(loss, async (ask, info, seen) => {
                const answer = await ask(init);
                assert.deepEqual([answer.status, info(answer).attempts, seen.length], [200, 2, 2]);
                assert.equal(seen[1]['idempotency-key'], init.headers?.['Idempotency-Key']);
            });
        }
    });

    test(`${name}: an unsafe call is sent once`, () => withServer(loss, async (ask, info, seen) => {
        const error = await ask({method: 'POST'}).then(() => assert.fail('it was answered'), (reason) => reason);
        assert.deepEqual([info(error).reason, seen.length], ['unsafe_method', 1]);
    }));
}
