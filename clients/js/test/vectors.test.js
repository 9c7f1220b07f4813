// Every case of clients/vectors.json, each kind by the function of its name.

import assert from 'node:assert/strict';
import {createHash} from 'node:crypto';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';

import {createClient, DEFAULT_POLICY} from '../src/index.js';
import * as core from '../src/core.js';
import {neverUntilAborted, toResponse, transportError, VirtualClock} from './virtual.js';

const vectors = JSON.parse(readFileSync(process.env.RATION_VECTORS ?? new URL('../../vectors.json', import.meta.url)));
const NOW = vectors.reference_now_unix_ms;
const RANDOM_SOURCES = [() => 0, () => 0.5, () => 1 - 2 ** -53, Math.random];

const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
const camelKeys = (object = {}) => Object.fromEntries(Object.entries(object).map(([key, value]) => [camel(key), value]));
const policyOf = (given) => core.makePolicy(camelKeys(given.policy));

function headerReader(headers = {}) {
    const lower = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    return (name) => lower.get(name) ?? null;
}

function toOutcome(given) {
    if (given.error) {
        return {type: 'transport_error', error: given.error};
    }
    const body = given.body === undefined ? null
        : new TextEncoder().encode(typeof given.body === 'string' ? given.body : JSON.stringify(given.body));
    return {type: 'response', status: given.status, header: headerReader(given.headers), body};
}

function within(value, {min, max}, what) {
    assert.ok(value >= min && value <= max, `${what}: ${value} is not within ${min}..${max}`);
}

function drawn(draws) {
    let next = 0;
    return () => draws[Math.min(next++, draws.length - 1)];
}

