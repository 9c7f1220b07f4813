/** Milliseconds in all fields whose name ends in Ms. */
export interface Policy {
    /** Retries after the first send. */
    maxRetries: number;
    backoffBaseMs: number;
    backoffFactor: number;
    backoffCapMs: number;
    /** The random extra on top of a wait that the server asked for. */
    retryAfterExtraMs: number;
    /** When the server asks for more, the call ends at once. */
    maxServerWaitMs: number;
    /** For the whole call: sends, waits, gates. */
    totalDeadlineMs: number;
    /** For one attempt, until its answer's head has come. */
    attemptTimeoutMs: number;
    minAttemptMs: number;
    gateGuardMs: number;
    retryStatuses: readonly number[];
    /** Error types that make any status retryable. */
    retryTypes: readonly string[];
    neverRetryTypes: readonly string[];
    /** Error types that close their own operation only, and are retried only after a wait that they tell. */
    narrowTypes: readonly string[];
    safeMethods: readonly string[];
    retryErrorKinds: readonly string[];
    nothingSentKinds: readonly string[];
    /** Whether a key is made for a POST or PATCH that has none: never, always, on routes such as "POST /v1/bookings", or as a function says. */
    idempotency: 'caller' | 'auto' | readonly string[] | ((method: string, url: URL) => boolean);
    idempotencyHeader: string;
    budgetCapacity: number;
    budgetRetryCost: number;
    budgetSuccessDeposit: number;
    budgetFloorMs: number;
    maxRedirects: number;
    /** Follow a redirect that turns the method into GET. */
    redirectToGet: boolean;
}

export type WaitSource = 'retry_after' | 'reset' | 'body' | 'backoff' | 'gate' | 'pace' | 'concurrency';

export type Reason =
    | 'success' | 'cancelled' | 'type_never_retry' | 'status_not_retryable' | 'error_not_retryable' | 'unsafe_method'
    | 'body_not_replayable' | 'attempts_exhausted' | 'server_wait_too_long' | 'deadline' | 'budget_exhausted'
    | 'gate_closed' | 'breaker_open' | 'throttled' | 'too_many_redirects' | 'bad_location' | 'redirect_to_insecure'
    | 'redirect_would_change_method';

/** What is known of a call that has ended. */
export interface CallInfo {
    readonly attempts: number;
    readonly reason: Reason;
    /** When the server would take another call, in Unix milliseconds; null when it did not say. */
    readonly retryAt: number | null;
    readonly idempotencyKey: string | null;
    readonly waitedMs: number;
    readonly status: number | null;
    readonly errorType: string | null;
}

export interface Hooks {
    /** `url` is whole: its query may hold what belongs into no log. */
    onSend?(event: {attempt: number; method: string; url: string}): void;
    onAnswer?(event: {attempt: number; status: number | null; error: string | null; response: Response | null}): void;
    onWait?(event: {attempt: number; source: WaitSource; reason: string | null; ms: number | null}): void;
    onDone?(event: Omit<CallInfo, 'idempotencyKey'> & {attempt: number}): void;
}

export interface BucketRequest {
    method: string;
    url: URL;
    /** Method and path. */
    operation: string;
}

export interface Clock {
    now(): number;
    wall(): number;
    setTimeout(callback: () => void, ms: number): unknown;
    clearTimeout(timer: unknown): void;
}

export interface ClientOptions extends Partial<Policy> {
    /** The fetch to send with; globalThis.fetch when left out. */
    fetch?: (url: string, init: RequestInit) => Promise<Response>;
    hooks?: Hooks;
    /** Which calls share a gate: those of one path (default), all of an origin, or those with the same result. */
    bucket?: 'path' | 'origin' | ((request: BucketRequest) => string);
    /** Who the caller is; the Authorization or X-Api-Key field when left out. */
    credential?: (request: {url: URL; method: string; headers?: HeadersInit}) => string;
    /** Bytes of forms, Request bodies and (with bufferStreams) streams that are kept for a repeat. */
    bufferBody?: number;
    bufferStreams?: boolean;
    /** A good answer counts only when so many bytes of it, or all, have come; 0 (default): its head is enough. */
    wholeAnswers?: number;
    /** Who follows redirects: this client (default in Node), or fetch (default in browsers). */
    redirects?: 'client' | 'platform';
    /** The field that carries the attempt's number on repeats; null: none (default in browsers). */
    attemptHeader?: string | null;
    /** Fields that another origin must not see, beside Authorization, Cookie and the key. */
    secretHeaders?: readonly string[];
    /** The client is inside another one that retries: make no retries. */
    nested?: boolean;
    maxGates?: number;
    breaker?: boolean | {windowMs?: number; minOutcomes?: number; failureRatio?: number; openMs?: number};
    throttle?: boolean | {k?: number; windowMs?: number};
    concurrency?: boolean | {
        initial?: number; min?: number; max?: number; increasePerWindow?: number; decreaseFactor?: number;
        decreaseAtMostEveryMs?: number;
    };
    pace?: {ratePerMin: number; burst?: number} | null;
    clock?: Clock;
    random?: () => number;
    newKey?: () => string;
}

/** Of what all calls share, no call can have its own. */
export type SharedOptions = 'gateGuardMs' | 'budgetCapacity' | 'budgetRetryCost' | 'budgetSuccessDeposit' | 'budgetFloorMs';
export type CallOptions = Partial<Omit<Policy, SharedOptions>> & Pick<ClientOptions, 'bucket' | 'wholeAnswers'>;

export type ClientRequestInit = Omit<RequestInit, 'body'> & {
    /** As fetch takes it, or a function that makes it anew for each attempt. */
    body?: BodyInit | AsyncIterable<Uint8Array> | (() => BodyInit | AsyncIterable<Uint8Array>) | null;
    duplex?: 'half';
    /** Settings of this call, over the client's. */
    ration?: CallOptions;
};

export interface GateState {
    origin: string;
    bucket: string;
    state: 'open' | 'closed' | 'probing';
    opensInMs: number;
    inFlight: number;
    waiting: number;
    remaining: number | null;
}

export interface Stats {
    calls: number;
    sends: number;
    retries: Record<string, number>;
    waitMs: Partial<Record<WaitSource, number>>;
    localRefusals: Record<string, number>;
    budgets: Record<string, number>;
    gates: GateState[];
}

export interface Client {
    (input: string | URL | Request, init?: ClientRequestInit): Promise<Response>;
    /** What is known of the call that ended with this answer or error. */
    info(result: unknown): CallInfo | undefined;
    stats(): Stats;
}

/** A call that ended without an answer to give back: gate_closed, deadline, breaker_open, throttled. */
export class RationError extends Error {
    readonly reason: Reason;
    readonly info: CallInfo;
}

export const DEFAULT_POLICY: Readonly<Policy>;
export function createClient(options?: ClientOptions): Client;
