// The clock and the waits that the client uses; tests put a virtual one in its place.

export const SYSTEM_CLOCK = {
    now: () => performance.now(), // monotonic milliseconds
    wall: () => Date.now(), // Unix milliseconds
    setTimeout: (callback, ms) => setTimeout(callback, ms),
    clearTimeout: (timer) => clearTimeout(timer),
};

const MAX_TIMER_MS = 2 ** 31 - 1; // longer ones fire at once

// Moments by which something has to be over, all on one timer: most attempts end long before theirs,
// and a timer of its own would cost each of them more than all else that the client does.
//
// The timer stands at the earliest of the moments or before it; when it fires early it is set again.
// Between calls it stays where it can be told to hold no process (`unref`), else it is cleared.
export class Deadlines {
    constructor(clock) {
        this.clock = clock;
        this.entries = new Set();
        this.holding = 0;
        this.timer = null;
        this.firesAt = Infinity;
        this.fire = () => this.fired();
    }

    // Calls `entry.late()` at the moment `entry.at`, unless the entry is removed before. `entry.holds` says whether the
    // process must not end until then.
    add(entry) {
        this.entries.add(entry);
        if (this.timer === null || entry.at < this.firesAt) {
            this.arm(entry.at);
        }
        if (entry.holds) {
            this.holding += 1;
            if (this.holding === 1) {
                this.timer.ref?.();
            }
        }
        return entry;
    }

    remove(entry) {
        if (!this.entries.delete(entry)) {
            return;
        }
        if (entry.holds) {
            this.holding -= 1;
            if (this.holding === 0) {
                this.timer.unref?.();
            }
        }
        if (this.entries.size === 0 && this.timer.unref === undefined) {
            this.clear();
        }
    }

    arm(moment) {
        this.clear();
        const now = this.clock.now();
        this.timer = this.clock.setTimeout(this.fire, Math.min(Math.max(1, Math.ceil(moment - now)), MAX_TIMER_MS));
        this.firesAt = Math.min(moment, now + MAX_TIMER_MS);
        if (this.holding === 0) {
            this.timer.unref?.();
        }
    }

    clear() {
        if (this.timer !== null) {
            this.clock.clearTimeout(this.timer);
            this.timer = null;
            this.firesAt = Infinity;
        }
    }

    fired() {
        this.timer = null;
        this.firesAt = Infinity;
        const now = this.clock.now();
        let next = Infinity;
        const due = [];
        for (const entry of this.entries) {
            if (entry.at <= now) {
                due.push(entry);
            } else {
                next = Math.min(next, entry.at);
            }
        }
        for (const entry of due) {
            this.entries.delete(entry);
            this.holding -= entry.holds ? 1 : 0;
        }
        if (this.entries.size > 0) {
            this.arm(next);
        }
        for (const entry of due) {
            entry.late();
        }
    }
}

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
