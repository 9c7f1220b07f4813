// What is remembered of an answer or an error, on the object itself: a WeakMap of every answer would cost the garbage
// collector more than the call.

const INFO = Symbol('ration');
const closed = new WeakMap(); // of objects that take no field

// An abort's reason may have ended several calls: the last one counts.
export function mark(object, info) {
    if (!Reflect.defineProperty(object, INFO, {value: info, configurable: true, writable: true})) {
        closed.set(object, info);
    }
}

// On an answer that nobody has seen, and of a call without secrets: a plain field is made faster than one that is hidden.
export function markPlain(object, info) {
    object[INFO] = info;
}

export function markOf(object) {
    return closed.get(object) ?? object[INFO];
}
