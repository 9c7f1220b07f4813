// The clock and the waits that the client uses; tests put a virtual one in its place.

export const SYSTEM_CLOCK = {
    now: () => performance.now(), // monotonic milliseconds
    wall: () => Date.now(), // Unix milliseconds
    setTimeout: (callback, ms) => setTimeout(callback, ms),
    clearTimeout: (timer) => clearTimeout(timer),
};

const MAX_TIMER_MS = 2 ** 31 - 1; // longer ones fire at once

// One waiting call. `wake` ends a wait, also one that has not begun.
export class Waiter {
    constructor(clock) {
        this.clock = clock;
        this.woken = false;
        this.finish = null;
        this.wake = () => {
            this.woken = true;
            this.finish?.();
        };
    }

    // Until `moment` (null: for ever), a wake, or the signal's abort, whichever is first. A timer that
    // fires early is set again.
    async until(moment, signal) {
        while (!this.woken && !signal?.aborted && (moment === null || this.clock.now() < moment)) {
            await this.once(moment, signal);
        }
        this.woken = false;
    }

    once(moment, signal) {
        return new Promise((resolve) => {
            let timer;
            const finish = () => {
                this.finish = null;
                signal?.removeEventListener('abort', finish);
                this.clock.clearTimeout(timer);
                resolve();
            };
            this.finish = finish;
            signal?.addEventListener('abort', finish);
            if (moment !== null) {
                const ms = Math.min(Math.max(1, Math.ceil(moment - this.clock.now())), MAX_TIMER_MS);
                timer = this.clock.setTimeout(finish, ms);
            }
        });
    }
}
