// A virtual clock, and a fetch that asks a function instead of a server.

export class VirtualClock {
    constructor(wallStart, {timerErrorMs = 0} = {}) {
        this.time = 0;
        this.wallOffset = wallStart;
        this.timerErrorMs = timerErrorMs;
        this.timers = new Map();
        this.next = 1;
        this.now = () => this.time;
        this.wall = () => this.wallOffset + this.time;
        this.setTimeout = (callback, ms) => {
            const error = ms >= 20 ? this.timerErrorMs : 0;
            this.timers.set(this.next, {at: this.time + Math.max(0, ms + error), callback});
            return this.next++;
        };
        this.clearTimeout = (timer) => this.timers.delete(timer);
    }

    sleep(ms) {
        return new Promise((resolve) => this.setTimeout(resolve, ms));
    }

    // Lets everything run until the promise is settled or nothing is left to happen.
    async drive(promise) {
        let settled = false;
        const done = promise.finally(() => {
            settled = true;
        });
        done.catch(() => {});
        for (;;) {
            await settle();
            if (settled) {
                return done;
            }
            const first = [...this.timers].sort(([a, x], [b, y]) => x.at - y.at || a - b)[0];
            if (!first) {
                throw new Error(`nothing is left to happen at ${this.time} ms`);
            }
            this.timers.delete(first[0]);
            this.time = Math.max(this.time, first[1].at);
            first[1].callback();
        }
    }
}

// Streams and clones need a few turns of the event loop.
export async function settle() {
    for (let turn = 0; turn < 4; turn += 1) {
        await new Promise((resolve) => setImmediate(resolve));
    }
}

// A transport error as Node's fetch throws it.
export function transportError(kind) {
    const codes = {
        dns_failed: 'ENOTFOUND', connect_failed: 'ECONNREFUSED', connection_lost: 'ECONNRESET',
        attempt_timeout: 'UND_ERR_HEADERS_TIMEOUT', tls_certificate: 'DEPTH_ZERO_SELF_SIGNED_CERT',
    };
    return new TypeError('fetch failed', {cause: Object.assign(new Error(kind), {code: codes[kind]})});
}

export function toResponse({status, headers = {}, body}) {
    const text = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body);
    return new Response(status === 304 ? null : text, {status, headers});
}

export function neverUntilAborted(signal) {
    return new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), {once: true});
    });
}