const KINDS = {
    decide(given, expect) {
        const state = {
            policy: policyOf(given), method: given.method, body: given.body ?? 'none',
            keyed: Object.keys(given.headers).some((name) => name.toLowerCase() === 'idempotency-key'),
            attemptsMade: given.attempts_made, elapsedMs: given.elapsed_ms, outcome: toOutcome(given.outcome),
            retryTokens: given.retry_tokens ?? 50, cancelled: given.cancelled ?? false, nowUnixMs: NOW,
        };
        const sources = given.draws ? [drawn(given.draws), ...RANDOM_SOURCES] : RANDOM_SOURCES;
        for (const [index, random] of sources.entries()) {
            const decision = core.decide({...state, random});
            assert.equal(decision.action, expect.action, JSON.stringify(decision));
            assert.equal(decision.reason, expect.reason);
            if (expect.wait_ms) {
                within(decision.waitMs, expect.wait_ms, 'wait');
            }
            if (expect.wait_ms_exact !== undefined && index === 0) {
                assert.ok(Math.abs(decision.waitMs - expect.wait_ms_exact) < 1e-6, `${decision.waitMs}`);
            }
            for (const [field, name] of [['error_type', 'errorType'], ['retry_at_unix_ms', 'retryAtUnixMs']]) {
                if (expect[field] !== undefined) {
                    assert.equal(decision[name], expect[field], field);
                }
            }
        }
    },

    retry_after({value, now_unix_ms: now, date}, {wait_ms: wait}) {
        assert.equal(core.parseRetryAfter(value, core.serverNow(date ?? null, now)), wait);
    },

    limit_headers({headers, now_unix_ms: now}, {limits}) {
        const read = core.parseLimits(headerReader(headers), now);
        assert.deepEqual(read.map(({name, remaining, resetInMs}) => ({name, remaining, reset_in_ms: resetInMs})), limits);
    },

    error_body({text, encoding = 'utf8', blanks = 0}, expect) {
        const read = core.readErrorBody(new Uint8Array(Buffer.from(text + ' '.repeat(blanks), encoding)));
        assert.deepEqual({type: read.type, wait_ms: read.waitMs}, expect);
    },

    backoff(given, {bound_ms: bounds}) {
        assert.deepEqual(given.retries.map((retry) => core.backoffBound(policyOf(given), retry)), bounds);
    },

    spread(given, expect) {
        const waits = Array.from({length: given.clients}, () => core.decide({
            policy: policyOf(given), method: 'GET', body: 'none', keyed: false, attemptsMade: 1, elapsedMs: 0,
            outcome: toOutcome(given.answer), retryTokens: 50, cancelled: false, nowUnixMs: NOW, random: Math.random,
        }).waitMs);
        waits.forEach((wait) => within(wait, expect.wait_ms, 'wait'));
        within(waits.reduce((a, b) => a + b) / waits.length, expect.mean_ms, 'mean');
        assert.ok(new Set(waits).size >= expect.distinct);
    },

    async gate(given, expect) {
        for (const random of RANDOM_SOURCES) {
            await oneGate(given, expect, random);
        }
    },

    in_flight({steps}) {
        const gate = new core.Gate(DEFAULT_POLICY, () => 0);
        const tickets = new Map();
        for (const step of steps) {
            const now = step.at_ms;
            if (step.ask) {
                const ticket = tickets.get(step.ask) ?? core.makeTicket();
                tickets.set(step.ask, ticket);
                assert.equal(gate.ask(ticket, now) === 'go' ? 'go' : 'hold', step.expect, JSON.stringify(step));
            } else if (step.leave) {
                gate.leave(tickets.get(step.leave), now);
            } else if (step.lost) {
                gate.done(tickets.get(step.lost), {told: null, refused: false}, now);
            } else {
                const told = core.readAnswer(toOutcome(step), NOW + now);
                gate.done(tickets.get(step.answer), {told, refused: step.status === 429 || step.status === 503}, now);
            }
        }
    },

    async herd(given, expect) {
        for (const random of RANDOM_SOURCES) {
            await oneHerd(given, expect, random);
        }
    },

    async call(given, expect) {
        for (const random of RANDOM_SOURCES) {
            await oneCall(given, expect, random);
        }
    },

    budget({steps}, expect) {
        const budget = new core.Budget(DEFAULT_POLICY);
        let now = 0;
        steps.forEach((step, index) => {
            for (let n = 0; n < (step.retries ?? 0); n += 1) {
                budget.retry(now);
            }
            for (let n = 0; n < (step.successes ?? 0); n += 1) {
                budget.success();
            }
            now += step.idle_ms ?? 0;
            assert.ok(Math.abs(budget.left - expect.tokens[index]) < 1e-9, `${budget.left}`);
            assert.equal(budget.tokens(now) >= 1 - 1e-9, expect.allowed[index], `step ${index}`);
        });
    },

    local_refusal({requests, accepts, k, draw}, expect) {
        assert.ok(Math.abs(core.rejectProbability(requests, accepts, k) - expect.probability) < 1e-5);
        const throttle = new core.Throttle({k});
        for (let n = 0; n < requests; n += 1) {
            throttle.sent(0);
        }
        for (let n = 0; n < accepts; n += 1) {
            throttle.answered(0, true);
        }
        assert.equal(throttle.rejects(0, () => draw) ? 'reject' : 'send', expect.action);
        assert.equal(throttle.rejects(120_001, () => 0), false); // two minutes later nothing is known
    },

    redirect(given, expect) {
        const policy = policyOf(given);
        const decision = core.decideRedirect(policy, {
            method: given.method, status: given.status, from: given.from, location: given.to,
            followed: given.followed ?? 0,
        });
        if (expect.action === 'stop') {
            assert.deepEqual(decision, {action: 'stop', reason: expect.reason});
            return;
        }
        const secrets = ['authorization', 'cookie', 'idempotency-key'];
        const kept = given.headers.filter((name) => !decision.dropSecrets || !secrets.includes(name.toLowerCase()));
        assert.deepEqual({action: decision.action, url: decision.url, method: decision.method, headers_kept: kept}, expect);
    },

    pace({rate_per_min: ratePerMin, burst, offered_at_ms: offered}, expect) {
        const pacer = new core.Pacer({ratePerMin, burst});
        assert.deepEqual(offered.map((at) => pacer.reserve(at)), expect.send_at_ms);
    },

    concurrency({steps, ...settings}, expect) {
        const limiter = new core.Concurrency(camelKeys(settings));
        for (const step of steps) {
            step.signal === 'throttled' ? limiter.throttled(step.at_ms) : limiter.windowOk(step.limit_was_reached);
        }
        assert.equal(limiter.limit, expect.limit);
    },

    breaker({enabled, outcomes, asks, ...settings}, expect) {
        const failed = (outcome) => !['ok', 'http_429'].includes(outcome);
        const breaker = enabled ? new core.Breaker(camelKeys(settings)) : null;
        outcomes.forEach((outcome) => breaker?.outcome(0, failed(outcome)));
        const actions = asks.map(({at_ms: at, then}) => {
            const allowed = breaker?.allows(at) ?? true;
            if (allowed && then) {
                breaker?.outcome(at, failed(then));
            }
            return allowed ? 'send' : 'reject';
        });
        assert.deepEqual(actions, expect.actions);
    },
};

