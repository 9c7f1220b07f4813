// What all calls of a client share so that each costs little: one timer, the places that are asked.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Deadlines} from '../src/clock.js';
import {GateBook, makePolicy} from '../src/core.js';
import {createClient} from '../src/index.js';
import {MAX_PLACES, MAX_PLACE_CHARACTERS, PlaceBook} from '../src/request.js';
import {VirtualClock} from './virtual.js';

const entry = (clock, ms, late = () => {}, holds = true) => ({at: clock.now() + ms, late, holds});

// Runs the clock to `moment`, timers and all.
function runTo(clock, moment) {
    for (;;) {
        const [first] = [...clock.timers].sort(([, a], [, b]) => a.at - b.at);
        if (!first || first[1].at > moment) {
            clock.time = moment;
            return;
        }
        clock.timers.delete(first[0]);
        clock.time = Math.max(clock.time, first[1].at);
        first[1].callback();
    }
}

test('each deadline is called at its moment, on one timer', () => {
    const clock = new VirtualClock(0);
    const deadlines = new Deadlines(clock);
    const late = [];
    for (const ms of [300, 100, 200, 100]) {
        deadlines.add(entry(clock, ms, () => late.push([ms, clock.now()])));
        assert.equal(clock.timers.size, 1);
    }
    runTo(clock, 99);
    assert.deepEqual(late, []);
    runTo(clock, 1000);
    assert.deepEqual(late, [[100, 100], [100, 100], [200, 200], [300, 300]]);
    assert.equal(clock.timers.size, 0);
});

test('one that was removed is never called, and the last takes the timer with it', () => {
    const clock = new VirtualClock(0);
    const deadlines = new Deadlines(clock);
    const late = [];
    const first = deadlines.add(entry(clock, 100, () => late.push('first')));
    const second = deadlines.add(entry(clock, 200, () => late.push('second')));
    deadlines.remove(first);
    runTo(clock, 150);
    assert.deepEqual(late, []);
    assert.equal(clock.timers.size, 1);
    deadlines.remove(second);
    assert.equal(clock.timers.size, 0);
    deadlines.add(entry(clock, 50, () => late.push('third')));
    runTo(clock, 1000);
    assert.deepEqual(late, ['third']);
});

test('a timer that fires early is set again, and one further off than timers reach is no hurry', () => {
    const clock = new VirtualClock(0, {timerErrorMs: -15});
    const deadlines = new Deadlines(clock);
    const late = [];
    deadlines.add(entry(clock, 1000, () => late.push(clock.now())));
    deadlines.add(entry(clock, 2 ** 33, () => late.push(clock.now())));
    deadlines.add(entry(clock, Infinity, () => assert.fail('never')));
    runTo(clock, 2000);
    assert.deepEqual(late, [1000]);
    runTo(clock, 2 ** 33 - 1);
    assert.equal(late.length, 1);
    runTo(clock, 2 ** 33);
    assert.deepEqual(late, [1000, 2 ** 33]);
});

test('one that adds and removes others when it is called', () => {
    const clock = new VirtualClock(0);
    const deadlines = new Deadlines(clock);
    const late = [];
    const other = deadlines.add(entry(clock, 200, () => late.push('other')));
    deadlines.add(entry(clock, 100, () => {
        deadlines.remove(other);
        deadlines.add(entry(clock, 50, () => late.push(clock.now())));
    }));
    runTo(clock, 1000);
    assert.deepEqual(late, [150]);
    assert.equal(clock.timers.size, 0);
});

test('a timer of the platform holds the process only while something waits', () => {
    const timer = {held: true, ref() { this.held = true; }, unref() { this.held = false; }};
    let made = 0;
    const deadlines = new Deadlines({now: () => 0, clearTimeout: () => assert.fail('it may stay'), setTimeout: () => {
        made += 1;
        return timer;
    }});
    for (let round = 0; round < 3; round += 1) {
        const a = deadlines.add(entry({now: () => 0}, 100));
        const b = deadlines.add(entry({now: () => 0}, 100));
        assert.ok(timer.held);
        deadlines.remove(a);
        assert.ok(timer.held);
        deadlines.remove(b);
        assert.ok(!timer.held);
    }
    assert.equal(made, 1);
});

