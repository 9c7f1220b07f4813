"""One logical call: admit, send, decide, wait, again.

`Call.run` is a generator that does no I/O: it yields what it needs (`Send`, `Wait`) and is resumed with
the result, so one text serves threads, event loops and the virtual clock of the tests. Whoever
drives it holds `Shared.lock` around each step and delivers `events` to the hooks afterwards.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Dict, Generator, List, NamedTuple, Optional, Tuple, Union

from .decide import CallState, Decision, Outcome, Told, decide, read_answer
from .extras import Concurrency
from .gate import Gate, Ticket
from .limits import tells_limits
from .policy import Policy
from .shared import RequestFacts, Shared, key_rule

_WAKEABLE = ("gate", "concurrency")  # other waits end at their moment and not before
MESSAGES = {
    "gate_closed": "the server asked for no calls before a moment that is further off than calls may wait",
    "deadline": "the time for the whole call is over, or what the server asks for does not fit in it",
    "breaker_open": "the circuit breaker is open",
    "throttled": "refused locally: the server accepts too little of what it is sent",
    "cancelled": "the call was cancelled",
}


class CallInfo(NamedTuple):
    """What is known of a call that has ended. `retry_at`: when the server would take another call, in Unix
    milliseconds; None when it did not say."""

    attempts: int
    reason: str
    retry_at: Optional[float]
    idempotency_key: Optional[str]
    waited_ms: float
    status: Optional[int]
    error_type: Optional[str]


class Send(NamedTuple):
    timeout_ms: float
    attempt: int
    added_headers: Tuple[Tuple[str, str], ...]


class Wait(NamedTuple):
    until: float


@dataclasses.dataclass
class Ending:
    """`outcome` is None when the call was refused locally or cancelled."""

    info: CallInfo
    outcome: Optional[Outcome]


_SUCCESS = Decision("stop", "success")  # what decide says of every answer below 400
_NOTHING_TOLD = Told()


class _Stopped(Exception):
    pass


Step = Union[Send, Wait]


class Call:
    # As a call begins; set on the instance when they change.
    redirect_reason: Optional[str] = None  # set by the transport: a redirect that it did not follow
    same_origin = True  # set by the transport: False when redirects led an attempt away, where the key does not go
    cancelled = False  # set from outside, together with a call of `wake`
    woken = False
    waker: Optional[Callable[[], None]] = None  # set while the driver waits
    _attempts, _waited_ms, _spread = 0, 0.0, False
    _last: Tuple[Optional[int], Optional[str]] = (None, None)
    _retry_at: Optional[float] = None
    _first: Optional[Tuple[Outcome, Told]] = None  # of the attempt that was sent at once

    def __init__(self, shared: Shared, facts: RequestFacts, body_kind: Callable[[], str],
                 policy: Optional[Policy] = None, before: Optional["Call"] = None) -> None:
        """`before`: this call follows the redirect that ended that one, and goes on with its time, count and key."""
        settings = shared.settings
        self._shared, self._facts, self._body_kind = shared, facts, body_kind
        self._policy, self._clock = policy or settings.policy, settings.clock
        self._started_at = self._clock.now()
        self._makes_key = key_rule(self._policy) if policy else shared.makes_key
        self.events: List[Tuple[str, Dict[str, Any]]] = []
        self._hooked = bool(settings.hooks)
        given = facts.header(self._policy.idempotency_header.lower())
        self._followed = before is not None
        self._made_key: Optional[str] = None
        if before:
            self._started_at, self._attempts, self._waited_ms = before._started_at, before._attempts - 1, before._waited_ms
            self._made_key = before._made_key if before._facts.origin == facts.origin else None
        elif given is None and facts.method in ("POST", "PATCH") and self._makes_key(facts.method, facts.path):
            self._made_key = settings.new_key()
        self.key = given if given is not None else self._made_key
        prefix = f"{facts.origin}\n{settings.credential_of(facts)}\n"
        self._narrow_key = prefix + facts.operation
        self._gate_key = self._narrow_key if settings.bucket == "path" else prefix + settings.bucket_of(facts)
        self._doubt_key = f"{facts.origin}\n{self.key}"
        self._origin = shared.origin(facts.origin)
        self._tickets: List[Tuple[Gate, Ticket]] = []

    @property
    def policy(self) -> Policy:
        """The transport's, or the request's own."""
        return self._policy

    def wake(self) -> None:
        self.woken = True
        if self.waker:
            self.waker()

    def send_at_once(self) -> Optional[Send]:
        """The usual case without a generator: nothing holds the call. None when `run` has to begin it."""
        origin, shared = self._origin, self._shared
        if self.cancelled or self._hooked or shared.pacer or origin.concurrency or origin.breaker or origin.throttle:
            return None
        gates = self._gates()
        if len(gates) > 1:
            return None
        ticket, now = Ticket(self.wake), self._clock.now()
        if not gates[0].ask(ticket, now).go:
            gates[0].leave(ticket, now)
            return None
        shared.calls += not self._followed
        self._tickets.append((gates[0], ticket))
        return self._send()

    def end_at_once(self, outcome: Outcome) -> Optional[Ending]:
        """After `send_at_once`: the end, when there is nothing to decide. None when `run` has to go on."""
        good = outcome.status is not None and outcome.status < 400 and not self.cancelled
        if good and not tells_limits(outcome.header):
            self._learn_success(outcome)
            return self._end(outcome, _SUCCESS)
        told = read_answer(outcome, self._clock.wall())
        self._learn(outcome, told)
        if good:
            return self._end(outcome, _SUCCESS)
        self._first = (outcome, told)
        return None

    def give_back(self) -> None:
        """Whatever the call holds or stands in line for, without anything learnt."""
        if self._tickets:
            self._give_back()

    def run(self) -> Generator[Step, Any, Ending]:
        if self._first is None:
            self._shared.calls += not self._followed
        try:
            while True:
                if self._first is None:
                    self._stop_if_cancelled()
                    yield from self._paced()
                    yield from self._admitted()
                    outcome = yield self._send()
                    if self._hooked:
                        self._event("on_answer", attempt=self._attempts, status=outcome.status, error=outcome.error,
                                    header=outcome.header)
                    told = read_answer(outcome, self._clock.wall())
                    self._learn(outcome, told)
                else:
                    (outcome, told), self._first = self._first, None
                if outcome.status is not None and outcome.status < 400 and not self.cancelled:
                    return self._end(outcome, _SUCCESS)
                decision = self._decision(outcome, told)
                if decision.action == "stop":
                    return self._end(outcome, decision)
                yield from self._wait_to_retry(outcome, decision)
        except _Stopped as stopped:
            return Ending(self._finish(stopped.args[0], self._retry_at), None)
        finally:
            self._give_back()

    # Admission

    def _paced(self) -> Generator[Step, Any, None]:
        if self._shared.pacer:
            send_at = self._shared.pacer.reserve(self._clock.now())
            self._stop_if_late(send_at, None)
            yield from self._wait(send_at, "pace")

    def _admitted(self) -> Generator[Step, Any, None]:
        for gate in self._gates():
            ticket = Ticket(self.wake, self._spread)
            self._tickets.append((gate, ticket))
            yield from self._pass_gate(gate, ticket)
        if self._origin.concurrency:
            yield from self._pass_limit(self._origin.concurrency)
        self._pass_local_refusals()

    def _gates(self) -> List[Gate]:
        main = self._shared.gates.open(self._gate_key, self._clock.now())
        # A repeat under a key may be of a call that was done: its answer is there to be had.
        repeats = self.key is not None and (self._attempts > 0 or self._doubt_key in self._shared.doubts)
        narrow = None if repeats else self._shared.narrow_gates.find(self._narrow_key)
        return [narrow, main] if narrow else [main]

    def _pass_gate(self, gate: Gate, ticket: Ticket) -> Generator[Step, Any, None]:
        while True:
            now = self._clock.now()
            answer = gate.ask(ticket, now)
            if answer.go:
                return
            if answer.reject_until is not None:
                self._refuse("gate_closed", self._clock.wall() + answer.reject_until - now)
            self._stop_if_late(now if answer.wait_until is None else answer.wait_until, answer.wait_until)
            yield from self._wait(answer.wait_until, "gate")

    def _pass_limit(self, concurrency: Concurrency) -> Generator[Step, Any, None]:
        try:
            while not concurrency.ask(self.wake):
                self._stop_if_late(self._clock.now(), None)
                yield from self._wait(None, "concurrency")
        except BaseException:
            concurrency.leave(self.wake)
            raise

    def _pass_local_refusals(self) -> None:
        origin, now = self._origin, self._clock.now()
        if origin.throttle and origin.throttle.rejects(now, self._shared.settings.random):
            reason, retry_at = "throttled", None
        elif origin.breaker and not origin.breaker.allows(now):
            reason, retry_at = "breaker_open", self._clock.wall() + origin.breaker.open_until - now
        else:
            if origin.throttle:
                origin.throttle.sent(now)
            return
        if origin.concurrency:
            origin.concurrency.done(now, None)
        self._refuse(reason, retry_at)

    def _give_back(self) -> None:
        now = self._clock.now()
        for gate, ticket in self._tickets:
            if ticket.granted:
                gate.done(ticket, None, False, now)
            else:
                gate.leave(ticket, now)
        self._tickets = []

    # Sending and learning

    def _send(self) -> Send:
        self._attempts += 1
        self._shared.sends += 1
        added: List[Tuple[str, str]] = []
        if self._made_key:
            added.append((self._policy.idempotency_header, self._made_key))
        attempt_header = self._shared.settings.attempt_header
        if self._attempts > 1 and attempt_header:
            added.append((attempt_header, str(self._attempts)))
        left = self._started_at + self._policy.total_deadline_ms - self._clock.now()
        if self._hooked:
            self._event("on_send", attempt=self._attempts, method=self._facts.method, url=str(self._facts.url))
        return Send(max(1, min(self._policy.attempt_timeout_ms, left)), self._attempts, tuple(added))

    def _learn(self, outcome: Outcome, told: Told) -> None:
        now = self._clock.now()
        refused = outcome.status in self._policy.retry_statuses
        narrow = refused and told.error_type in self._policy.narrow_types
        self._last = (told.status, told.error_type)
        if narrow and told.floor_ms is not None:
            self._shared.narrow_gates.open(self._narrow_key, now).close(now + told.floor_ms, 0)
        lesson: Optional[Told] = told if outcome.status is not None else None
        if lesson and (narrow or not self.same_origin or told.error_type in self._policy.never_retry_types):
            lesson = Told(status=told.status)
        tickets, self._tickets = self._tickets, []
        for gate, ticket in tickets:
            gate.done(ticket, lesson, refused and not narrow, now)
        self._learn_health(outcome, now)
        if self.key is not None:
            self._learn_doubt(outcome)

    def _learn_success(self, outcome: Outcome) -> None:
        """What `_learn` does when an answer tells nothing but that it went well, and no optional part is on."""
        now, tickets, self._tickets = self._clock.now(), self._tickets, []
        for gate, ticket in tickets:
            gate.done(ticket, _NOTHING_TOLD, False, now)
        self._last = (outcome.status, None)
        self._origin.budget.success()
        if self.key is not None:
            self._learn_doubt(outcome)

    def _learn_health(self, outcome: Outcome, now: float) -> None:
        origin = self._origin
        if outcome.status is not None and outcome.status < 400:
            origin.budget.success()
        if outcome.error == "cancelled":
            self._forget_health(now)
            return
        down = outcome.status is None or outcome.status == 503
        if origin.breaker:
            origin.breaker.outcome(now, down)
        if origin.throttle:
            origin.throttle.answered(now, not down)
        if origin.concurrency:
            throttled = outcome.status in (429, 503) or outcome.error == "attempt_timeout"
            origin.concurrency.done(now, "throttled" if throttled else "ok" if outcome.status is not None else None)

    def _forget_health(self, now: float) -> None:
        if self._origin.breaker:
            self._origin.breaker.abandoned()
        if self._origin.concurrency:
            self._origin.concurrency.done(now, None)

    def abandoned(self) -> None:
        """The driver was ended while it sent: nobody knows what became of the attempt."""
        self._learn_health(Outcome(error="cancelled"), self._clock.now())
        if self.key is not None:
            self._shared.add_doubt(self._doubt_key)

    def _learn_doubt(self, outcome: Outcome) -> None:
        if outcome.status is not None:
            self._shared.doubts.pop(self._doubt_key, None)
        elif outcome.error not in self._policy.nothing_sent_kinds:
            self._shared.add_doubt(self._doubt_key)

    def _decision(self, outcome: Outcome, told: Told) -> Decision:
        now = self._clock.now()
        state = CallState(
            policy=self._policy, method=self._facts.method, keyed=self.key is not None and self.same_origin,
            body=self._body_kind(),
            attempts_made=self._attempts, elapsed_ms=now - self._started_at,
            retry_tokens=self._origin.budget.tokens(now), cancelled=self.cancelled,
            now_unix_ms=self._clock.wall(), random=self._shared.settings.random)
        return decide(state, outcome, told)

    # Waiting

    def _wait_to_retry(self, outcome: Outcome, decision: Decision) -> Generator[Step, Any, None]:
        reason = str(outcome.error if outcome.status is None else outcome.status)
        now = self._clock.now()
        self._shared.count("retries", reason)
        self._origin.budget.retry(now)
        self._spread = decision.source != "backoff"
        yield from self._wait(now + decision.wait_ms, decision.source, reason)

    def _wait(self, moment: Optional[float], source: str, reason: Optional[str] = None) -> Generator[Step, Any, None]:
        """Until the moment, a wake or the deadline; a timer that fires early is set again."""
        begun = self._clock.now()
        latest = self._started_at + self._policy.total_deadline_ms - self._policy.min_attempt_ms
        until = latest if moment is None else min(moment, latest)
        if until > begun or reason is not None:
            self._event("on_wait", attempt=self._attempts, source=source, reason=reason,
                        ms=None if moment is None else moment - begun)
        while self._clock.now() < until and not self.cancelled:
            if self.woken and source in _WAKEABLE:
                break
            self.woken = False
            yield Wait(until)
        self.woken = False
        waited = self._clock.now() - begun
        if waited > 0:
            self._waited_ms += waited
            self._shared.count("wait_ms", source, waited)
        self._stop_if_cancelled()

    def _stop_if_late(self, moment: float, opens_at: Optional[float]) -> None:
        """Stops the call when nothing could be sent at `moment` any more."""
        now = self._clock.now()
        latest = self._started_at + self._policy.total_deadline_ms - self._policy.min_attempt_ms
        if moment > latest or now >= latest:
            self._refuse("deadline", None if opens_at is None else self._clock.wall() + opens_at - now)

    def _stop_if_cancelled(self) -> None:
        if self.cancelled:
            raise _Stopped("cancelled")

    def _refuse(self, reason: str, retry_at: Optional[float]) -> None:
        self._shared.count("local_refusals", reason)
        self._retry_at = retry_at
        raise _Stopped(reason)

    # Ends

    def _end(self, outcome: Outcome, decision: Decision) -> Ending:
        reason = decision.reason or ""
        if reason == "success" and self.redirect_reason:
            reason = self.redirect_reason
        return Ending(self._finish(reason, decision.retry_at_unix_ms), outcome)

    def _finish(self, reason: str, retry_at: Optional[float]) -> CallInfo:
        info = CallInfo(self._attempts, reason, retry_at, self.key, self._waited_ms, *self._last)
        if self._hooked:  # hooks lead to logs, where no key belongs
            self._event("on_done", info=info._replace(idempotency_key=None), attempt=self._attempts, reason=reason)
        return info

    def _event(self, hook: str, **event: Any) -> None:
        if self._hooked and hook in self._shared.settings.hooks:
            # Delivered later, maybe after another thread's: the order in which things happened is that of now_ms.
            self.events.append((hook, {"now_ms": self._clock.now(), "wall_ms": self._clock.wall(), **event}))