const ORIGIN = 'https://api.example';

// A client on a virtual clock before a scripted server: `reply(send)` gives what is answered.
function virtualClient(given, random, reply) {
    const clock = new VirtualClock(NOW, {timerErrorMs: given.timer_error_ms});
    const sends = [];
    const fetch = async (url, init) => {
        const send = {at: clock.time, url, init, headers: new Headers(init.headers)};
        sends.push(send);
        const answer = await reply(send, clock);
        send.repliedAt = clock.time;
        send.status = answer.status;
        return answer;
    };
    const events = [];
    const waits = [];
    const hooks = {
        onSend: ({attempt}) => events.push(`attempt:${attempt}`),
        onWait: (wait) => {
            events.push(`wait:${wait.source}`);
            waits.push(wait);
        },
        onDone: ({reason}) => events.push(`done:${reason}`),
    };
    const client = createClient({
        ...camelKeys(given.policy), clock, random, fetch, hooks, attemptHeader: null,
        bucket: ({url, operation}) => url.searchParams.get('bucket') ?? operation,
    });
    return {client, clock, sends, events, waits};
}

function requestOf(on) {
    const operation = on.operation ?? on.bucket;
    const [method, path] = operation.split(' ');
    const url = `${ORIGIN}${path}?bucket=${encodeURIComponent(on.bucket)}`;
    return [url, {method, headers: {Authorization: `Bearer ${on.credential}`}, ration: {maxRetries: 0}}];
}

async function oneGate({steps, next}, expect, random) {
    // All calls of the steps are sent at 0, before anything is known; each has its answer at its moment.
    const answers = steps.map(({at_ms: at, on, answer}) => {
        const [url, init] = requestOf(on);
        return {url, init, at, answer};
    });
    const scripted = virtualClient({}, random, async (send, clock) => {
        if (send.headers.get('x-step') === 'lost') {
            throw transportError('connection_lost');
        }
        const step = answers.find(({taken}) => taken === send.url + send.headers.get('x-step'));
        if (!step) {
            return toResponse({status: 200});
        }
        await clock.sleep(step.at);
        return toResponse(step.answer);
    });
    const early = answers.map((step, index) => {
        step.taken = step.url + index;
        return scripted.client(step.url, {...step.init, headers: {...step.init.headers, 'X-Step': String(index)}});
    });
    if (next.key_in_doubt) {
        const [url, init] = requestOf(next.on);
        const headers = {...init.headers, 'X-Step': 'lost', 'Idempotency-Key': 'in-doubt'};
        early.push(scripted.client(url, {...init, headers}).catch(() => {}));
    }
    await scripted.clock.drive(Promise.all(early));
    if (next.at_ms > scripted.clock.time) {
        await scripted.clock.drive(scripted.clock.sleep(next.at_ms - scripted.clock.time));
    }
    await checkNext(scripted, next, expect);
}

async function checkNext({client, clock, sends}, next, expect) {
    const [url, init] = requestOf(next.on);
    if (next.key_in_doubt) {
        init.headers['Idempotency-Key'] = 'in-doubt';
    }
    const before = sends.length;
    const result = await clock.drive(client(url, init).then((response) => response, (error) => error));
    if (expect.action === 'reject') {
        assert.equal(result.reason, expect.reason);
        assert.equal(result.info.retryAt, NOW + expect.retry_at_ms);
        assert.equal(sends.length, before);
        return;
    }
    assert.equal(sends.length, before + 1, String(result));
    within(sends.at(-1).at, expect.send_at_ms, 'sent');
}