test('a place is read once, and only so many are kept', () => {
    const book = new PlaceBook();
    const place = book.find('http://api.example/v1/quote?x=1#part');
    assert.deepEqual([place.href, place.origin, place.path],
        ['http://api.example/v1/quote?x=1#part', 'http://api.example', '/v1/quote']);
    assert.equal(book.find('http://api.example/v1/quote?x=1#part'), place);
    assert.equal(place.keysOf('GET', 'a').narrow, 'http://api.example\na\nGET /v1/quote');
    assert.equal(place.keysOf('GET', 'b').narrow, 'http://api.example\nb\nGET /v1/quote');
    assert.equal(place.keysOf('PUT', 'b').narrow, 'http://api.example\nb\nPUT /v1/quote');
    let most = 0;
    for (let n = 0; n < 3 * MAX_PLACES; n += 1) {
        book.find(`http://api.example/${n}`);
        most = Math.max(most, book.places.size);
    }
    assert.equal(most, MAX_PLACES);
    const long = (length) => 'http://api.example/'.padEnd(length, 'x');
    assert.equal(book.find(long(MAX_PLACE_CHARACTERS)), book.find(long(MAX_PLACE_CHARACTERS)));
    assert.notEqual(book.find(long(MAX_PLACE_CHARACTERS + 1)), book.find(long(MAX_PLACE_CHARACTERS + 1)));
    assert.throws(() => book.find('nowhere'), TypeError);
    assert.notEqual(book.find(new URL('http://api.example/')), book.find(new URL('http://api.example/')));
});

test('a gate that holds nobody back is forgotten for a new one; where there is none, newcomers share one', () => {
    const book = new GateBook(makePolicy(), () => 0, 3);
    book.open('a', 0).close(10_000, 0);
    book.open('idle', 0);
    book.open('b', 0).close(10_000, 0);
    book.open('c', 0).close(10_000, 0);
    assert.deepEqual([...book.gates.keys()].sort(), ['a', 'b', 'c']);
    const common = book.open('d', 0);
    common.close(20_000, 0);
    assert.equal(book.open('e', 0), common, 'what was told there holds too');
    assert.equal(book.gates.size, 3);
    assert.notEqual(book.open('e', 10_000), common);
    assert.equal(book.gates.size, 3);
});

test('those that have to stay are looked at last the next time', () => {
    const book = new GateBook(makePolicy(), () => 0, 200);
    for (let n = 0; n < 200; n += 1) {
        book.open(`g${n}`, 0).close(n < 150 ? 10_000 : 0, 0);
    }
    const common = book.open('new', 0);
    book.open('new', 0);
    assert.notEqual(book.open('new', 0), common);
    assert.ok(book.find('g0'));
    assert.ok(!book.find('g150'));
});

test('how far off a gate may open is for each call to say', async () => {
    const clock = new VirtualClock(Date.UTC(2026, 10, 30));
    const sends = [];
    let status = 429;
    const fetch = async () => {
        sends.push(clock.now());
        return new Response(null, {status, headers: status === 429 ? {'Retry-After': '90'} : {}});
    };
    const client = createClient({fetch, clock, random: () => 0, totalDeadlineMs: 400_000});
    const ask = (ration) => clock.drive(client('https://api.example/a', {ration}).catch((error) => error));
    assert.equal((await ask({})).status, 429);
    status = 200;
    assert.equal((await ask({})).reason, 'gate_closed');
    assert.equal((await ask({maxServerWaitMs: 89_999})).reason, 'gate_closed');
    assert.equal(sends.length, 1);
    assert.equal((await ask({maxServerWaitMs: 90_000})).status, 200);
    assert.deepEqual(sends, [0, 90_000]);
});
