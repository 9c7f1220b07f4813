// Request bodies: the same bytes on every attempt, or none after the first.

// {kind, make, type}: `kind` as in the decision core (none, buffered, rewindable, stream_once),
// `make()` gives what fetch is to send, `type` a Content-Type that goes with it, or null.
export async function readBody(body, {bufferBody, bufferStreams}) {
    if (body === null || body === undefined) {
        return {kind: 'none', make: () => undefined, type: null};
    }
    if (typeof body === 'function') {
        return {kind: 'rewindable', make: body, type: null};
    }
    if (body instanceof FormData) {
        return formBody(body, bufferBody);
    }
    if (isStream(body)) {
        return streamBody(body, bufferStreams ? bufferBody : 0);
    }
    const copy = copied(body);
    return {kind: 'buffered', make: () => copy, type: null};
}

export function isStream(body) {
    return typeof body === 'object' && body !== null && !(body instanceof Blob) && !(body instanceof URLSearchParams) &&
        (typeof body.getReader === 'function' || typeof body[Symbol.asyncIterator] === 'function');
}

// What the caller could change between attempts is copied, as fetch itself does: what it does not know it sends as text.
function copied(body) {
    if (ArrayBuffer.isView(body)) {
        return new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice();
    }
    if (Object.prototype.toString.call(body) === '[object ArrayBuffer]') { // another realm's too
        return body.slice(0);
    }
    if (body instanceof URLSearchParams) {
        return new URLSearchParams(body);
    }
    return body instanceof Blob ? body : String(body);
}

// A form is written once, since each writing has another boundary.
async function formBody(form, limit) {
    let bytes = 0;
    for (const [name, value] of form) {
        bytes += name.length + (typeof value === 'string' ? value.length : value.size);
    }
    if (bytes > limit) {
        const copy = new FormData();
        for (const [name, value] of form) {
            copy.append(name, value);
        }
        return once(copy);
    }
    const written = new Response(form);
    const type = written.headers.get('content-type');
    const buffer = await written.arrayBuffer();
    return {kind: 'buffered', make: () => buffer, type};
}

// A stream is read ahead up to the limit; a longer one is sent once, what was read first.
export async function streamBody(stream, limit) {
    if (limit === 0) {
        return once(stream);
    }
    if (stream instanceof ReadableStream) {
        new Response(stream); // throws where fetch would: the stream is locked, or its beginning is gone
    }
    const chunks = [];
    let bytes = 0;
    const iterator = chunksOf(stream);
    while (bytes <= limit) {
        const {done, value} = await iterator.next();
        if (done) {
            const whole = joined(chunks, bytes);
            return {kind: 'buffered', make: () => whole, type: null};
        }
        const chunk = typeof value === 'string' ? new TextEncoder().encode(value) : value;
        chunks.push(chunk);
        bytes += chunk.byteLength;
    }
    return once(new ReadableStream({
        async pull(controller) {
            if (chunks.length > 0) {
                controller.enqueue(chunks.shift());
                return;
            }
            const {done, value} = await iterator.next();
            done ? controller.close() : controller.enqueue(value);
        },
        cancel: (reason) => iterator.return?.(reason),
    }));
}

function chunksOf(stream) {
    if (typeof stream[Symbol.asyncIterator] === 'function') {
        return stream[Symbol.asyncIterator]();
    }
    const reader = stream.getReader();
    return {next: () => reader.read(), return: (reason) => reader.cancel(reason)};
}

function joined(chunks, bytes) {
    const whole = new Uint8Array(bytes);
    let at = 0;
    for (const chunk of chunks) {
        whole.set(chunk, at);
        at += chunk.byteLength;
    }
    return whole;
}

function once(stream) {
    const body = {kind: 'stream_once', type: null, make: () => {
        body.kind = 'stream_once_consumed';
        return stream;
    }};
    return body;
}

// Reads up to `limit` bytes of a response's body, or until `late`, where given, is settled:
// {bytes, complete, broken, response}. `response` has the whole body still before it: it is made anew,
// since a clone of an unfinished body holds on to its connection on older runtimes.
export async function peek(response, limit, late = null) {
    if (!response.body) {
        return {bytes: new Uint8Array(0), complete: true, broken: null, response};
    }
    const reader = response.body.getReader();
    const seen = {chunks: [], bytes: 0, pending: null, broken: null};
    let complete = false;
    while (!complete && seen.bytes <= limit) {
        seen.pending = reader.read();
        seen.pending.catch(() => {}); // told to whoever reads on, if anybody does
        const result = await (late ? Promise.race([seen.pending, late]) : seen.pending).catch((error) => {
            seen.broken = error;
        });
        if (!result) {
            break;
        }
        seen.pending = null;
        complete = result.done;
        if (!complete) {
            seen.chunks.push(result.value);
            seen.bytes += result.value.byteLength;
        }
    }
    const bytes = joined(seen.chunks, seen.bytes);
    return {bytes, complete, broken: seen.broken, response: remade(response, complete ? bytes : restOf(reader, seen))};
}

function restOf(reader, seen) {
    return new ReadableStream({
        async pull(controller) {
            if (seen.chunks.length > 0) {
                controller.enqueue(seen.chunks.shift());
                return;
            }
            const {done, value} = await (seen.pending ?? reader.read());
            seen.pending = null;
            done ? controller.close() : controller.enqueue(value);
        },
        cancel: (reason) => reader.cancel(reason),
    }, {highWaterMark: 0});
}

// What a Response may not be made with, fetch gives all the same: a status past 599, a text beyond Latin-1.
function remade(response, body) {
    const {status, statusText, headers, url, redirected, type} = response;
    const made = new Response(body, {status: Math.min(status, 599), headers});
    return shownAs(made, {status, statusText, url, redirected, type});
}

// The response with these fields in place of its own, its clones too.
export function shownAs(response, fields) {
    const {clone} = response;
    const all = {...fields, clone: () => shownAs(clone.call(response), fields)};
    for (const name in all) {
        Reflect.defineProperty(response, name, {value: all[name], configurable: true});
    }
    return response;
}

// A response that nobody will read gives its connection back.
export function discard(response) {
    response?.body?.cancel().catch(() => {});
}