function windowServer({limit, every_ms: every, latency_ms: latency}) {
    const used = new Map();
    const refused = new Map();
    const reply = async (send, clock) => {
        await clock.sleep(latency / 2);
        const window = Math.floor(clock.wall() / every);
        used.set(window, (used.get(window) ?? 0) + 1);
        const remaining = Math.max(0, limit - used.get(window));
        const headers = {'X-RateLimit-Remaining': String(remaining), 'X-RateLimit-Reset': String((window + 1) * every / 1000)};
        const good = used.get(window) <= limit;
        if (!good) {
            refused.set(window, (refused.get(window) ?? 0) + 1);
            headers['Retry-After'] = '1';
        }
        await clock.sleep(latency / 2);
        return toResponse({status: good ? 200 : 429, headers});
    };
    return {reply, refused};
}

async function oneHerd(given, expect, random) {
    const window = given.window ? windowServer(given.window) : null;
    const scripted = async (send, clock) => {
        const {reply, latency_ms: latency} = given.server.find(({until_ms: until}) => until === null || send.at < until);
        await clock.sleep(latency);
        if (reply.error) {
            throw transportError(reply.error);
        }
        return toResponse(reply);
    };
    let closing = true;
    const reply = (send, clock) => {
        if (closing) {
            return toResponse(given.steps_before[0].answer);
        }
        return (window?.reply ?? scripted)(send, clock);
    };
    const world = virtualClient(given, random, reply);
    const {client, clock, sends} = world;
    if (given.steps_before) {
        await clock.drive(client(...requestOf(given.steps_before[0].on)));
        sends.length = 0;
    }
    closing = false;
    if (given.start_ms > 0) {
        await clock.drive(clock.sleep(given.start_ms));
    }
    if (given.wall_clock_jump) {
        clock.setTimeout(() => {
            clock.wallOffset += given.wall_clock_jump.by_ms;
        }, given.wall_clock_jump.at_ms);
    }
    const cancel = new AbortController();
    if (given.cancel_at_ms !== undefined) {
        clock.setTimeout(() => cancel.abort(new Error('enough')), given.cancel_at_ms - clock.time);
    }
    const ends = [];
    const calls = Array.from({length: given.calls}, (_, index) => client(`${ORIGIN}/v1/availability?n=${index}`, {
        headers: {Authorization: 'Bearer tok-A'}, signal: cancel.signal,
        ration: {bucket: () => 'GET /v1/availability'},
    }).then((response) => response.status, (error) => error).finally(() => ends.push(clock.time)));
    const results = await clock.drive(Promise.all(calls));
    checkHerd({given, expect, world, results, ends, window, cancel});
}

function checkHerd({given, expect, world, results, ends, window, cancel}) {
    const {sends, clock} = world;
    for (const {from, to, max} of expect.sends_between_ms ?? []) {
        const count = sends.filter(({at}) => at >= from && at < to).length;
        assert.ok(count <= max, `${count} sends from ${from} to ${to}`);
    }
    if (expect.all_succeed) {
        assert.deepEqual(results.filter((result) => result !== 200), []);
    }
    if (expect.probes_before_first_reply) {
        const quiet = sends.findIndex(({at}, index) => at - (sends[index - 1]?.at ?? -1000) >= 1000 && at > given.start_ms);
        const reply = sends[quiet].repliedAt;
        const early = sends.filter(({at}) => at >= sends[quiet].at && at < reply).length;
        assert.equal(early, expect.probes_before_first_reply);
    }
    if (expect.sends_per_call_max) {
        const perCall = Map.groupBy?.(sends, ({url}) => url) ?? sends.reduce((all, send) =>
            all.set(send.url, [...(all.get(send.url) ?? []), send]), new Map());
        assert.ok(Math.max(...[...perCall.values()].map((group) => group.length)) <= expect.sends_per_call_max);
    }
    if (expect.last_send_before_ms) {
        assert.ok(sends.at(-1).at < expect.last_send_before_ms, `last send at ${sends.at(-1).at}`);
    }
    if (expect.refused_per_later_window_max !== undefined) {
        const later = [...window.refused.entries()].sort(([a], [b]) => a - b)
            .filter(([number]) => number > Math.floor(NOW / given.window.every_ms));
        assert.ok(later.every(([, count]) => count <= expect.refused_per_later_window_max), JSON.stringify(later));
    }
    if (expect.result === 'cancelled') {
        assert.ok(results.every((result) => result === cancel.signal.reason));
        ends.forEach((end) => within(end, expect.ends_ms, 'ended'));
    }
    if (expect.sends_total !== undefined) {
        assert.equal(sends.length, expect.sends_total);
    }
    if (expect.timers_left !== undefined) {
        assert.equal(clock.timers.size, expect.timers_left);
    }
}

