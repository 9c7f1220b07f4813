// Random and mangled headers: reading never throws, never gives a number that is no wait. Random calls: none goes early,
// each ends. The seed is printed; RATION_SEED=... runs the same again.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import * as core from '../src/core.js';
import {createClient} from '../src/index.js';
import {VirtualClock, neverUntilAborted, toResponse, transportError} from './virtual.js';

const NOW = 1_795_996_800_000;
const ROUNDS = 20_000;
const SEED = Number(process.env.RATION_SEED ?? Math.floor(Math.random() * 2 ** 31));

// mulberry32: a small generator with a seed, for tests only.
function generator(seed) {
    let state = seed >>> 0;
    return () => {
        state = (state + 0x6d2b79f5) >>> 0;
        let t = state;
        t = Math.imul(t ^ (t >>> 15), t | 1);
        t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
        return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
}

const PIECES = ['0', '1', '59', '999999999', '1795996830', '1795996830500', '9'.repeat(40), '-', '+', '.', ' ', '\t', ',', ';', '=', '"',
    '\\', 'r', 't', 'r=5', ';t=3', '"a"', 'Mon, ', '30 Nov 2026', ' 00:00:45', ' GMT', 'Monday, 30-Nov-26', 'Nov', '\u0665', 'e', 'x',
    'NaN', '\u{1f600}', '\0', '?1', ':YQ==:', '@1', '(', ')', '*', '{', '}', '[', ']', '"error":', '"type":', '"retry_after":', 'null', 'true'];

function text(random) {
    const count = Math.floor(random() * 9);
    return Array.from({length: count}, () => PIECES[Math.floor(random() * PIECES.length)]).join('');
}

function sane(wait, zero) {
    return wait === null || (Number.isFinite(wait) && wait >= (zero ? 0 : Number.MIN_VALUE) && wait <= core.MAX_WAIT_MS);
}

test(`readers take anything (seed ${SEED})`, () => {
    const random = generator(SEED);
    for (let round = 0; round < ROUNDS; round += 1) {
        const value = text(random);
        assert.ok(sane(core.parseRetryAfter(value, NOW), false), JSON.stringify(value));
        core.parseHttpDate(value, NOW);
        const headers = {'ratelimit': value, 'x-ratelimit-remaining': text(random), 'x-ratelimit-reset': text(random)};
        for (const limit of core.parseLimits((name) => headers[name] ?? null, NOW)) {
            assert.ok(sane(limit.resetInMs, true) && Number.isInteger(limit.remaining) && limit.remaining >= 0, JSON.stringify(headers));
        }
        const body = core.readErrorBody(new TextEncoder().encode(value));
        assert.ok(sane(body.waitMs, false) && (body.type === null || typeof body.type === 'string'), value);
    }
});

test(`dates come back from each of their forms (seed ${SEED})`, () => {
    const random = generator(SEED);
    const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
    for (let round = 0; round < ROUNDS; round += 1) {
        const at = NOW + Math.floor((random() - 0.5) * 40 * 365 * 86400) * 1000;
        const fixed = new Date(at).toUTCString();
        const [, day, month, year, time] = fixed.split(/,? /);
        const long = days[new Date(at).getUTCDay()];
        const forms = [fixed, `${long}, ${day}-${month}-${year.slice(2)} ${time} GMT`,
            `${fixed.slice(0, 3)} ${month} ${day.replace(/^0/, ' ')} ${time} ${year}`];
        for (const form of forms) {
            assert.equal(core.parseHttpDate(form, NOW), at, form);
        }
    }
});

test(`a decision never goes early, late or beyond the deadline (seed ${SEED})`, () => {
    const random = generator(SEED);
    const policy = core.makePolicy();
    for (let round = 0; round < ROUNDS; round += 1) {
        const headers = {'retry-after': random() < 0.5 ? String(Math.floor(random() * 130)) : text(random)};
        const outcome = {type: 'response', status: 429, header: (name) => headers[name] ?? null, body: null};
        const elapsedMs = random() * 125_000;
        const state = {policy, method: 'GET', keyed: false, body: 'none', attemptsMade: 1 + Math.floor(random() * 7), elapsedMs,
            outcome, retryTokens: random() * 3, cancelled: false, nowUnixMs: NOW, random};
        const floor = core.readAnswer(outcome, NOW).floorMs;
        const decision = core.decide(state);
        if (decision.action === 'retry') {
            assert.ok(decision.waitMs >= (floor ?? 0) && decision.waitMs <= (floor ?? 30_000) + 500, JSON.stringify(decision));
            assert.ok(elapsedMs + decision.waitMs + policy.minAttemptMs <= policy.totalDeadlineMs + 1e-6);
        }
    }
});

test(`a gate never lets through early, twice the probe, or more than remain (seed ${SEED})`, () => {
    const random = generator(SEED);
    for (let round = 0; round < 300; round += 1) {
        gateRound(random);
    }
});

function gateRound(random) {
    const gate = new core.Gate(core.makePolicy(), random);
    const waiting = new Set();
    const flying = new Set();
    let now = 0;
    let told = -Infinity;
    for (let step = 0; step < 120; step += 1) {
        now += random() * 300;
        const ticket = random() < 0.5 && waiting.size > 0 ? [...waiting][0] : core.makeTicket();
        const probing = gate.probeNeeded && now >= gate.opensAt;
        const answer = gate.ask(ticket, now);
        if (answer.rejectUntil === undefined) {
            waiting.add(ticket);
        }
        for (const each of waiting) {
            if (each.granted) {
                assert.ok(now >= told, `sent at ${now}, told ${told}`);
                waiting.delete(each);
                flying.add(each);
            }
        }
        assert.equal(gate.inFlight, flying.size);
        if (probing && gate.probe) {
            assert.ok(flying.has(gate.probe));
        }
        if (random() < 0.5 && flying.size > 0) {
            const done = [...flying][Math.floor(random() * flying.size)];
            flying.delete(done);
            told = Math.max(told, finishOne(gate, done, now, random));
        }
    }
}

// Ends a flight in one of the ways there are; gives the moment that was told, or -Infinity.
function finishOne(gate, ticket, now, random) {
    const wait = 1000 * Math.ceil(random() * 5);
    const kind = Math.floor(random() * 4);
    const none = {status: 200, errorType: null, limits: [], floorMs: null};
    if (kind === 0) {
        gate.done(ticket, {told: {...none, status: 429, floorMs: wait}, refused: true}, now);
        return now + wait;
    }
    if (kind === 1) {
        const limits = [{name: 'default', remaining: 0, resetInMs: wait, epochMs: null}];
        gate.done(ticket, {told: {...none, limits}, refused: false}, now);
        return now + wait;
    }
    gate.done(ticket, {told: kind === 2 ? null : none, refused: false}, now);
    return -Infinity;
}

test(`no call goes early, and whenever they are cancelled nothing of them is left (seed ${SEED})`, async () => {
    const random = generator(SEED);
    for (let round = 0; round < 60; round += 1) {
        await callsRound(random, round % 2 === 0 ? {} : {concurrency: {initial: 1, max: 1}});
    }
});

async function callsRound(random, options) {
    const clock = new VirtualClock(NOW);
    const whole = (below) => Math.floor(random() * below);
    let told = -Infinity;
    const early = [];
    let mood = () => whole(7);
    const fetch = async (url, {signal}) => {
        if (clock.now() < told) {
            early.push({at: clock.now(), told});
        }
        const kind = mood();
        await Promise.race([neverUntilAborted(signal), ...(kind === 0 ? [] : [clock.sleep(whole(400))])]);
        if (kind === 1) {
            throw transportError('connection_lost');
        }
        if (kind > 3) {
            return toResponse({status: 200});
        }
        const seconds = 1 + whole(4);
        told = Math.max(told, clock.now() + 1000 * seconds);
        return toResponse({status: 429, headers: {'Retry-After': String(seconds)}});
    };
    const client = createClient({
        fetch, clock, random, bucket: 'origin', attemptTimeoutMs: 3000, totalDeadlineMs: 30_000, ...options,
    });
    const call = async (at, cancelAfter) => {
        await clock.sleep(at);
        const controller = new AbortController();
        if (cancelAfter !== null) {
            clock.setTimeout(() => controller.abort(new Error('enough')), cancelAfter);
        }
        await client('http://api.example/', {signal: controller.signal}).catch(() => {});
    };
    const calls = Array.from({length: 1 + whole(30)}, () => call(whole(5000), random() < 0.3 ? whole(5000) : null));
    await clock.drive(Promise.all(calls));
    assert.deepEqual(early, []);
    const {gates: [{inFlight, waiting}]} = client.stats();
    assert.deepEqual({inFlight, waiting}, {inFlight: 0, waiting: 0});
    mood = () => 6;
    assert.equal((await clock.drive(client('http://api.example/'))).status, 200);
}
