// The pure core: decisions without clock, socket or timer. For tests, and for other transports.

export {DEFAULT_POLICY, makePolicy, backoffBound} from './policy.js';
export {parseHttpDate} from './http_date.js';
export {parseRetryAfter, readErrorBody, serverNow, MAX_WAIT_MS, MAX_BODY_BYTES} from './hints.js';
export {parseLimits} from './limits.js';
export {decide, readAnswer} from './decide.js';
export {Gate, GateBook, makeTicket} from './gate.js';
export {Budget} from './budget.js';
export {decideRedirect, isRedirect} from './redirect.js';
export {Breaker, Concurrency, Pacer, Throttle, rejectProbability} from './extras.js';
