import type {Policy, Reason, WaitSource} from './index.js';

export {DEFAULT_POLICY} from './index.js';

export type HeaderReader = (lowerCaseName: string) => string | null;
export type Outcome =
    | {type: 'response'; status: number; header: HeaderReader; body: Uint8Array | null}
    | {type: 'transport_error'; error: string};
export interface Limit {
    name: string;
    remaining: number;
    resetInMs: number | null;
    epochMs: number | null;
}
export interface Told {
    status: number | null;
    errorType: string | null;
    limits: Limit[];
    floorMs: number | null;
    source: WaitSource;
}
export interface DecideState {
    policy: Readonly<Policy>;
    method: string;
    keyed: boolean;
    body: 'none' | 'buffered' | 'rewindable' | 'stream_once' | 'stream_once_consumed';
    attemptsMade: number;
    elapsedMs: number;
    outcome: Outcome;
    told?: Told;
    retryTokens: number;
    cancelled: boolean;
    nowUnixMs: number;
    random: () => number;
}
export type Decision = {errorType: string | null; retryAtUnixMs: number | null} & (
    | {action: 'retry'; waitMs: number; source: WaitSource}
    | {action: 'stop'; reason: Reason});
export type RedirectDecision =
    | {action: 'follow'; url: string; method: string; dropBody: boolean; dropSecrets: boolean}
    | {action: 'stop'; reason: Reason};

export const MAX_WAIT_MS: number;
export const MAX_BODY_BYTES: number;
export function makePolicy(given?: Partial<Policy>): Readonly<Policy>;
export function backoffBound(policy: Readonly<Policy>, retry: number): number;
export function parseHttpDate(text: string, nowUnixMs: number): number | null;
export function parseRetryAfter(value: string | null, nowUnixMs: number): number | null;
export function serverNow(dateHeader: string | null, nowUnixMs: number): number;
export function readErrorBody(bytes: Uint8Array | null): {type: string | null; waitMs: number | null};
export function parseLimits(header: HeaderReader, nowUnixMs: number): Limit[];
export function readAnswer(outcome: Outcome, nowUnixMs: number): Told;
export function decide(state: DecideState): Decision;
export function isRedirect(status: number): boolean;
export function decideRedirect(policy: Readonly<Policy>, hop: {
    method: string; status: number; from: string; location: string | null; followed: number;
}): RedirectDecision;
export function rejectProbability(requests: number, accepts: number, k: number): number;

export interface Ticket {
    granted: boolean;
    wake?: () => void;
}
export function makeTicket(wake?: () => void, spread?: boolean, maxWaitMs?: number | null): Ticket;
export class Gate {
    constructor(policy: Readonly<Policy>, random: () => number);
    ask(ticket: Ticket, now: number): 'go' | {waitUntil: number | null; rejectUntil?: undefined} | {rejectUntil: number};
    leave(ticket: Ticket, now: number): void;
    done(ticket: Ticket, lesson: {told: Told | null; refused: boolean}, now: number): void;
    close(toldAt: number, guardMs: number): void;
    readonly opensAt: number;
    readonly remaining: number | null;
    readonly inFlight: number;
}
export class GateBook {
    constructor(policy: Readonly<Policy>, random: () => number, max: number);
    find(key: string): Gate | undefined;
    open(key: string, now: number): Gate;
}
export class Budget {
    constructor(policy: Readonly<Policy>);
    readonly left: number;
    tokens(now: number): number;
    retry(now: number): void;
    success(): void;
}
export class Throttle {
    constructor(settings?: {k?: number; windowMs?: number});
    rejects(now: number, random: () => number): boolean;
    sent(now: number): void;
    answered(now: number, healthy: boolean): void;
}
export class Breaker {
    constructor(settings?: {windowMs?: number; minOutcomes?: number; failureRatio?: number; openMs?: number});
    allows(now: number): boolean;
    outcome(now: number, failed: boolean): void;
    abandoned(): void;
}
export class Concurrency {
    constructor(settings?: {initial?: number; min?: number; max?: number; increasePerWindow?: number; decreaseFactor?: number; decreaseAtMostEveryMs?: number});
    readonly limit: number;
    windowOk(limitWasReached: boolean): void;
    throttled(now: number): void;
}
export class Pacer {
    constructor(settings: {ratePerMin: number; burst?: number});
    reserve(now: number): number;
}
