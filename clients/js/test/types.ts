// Compiled, not run: what a caller writes must be accepted, what is wrong must not.

import {createClient, RationError, type CallInfo} from 'ration-client';
import {decide, makePolicy} from 'ration-client/core';

const client = createClient({idempotency: ['POST /v1/bookings'], maxRetries: 3, breaker: true, hooks: {onWait: ({ms}) => void ms}});
const plainFetch: typeof fetch = client as typeof fetch;

async function use(): Promise<CallInfo | undefined> {
    const answer: Response = await client('https://api.example', {method: 'PUT', body: () => 'x', ration: {maxRetries: 1}});
    await plainFetch(new URL('https://api.example'));
    try {
        await client(new Request('https://api.example'), {signal: AbortSignal.timeout(10)});
    } catch (error) {
        if (error instanceof RationError && error.reason === 'gate_closed') {
            return error.info;
        }
    }
    return client.info(answer);
}

// @ts-expect-error: a number is wanted
createClient({maxRetries: 'three'});
// @ts-expect-error: no such setting
createClient({maxRetrys: 3});
// @ts-expect-error: a list is wanted
createClient({secretHeaders: 'X-Secret'});
// @ts-expect-error: no such hook
createClient({hooks: {onWiat() {}}});
createClient({secretHeaders: Object.freeze(['X-Secret']), attemptHeader: null, hooks: {onWait: undefined}});

const decision = decide({
    policy: makePolicy({maxRetries: 2}), method: 'GET', keyed: false, body: 'none', attemptsMade: 1, elapsedMs: 0,
    outcome: {type: 'transport_error', error: 'connection_lost'}, retryTokens: 1, cancelled: false, nowUnixMs: 0, random: () => 0,
});
const wait: number = decision.action === 'retry' ? decision.waitMs : 0;
export {use, wait};