function bodyOf(body) {
    if (!body) {
        return undefined;
    }
    const bytes = new Uint8Array(body.bytes).map((_, index) => index % 251);
    const stream = () => new ReadableStream({
        start(controller) {
            controller.enqueue(bytes);
            controller.close();
        },
    });
    return {buffered: bytes, rewindable: stream, once: stream()}[body.source];
}

async function oneCall(given, expect, random) {
    let answers = [];
    const bodies = [];
    const world = virtualClient(given, random, async (send, clock) => {
        if (send.init.body !== undefined) {
            bodies.push(Buffer.from(await new Response(send.init.body).arrayBuffer()));
        }
        const answer = answers.shift();
        await clock.sleep(answer.takes_ms ?? 0);
        if (answer.error === 'never_answers') {
            return neverUntilAborted(send.init.signal);
        }
        if (answer.error) {
            throw transportError(answer.error);
        }
        return toResponse(answer);
    });
    for (const [index, list] of given.answers.entries()) {
        answers = [...list];
        world.sends.length = 0;
        world.waits.length = 0;
        const init = {method: given.method, headers: given.headers, body: bodyOf(given.body)};
        const result = await world.clock.drive(world.client(`${ORIGIN}/v1/thing`, init).then((r) => r.status, (e) => e));
        assert.equal(world.sends.length, expect.sends[index], `sends of call ${index}`);
        checkResult(result, expect.result[index], world);
        checkWaits(world.waits, expect.waits?.[index]);
        checkKeys(world, init, expect);
        given.allSends = [...(index ? given.allSends : []), ...world.sends];
    }
    checkCallTotals(given, expect, world, bodies);
}

function checkResult(result, expected) {
    if (typeof expected === 'number') {
        assert.equal(result, expected);
    } else if (result.reason) {
        assert.equal(result.reason, expected);
    } else {
        assert.equal(result.cause.message, expected);
    }
}

function checkWaits(waits, expected) {
    if (expected) {
        assert.deepEqual(waits.map(({source}) => source), expected.map(({source}) => source));
        waits.forEach(({ms}, index) => within(ms, expected[index], `wait ${index}`));
    }
}

function checkKeys({sends}, init, expect) {
    if (expect.keys_distinct !== undefined) {
        const keys = new Set(sends.map(({headers}) => headers.get('idempotency-key')));
        assert.equal(keys.size, Math.min(1, sends.length), 'the sends of one call carry one key');
    }
}

function checkCallTotals(given, expect, world, bodies) {
    const keys = new Set(given.allSends.map(({headers}) => headers.get('idempotency-key')).filter(Boolean));
    if (expect.keys_distinct !== undefined) {
        assert.equal(keys.size, expect.keys_distinct);
    }
    if (expect.keys) {
        assert.deepEqual([...keys], expect.keys);
    }
    if (expect.bodies_distinct) {
        assert.equal(new Set(bodies.map((body) => createHash('sha256').update(body).digest('hex'))).size, expect.bodies_distinct);
        assert.ok(bodies.every((body) => body.length === expect.content_length));
    }
    if (expect.events) {
        assert.deepEqual(world.events, expect.events);
    }
    if (expect.ends_ms) {
        within(world.clock.time, expect.ends_ms, 'ended');
    }
    assert.equal(world.clock.timers.size, 0, 'no timer is left');
}

test('the defaults are those of the vectors', () => {
    for (const [name, value] of Object.entries(vectors.defaults)) {
        assert.deepEqual(DEFAULT_POLICY[camel(name)], value, name);
    }
    assert.equal(Object.keys(DEFAULT_POLICY).length, Object.keys(vectors.defaults).length);
});

test('every case has a runner and names rules that there are', () => {
    for (const {name, kind, rules} of vectors.cases) {
        assert.ok(KINDS[kind], `${name}: ${kind}`);
        assert.ok(rules.every((rule) => vectors.rules[rule]), name);
    }
});

for (const {name, kind, about, given, expect} of vectors.cases) {
    test(`${kind} ${name}: ${about}`, () => KINDS[kind]?.(structuredClone(given), expect));
}
