// One call after another to a server on loopback, keep-alive: bare fetch, or the client over it. Each has a process of its
// own: compiled code is shaped by all that a program runs, and no program runs both.
//   node js_bench.mjs SIDE URL TURNS CALLS        SIDE: bare or ours; prints [{wall_us, cpu_us}, ...], one for each turn

import {createClient} from '../../clients/js/src/index.js';

const [side, url, turns, calls] = [process.argv[2], process.argv[3], Number(process.argv[4]), Number(process.argv[5])];
const client = createClient();
const headers = {Authorization: 'Bearer sk_bench'};
const sides = {bare: (target) => fetch(target, {headers}), ours: (target) => client(target, {headers})};
const send = sides[side];
const WARM_UP_CALLS = 3000;

async function measure(times) {
    const begun = process.cpuUsage();
    const from = performance.now();
    for (let n = 0; n < times; n += 1) {
        await (await send(url)).arrayBuffer();
    }
    const wall = performance.now() - from;
    const {user, system} = process.cpuUsage(begun);
    return {wall_us: (wall * 1000) / times, cpu_us: (user + system) / times};
}

const measured = [];
await measure(WARM_UP_CALLS);
for (let turn = 0; turn < turns; turn += 1) {
    measured.push(await measure(calls));
}
console.log(JSON.stringify(measured));
