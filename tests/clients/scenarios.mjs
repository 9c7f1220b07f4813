// What a caller does against the running gateway, with the JavaScript client. Prints one line of JSON.
//   node scenarios.mjs SCENARIO URL

import {createClient} from 'ration-client';

const [scenario, url] = process.argv.slice(2);
const events = [];

function watched(options) {
    const told = ['x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after'];
    return createClient({
        ...options,
        hooks: {
            onSend: () => events.push({now_ms: events.length, at_ms: Date.now(), kind: 'send'}),
            onAnswer: ({status, error, response}) => events.push({
                now_ms: events.length, at_ms: Date.now(), kind: 'answer', status, error,
                headers: Object.fromEntries(told.map((name) => [name, response?.headers.get(name) ?? null])),
            }),
        },
    });
}

async function crowd(client, {callers, calls, init, progress}) {
    const results = [];
    let left = calls;
    await Promise.all(Array.from({length: callers}, async () => {
        while (left > 0) {
            left -= 1;
            results.push(await one(client, url, init));
            if (progress && results.length === progress) {
                console.log('half-way');
            }
        }
    }));
    return {results, events, stats: client.stats()};
}

async function one(client, target, init) {
    try {
        const answer = await client(target, init);
        const text = await answer.text();
        return {status: answer.status, text, ...client.info(answer)};
    } catch (error) {
        return {error: String(error), ...client.info(error), status: null};
    }
}

const booking = (number) => ({
    method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({
        slot: `2027-01-${String(1 + Math.floor(number / 16)).padStart(2, '0')}T${String(9 + Math.floor((number % 16) / 2)).padStart(2, '0')}:${number % 2 ? '30' : '00'}`,
        customer: {name: 'ana', email: 'ana@example.org'},
    }),
});

async function bookings(client, key, count) {
    const results = [];
    for (let number = 0; number < count; number += 1) {
        const init = booking(number);
        init.headers.Authorization = `Bearer ${key}`;
        results.push(await one(client, `${url}/v1/bookings`, init));
    }
    return {results, stats: client.stats()};
}

async function minute(client, key) {
    const results = [];
    for (let n = 0; n < 8; n += 1) {
        results.push(await one(client, url, bearer(key)));
    }
    return {results, events, stats: client.stats()};
}

const bearer = (key) => ({headers: {Authorization: `Bearer ${key}`}});
const SCENARIOS = {
    crowd: () => crowd(watched(), {callers: 50, calls: 600, init: bearer('sk_js')}),
    posts: () => crowd(watched(), {callers: 70, calls: 70, init: {...bearer('sk_js_posts'), method: 'POST', body: 'x'}}),
    restart: () => crowd(watched({maxRetries: 10}),
        {callers: 20, calls: 2000, init: bearer('sk_js_fast'), progress: 400}),
    office: () => crowd(watched(), {callers: 50, calls: 600, init: bearer('axp_demo_ana_ci')}),
    minute: () => minute(watched({totalDeadlineMs: 5_000}), 'axp_demo_ben'),
    day: () => bookings(createClient({idempotency: ['POST /v1/bookings']}), 'pk_demo_lisbon', 17),
    volume: () => bookings(createClient({idempotency: ['POST /v1/bookings']}), 'sk_demo_tokyo', 5),
};

console.log(JSON.stringify(await SCENARIOS[scenario]()));
