// What fetch is given so that a request that takes too long can be ended, and its connection with it.
//
// Everywhere an abort signal does that. To Node's fetch a signal costs as much as all else that this client does: a weak
// reference, a finalizer and a listener for each request. But Node's fetch also takes a `dispatcher`, the object that is
// asked to send the request, and what that is handed beside the request is told the handle that ends it (the Dispatcher
// interface of undici, which Node's fetch is). So a request gets a dispatcher that hands on to the one in force and keeps
// the handle; and no signal, once a request through the same fetch, with both, has shown that the dispatcher is asked.

// Where the dispatcher in force is found: by fetch as it is from undici 8 on, and before that.
const IN_FORCE = Symbol.for('undici.globalDispatcher.2');
const IN_FORCE_BEFORE = Symbol.for('undici.globalDispatcher.1');

const shown = {fetch: null, place: IN_FORCE_BEFORE}; // the fetch that was seen to ask its dispatcher, and whom it asks else

// The dispatcher to hand on to where a request through `fetch` needs no signal, else undefined.
export function dispatcherFor(fetch) {
    return fetch === shown.fetch ? globalThis[shown.place] : undefined;
}

export function openTransfer(fetch, {signal, extras}) {
    const usual = signal === null && extras?.dispatcher === undefined;
    const inForce = usual ? dispatcherFor(fetch) : undefined;
    return inForce === undefined ? new SignalledTransfer(fetch, signal, extras) : new Transfer(fetch, inForce);
}

// A request that is ended by the handle that its dispatcher is told.
export class Transfer {
    constructor(fetch, inForce) {
        this.send = fetch;
        this.inForce = inForce;
        this.end = null; // the handle, once the request has a connection
        this.isCut = false;
        this.reason = undefined;
    }

    // The promise may outlast `cut`.
    fetch(url, init) {
        if (this.isCut) {
            return Promise.reject(this.reason);
        }
        init.dispatcher = this;
        const {send} = this; // fetch is no method of anything
        return send(url, init);
    }

    // Ends the request and the reading of its answer, now or as soon as it has begun; nothing, when it is over.
    cut(reason) {
        this.isCut = true;
        this.reason = reason;
        this.end?.(reason);
    }

    // The attempt is over. An answer's body may still be read.
    over() {}

    // As fetch's dispatcher: what fetch asks of one.

    get isMockActive() {
        return this.inForce.isMockActive;
    }

    dispatch(options, handler) {
        const isNew = handler.onConnect === undefined;
        const step = isNew ? 'onRequestStart' : 'onConnect';
        const begin = handler[step];
        handler[step] = (handle, context) => {
            this.end = isNew ? (reason) => handle.abort(reason) : handle;
            if (this.isCut) {
                this.end(this.reason);
            } else {
                begin.call(handler, handle, context);
            }
        };
        return this.inForce.dispatch(options, handler);
    }
}

// A request that is ended by a signal. Where fetch is the platform's it is seen whether it asks its dispatcher too.
class SignalledTransfer extends Transfer {
    constructor(fetch, signal, extras) {
        super(fetch, globalThis[IN_FORCE_BEFORE] ?? globalThis[IN_FORCE]);
        this.place = null;
        this.unlink = null;
        this.controller = new AbortController();
        this.signal = this.linked(signal);
        this.watches = this.inForce !== undefined && fetch === globalThis.fetch && extras?.dispatcher === undefined;
    }

    // The caller's abort must reach the body too, which is read after the attempt is over.
    linked(signal) {
        const {controller} = this;
        if (signal === null) {
            return controller.signal;
        }
        if (typeof AbortSignal.any === 'function') {
            return AbortSignal.any([signal, controller.signal]);
        }
        const follow = () => controller.abort(signal.reason);
        signal.addEventListener('abort', follow, {once: true});
        this.unlink = () => signal.removeEventListener('abort', follow);
        return controller.signal;
    }

    fetch(url, init) {
        init.signal = this.signal;
        if (this.watches) {
            init.dispatcher = this;
        }
        const {send} = this;
        return send(url, init);
    }

    cut(reason) {
        this.controller.abort(reason);
    }

    over(answered) {
        if (!answered) {
            this.unlink?.();
        } else if (this.end !== null) {
            shown.fetch = this.send;
            shown.place = this.place;
        }
    }

    dispatch(options, handler) {
        this.place = handler.onConnect === undefined ? IN_FORCE : IN_FORCE_BEFORE;
        this.inForce = globalThis[this.place];
        return super.dispatch(options, handler);
    }
}
