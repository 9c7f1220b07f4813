// One call after another to a server on loopback, keep-alive: bare fetch and the client, in short turns, each pair of
// turns in an order of chance, so that what the machine or the collector of garbage does hits both.
//   node js_bench.mjs URL TURNS CALLS        prints {"bare": [{wall_us, cpu_us}, ...], "ours": [...]}

import {createClient} from '../../clients/js/src/index.js';

const [url, turns, calls] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const client = createClient();
const headers = {Authorization: 'Bearer sk_bench'};
const sides = {bare: (target) => fetch(target, {headers}), ours: (target) => client(target, {headers})};
const WARM_UP_CALLS = 2000;

async function measure(send, times) {
    const begun = process.cpuUsage();
    const from = performance.now();
    for (let n = 0; n < times; n += 1) {
        await (await send(url)).arrayBuffer();
    }
    const wall = performance.now() - from;
    const {user, system} = process.cpuUsage(begun);
    return {wall_us: (wall * 1000) / times, cpu_us: (user + system) / times};
}

const measured = {bare: [], ours: []};
for (const send of Object.values(sides)) {
    await measure(send, WARM_UP_CALLS);
}
for (let turn = 0; turn < turns; turn += 1) {
    const names = Object.keys(sides);
    for (const name of Math.random() < 0.5 ? names : names.reverse()) {
        measured[name].push(await measure(sides[name], calls));
    }
}
console.log(JSON.stringify(measured));
