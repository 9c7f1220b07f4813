// What fetch is given so that a request that takes too long can be ended, and its connection with it.
//
// Everywhere an abort signal does that. To Node's fetch a signal costs as much as all else that this client does: a weak
// reference, a finalizer and a listener for each request. But Node's fetch also takes a `dispatcher`, the object that is
// asked to send the request, and what that is handed beside the request is told the handle that ends it (the Dispatcher
// interface of undici, which Node's fetch is). So a request gets a dispatcher that hands on to the one in force and keeps
// the handle; and no signal, once a request through the same fetch, with both, has shown that the dispatcher is asked.
//
// The dispatcher also keeps Node's fetch from a repeat of its own. What is answered 421 (Misdirected Request) fetch sends
// once more, unseen, whatever the method, as the Fetch standard lets it; whether to repeat is for the client to say. So
// fetch is shown another status in its place, and the answer gets its own back before anybody else sees it.

import {shownAs} from './bodies.js';

// Where the dispatcher in force is found: by fetch as it is from undici 8 on, and before that.
const IN_FORCE = Symbol.for('undici.globalDispatcher.2');
const IN_FORCE_BEFORE = Symbol.for('undici.globalDispatcher.1');

const MISDIRECTED = 421;
const STAND_IN = 400; // of the same class, and no status that fetch treats in its own way

const shown = {fetch: null, place: IN_FORCE_BEFORE}; // the fetch that was seen to ask its dispatcher, and whom it asks else

// The dispatcher to hand on to where a request through `fetch` needs no signal, else undefined.
export function dispatcherFor(fetch) {
    return fetch === shown.fetch ? globalThis[shown.place] : undefined;
}

export function openTransfer(fetch, {signal, extras}) {
    const usual = signal === null && !extras?.dispatcher;
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
        this.isMisdirected = false; // the last request was, and fetch does not know
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

    // The answer to the last request, with the status that the server gave it.
    asAnswered(response) {
        return this.isMisdirected ? shownAs(response, {status: MISDIRECTED}) : response;
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
        this.isMisdirected = false;
        if (isNew) {
            const {onResponseStart} = handler;
            handler.onResponseStart = (control, status, headers, text) =>
                onResponseStart.call(handler, control, this.statusForFetch(status), headers, text);
        } else {
            const {onHeaders} = handler;
            handler.onHeaders = (status, headers, resume, text) =>
                onHeaders.call(handler, this.statusForFetch(status), headers, resume, text);
        }
        return this.inForce.dispatch(options, handler);
    }

    statusForFetch(status) {
        if (status !== MISDIRECTED) {
            return status;
        }
        this.isMisdirected = true;
        return STAND_IN;
    }
}

// A request that is ended by a signal. A dispatcher that the caller gave is handed on to. Without one, where fetch is the
// platform's, it is seen whether it asks its dispatcher; a fetch of the caller's own may have chosen one for itself, which
// must stay.
class SignalledTransfer extends Transfer {
    constructor(fetch, signal, extras) {
        const given = extras?.dispatcher || undefined;
        super(fetch, given ?? globalThis[IN_FORCE_BEFORE] ?? globalThis[IN_FORCE]);
        this.given = given;
        this.place = null;
        this.unlink = null;
        this.controller = new AbortController();
        this.signal = this.linked(signal);
        this.watches = given === undefined && this.inForce !== undefined && fetch === globalThis.fetch;
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
        if (this.watches || typeof this.given?.dispatch === 'function') {
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
        } else if (this.watches && this.end !== null) {
            shown.fetch = this.send;
            shown.place = this.place;
        }
    }

    dispatch(options, handler) {
        this.place = handler.onConnect === undefined ? IN_FORCE : IN_FORCE_BEFORE;
        this.inForce = this.given ?? globalThis[this.place];
        return super.dispatch(options, handler);
    }
}
