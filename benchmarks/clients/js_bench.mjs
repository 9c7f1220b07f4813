// One call after another to a server on loopback, keep-alive: bare fetch and the client, in turns.
//   node js_bench.mjs URL ROUNDS CALLS        prints {"bare": [us per call, ...], "ours": [...]}

import {createClient} from '../../clients/js/src/index.js';

const [url, rounds, calls] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const client = createClient();
const headers = {Authorization: 'Bearer sk_bench'};
const sides = {bare: (target) => fetch(target, {headers}), ours: (target) => client(target, {headers})};

async function measure(send) {
    const begun = process.cpuUsage();
    const from = performance.now();
    for (let n = 0; n < calls; n += 1) {
        await (await send(url)).arrayBuffer();
    }
    const wall = performance.now() - from;
    const {user, system} = process.cpuUsage(begun);
    return {wall_us: (wall * 1000) / calls, cpu_us: (user + system) / calls};
}

const measured = {bare: [], ours: []};
for (const send of Object.values(sides)) {
    await measure(send); // warm
}
for (let round = 0; round < rounds; round += 1) {
    for (const [name, send] of Object.entries(sides)) {
        measured[name].push(await measure(send));
    }
}
console.log(JSON.stringify(measured));
