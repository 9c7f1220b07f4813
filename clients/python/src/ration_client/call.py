"""One logical call: admit, send, decide, wait, again.

A call does no I/O: `Call.step` says what it needs (`Send`, `Wait`) and is called again with the outcome, so one
text serves threads, event loops and the virtual clock of the tests. Whoever drives it holds `Shared.lock` around
each step and delivers `events` to the hooks afterwards.

Most calls are let in at once and answered well: those are `plain.Plain`s, and a Call takes over where they end.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable, Dict, Generator, List, NamedTuple, Optional, Tuple, Union

from .decide import NOTHING_TOLD, CallState, Decision, Outcome, Told, decide, read_answer
from .extras import Concurrency
from .gate import ENTERED, Answer, Gate, Ticket
from .plain import CallInfo, Plain, doubt_key, gate_key, key_of
from .policy import Policy
from .shared import Origin, RequestFacts, Send, Shared, key_rule

_WAKEABLE = ("gate", "concurrency")  # other waits end at their moment and not before
MESSAGES = {
    "gate_closed": "the server asked for no calls before a moment that is further off than calls may wait",
    "deadline": "the time for the whole call is over, or what the server asks for does not fit in it",
    "breaker_open": "the circuit breaker is open",
    "throttled": "refused locally: the server accepts too little of what it is sent",
    "cancelled": "the call was cancelled",
}


class Wait(NamedTuple):
    until: float


@dataclasses.dataclass
class Ending:
    """`outcome` is None when the call was refused locally or cancelled, `call` when it was a plain one."""

    info: CallInfo
    outcome: Optional[Outcome]
    call: Optional[Call] = None


class _Stopped(Exception):
    pass


Place = Tuple[Gate, Ticket]
Want = Union[Send, Wait]
Step = Union[Send, Wait, Ending]


class Call:
    __slots__ = ("redirect_reason", "redirects", "same_origin", "cancelled", "woken", "waker", "events", "key", "_shared", "_facts",
                 "_body_kind", "_policy", "_clock", "_hooked", "_followed", "_origin", "_gate_key", "_narrow", "_main",
                 "_started_at", "_attempts", "_waited_ms", "_spread", "_sending", "_last", "_retry_at", "_made_key",
                 "_told_key", "_steps")
    _origin: Origin  # set, as is `_started_at`, by the first step

    def __init__(self, shared: Shared, facts: RequestFacts, body_kind: Callable[[], str],
                 policy: Optional[Policy] = None, before: Optional["Call"] = None, plain: Optional[Plain] = None) -> None:
        """`before`: this call follows the redirect that ended that one, and goes on with its time, count and key.
        `plain`: this call goes on where that one ended, with the outcome of its send as the first `step`."""
        settings = shared.settings
        self._shared, self._facts, self._body_kind = shared, facts, body_kind
        self._policy, self._clock = policy or settings.policy, settings.clock
        self.redirect_reason: Optional[str] = None  # set by the transport: a redirect that it did not follow
        self.redirects = 0  # followed by the transport within the attempt
        self.same_origin = True  # set by the transport: False when redirects led an attempt away, where the key does not go
        self.cancelled = False  # set from outside, together with a call of `wake`
        self.woken = False
        self.waker: Optional[Callable[[], None]] = None  # set while the driver waits
        self.events: List[Tuple[str, Dict[str, Any]]] = []
        self._narrow: Optional[Place] = None  # at the gate of its operation
        self._main: Optional[Place] = None  # at the gate of its bucket
        self._started_at = self._waited_ms = 0.0
        self._attempts = 0
        self._spread = self._sending = False
        self._last: Tuple[Optional[int], Optional[str]] = (None, None)
        self._retry_at: Optional[float] = None
        self._made_key: Optional[str] = None
        self._steps: Optional[Generator[Want, Any, Ending]] = None  # `run`, once it was begun
        self._hooked = bool(settings.hooks)
        self._followed = before is not None
        given = facts.header(policy.idempotency_header.lower() if policy else shared.key_header)
        self.key = key_of(given)
        if plain:
            self._started_at, self._attempts, self._main = plain.started_at, 1, (plain.gate, ENTERED)
        elif before:
            self._follow(before)
        elif given is None and facts.method in ("POST", "PATCH"):
            self._make_key(key_rule(policy) if policy else shared.makes_key)
        self._told_key: Optional[str] = before._told_key if before and self.key is None else self.key
        self._gate_key = gate_key(settings, facts)

    def _follow(self, before: "Call") -> None:
        self._started_at, self._attempts, self._waited_ms = before._started_at, before._attempts - 1, before._waited_ms
        if before._facts.origin == self._facts.origin:
            self._made_key = before._made_key
            if self.key is None:
                self.key = self._made_key

    def _make_key(self, rule: Callable[[str, str], bool]) -> None:
        if rule(self._facts.method, self._facts.path):
            self.key = self._made_key = self._shared.settings.new_key()

    @property
    def policy(self) -> Policy:
        """The transport's, or the request's own."""
        return self._policy

    @property
    def _narrow_key(self) -> str:
        return f"{self._facts.origin}\n{self._shared.settings.credential_of(self._facts)}\n{self._facts.operation}"

    @property
    def _doubt_key(self) -> str:
        return doubt_key(self._facts, self.key)

    def wake(self) -> None:
        self.woken = True
        if self.waker:
            self.waker()

    def step(self, outcome: Optional[Outcome] = None) -> Step:
        """What the call needs next, or its end. `outcome`: of the send that it, or the plain call before it, asked for."""
        if self._steps is None:
            self._steps, outcome = self.run(outcome), None
        try:
            return self._steps.send(outcome)
        except StopIteration as stop:
            return stop.value

    def leave(self) -> None:
        """The driver was ended: nothing of the call stays behind, and what it sent has an unknown end."""
        if self._sending:
            if self._shared.has_parts:
                self._tell_parts(Outcome(error="cancelled"), self._clock.now())
            if self.key is not None:
                self._shared.add_doubt(self._doubt_key)
        if self._steps is not None:
            self._steps.close()
        else:
            self._give_back_all()

    def run(self, outcome: Optional[Outcome]) -> Generator[Want, Any, Ending]:
        """`outcome`: of a plain call's send, from where this call goes on."""
        self._origin = self._shared.origin(self._facts.origin)
        try:
            if outcome is None and not self._followed:
                self._started_at = self._clock.now()
                self._shared.calls += 1
            while True:
                if outcome is None:
                    self._stop_if_cancelled()
                    yield from self._paced()
                    yield from self._admitted()
                    outcome = yield self._send(self._clock.now())
                told = self._learn(outcome)
                if outcome.status is not None and outcome.status < 400 and not self.cancelled:
                    return self._end(outcome, "success", None)
                decision = self._decision(outcome, told)
                if decision.action == "stop":
                    return self._end(outcome, decision.reason or "", decision.retry_at_unix_ms)
                yield from self._wait_to_retry(outcome, decision)
                outcome = None
        except _Stopped as stopped:
            return self._end(None, stopped.args[0], self._retry_at)
        finally:
            self._give_back_all()

    # Admission

    def _paced(self) -> Generator[Want, Any, None]:
        if self._shared.pacer:
            send_at = self._shared.pacer.reserve(self._clock.now())
            self._stop_if_late(send_at, None)
            yield from self._wait(send_at, "pace")

    def _admitted(self) -> Generator[Want, Any, None]:
        now = self._clock.now()
        if not self._origin.concurrency and self._narrow_gate() is None:
            gate = self._main_gate(now)
            if gate.enter(now):
                self._main = (gate, ENTERED)
        if self._main is None:
            yield from self._pass_stations(self._origin.concurrency)
        self._pass_local_refusals()

    def _narrow_gate(self) -> Optional[Gate]:
        """That of its operation, if there is one."""
        shared = self._shared
        # A repeat under a key may be of a call that was done: its answer is there to be had.
        if not shared.narrow_gates.gates or self.key is not None and (
                self._attempts > 0 or self._doubt_key in shared.doubts):
            return None
        return shared.narrow_gates.find(self._narrow_key)

    def _main_gate(self, now: float) -> Gate:
        gates = self._shared.gates
        return gates.gates.get(self._gate_key) or gates.open(self._gate_key, now)

    def _place_at(self, gate: Gate) -> Place:
        return gate, Ticket(self.wake, self._spread, self._policy.max_server_wait_ms)

    def _pass_stations(self, concurrency: Optional[Concurrency]) -> Generator[Want, Any, None]:
        """The gates, then the in-flight limit. After a wait all are asked again: what was learnt meanwhile counts."""
        try:
            while True:
                now = self._clock.now()
                answer = self._ask_gates(now)
                if not answer.go:
                    if concurrency:
                        concurrency.leave(self.wake)  # it holds up nobody who may go
                    self._stop_if_late(now if answer.wait_until is None else answer.wait_until, answer.wait_until)
                    yield from self._wait(answer.wait_until, "gate")
                elif concurrency is None or concurrency.ask(self.wake):
                    return
                else:
                    self._stop_if_late(now, None)
                    yield from self._wait(None, "concurrency")
        except BaseException:
            if concurrency:
                concurrency.leave(self.wake)
            raise

    def _ask_gates(self, now: float) -> Answer:
        if self._narrow is None:
            gate = self._narrow_gate()  # it may have come meanwhile
            self._narrow = None if gate is None else self._place_at(gate)
        if self._narrow is not None:
            answer = self._ask_gate(self._narrow, now)
            if not answer.go:
                self._give_back(self._main, now)  # it holds up nobody who may go
                self._main = None
                return answer
        if self._main is None:  # not before: a gate that nobody has asked may be forgotten
            self._main = self._place_at(self._main_gate(now))
        return self._ask_gate(self._main, now)

    def _ask_gate(self, place: Place, now: float) -> Answer:
        gate, ticket = place
        answer = gate.ask(ticket, now)
        if answer.reject_until is not None:
            self._refuse("gate_closed", self._clock.wall() + answer.reject_until - now)
        return answer

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

    @staticmethod
    def _give_back(place: Optional[Place], now: float) -> None:
        """Nothing is learnt of it."""
        if place is None:
            return
        gate, ticket = place
        if ticket.granted:
            gate.done(ticket, None, False, now)
        else:
            gate.leave(ticket, now)

    def _give_back_all(self) -> None:
        """Whatever the call holds or stands in line for."""
        if self._narrow is not None or self._main is not None:
            now = self._clock.now()
            self._give_back(self._narrow, now)
            self._give_back(self._main, now)
            self._narrow = self._main = None

    # Sending and learning

    def _send(self, now: float) -> Send:
        self._attempts += 1
        self._shared.sends += 1
        self._sending = True
        policy = self._policy
        left = self._started_at + policy.total_deadline_ms - now
        if left > policy.attempt_timeout_ms:
            left = policy.attempt_timeout_ms
        added = self._added_headers() if self._attempts > 1 or self._made_key else ()
        if self._hooked:
            self._event("on_send", attempt=self._attempts, method=self._facts.method, url=str(self._facts.url))
        return Send(left if left > 1 else 1, self._attempts, added)

    def _added_headers(self) -> Tuple[Tuple[str, str], ...]:
        added: List[Tuple[str, str]] = []
        if self._made_key:
            added.append((self._policy.idempotency_header, self._made_key))
        attempt_header = self._shared.settings.attempt_header
        if self._attempts > 1 and attempt_header:
            added.append((attempt_header, str(self._attempts)))
        return tuple(added)

    def _learn(self, outcome: Outcome) -> Told:
        self._sending = False
        if self._hooked:
            self._event("on_answer", attempt=self._attempts, status=outcome.status, error=outcome.error,
                        header=outcome.header)
        told = NOTHING_TOLD if outcome.quiet else read_answer(outcome, self._clock.wall())
        now, status = self._clock.now(), outcome.status
        self._last = (status, told.error_type)
        lesson: Optional[Told] = told
        refused = narrow = False
        if status is None:
            lesson = None
        else:
            refused = status in self._policy.retry_statuses
            narrow = refused and told.error_type in self._policy.narrow_types
            if narrow and told.floor_ms is not None:
                self._shared.narrow_gates.open(self._narrow_key, now).close(now + told.floor_ms, 0)
            if narrow or not self.same_origin or told.error_type in self._policy.never_retry_types:
                lesson = NOTHING_TOLD
        for place in (self._narrow, self._main):
            if place is not None:
                place[0].done(place[1], lesson, refused and not narrow, now)
        self._narrow = self._main = None
        if status is not None and status < 400:
            self._origin.budget.success()
        if self._shared.has_parts:
            self._tell_parts(outcome, now)
        if self.key is not None:
            self._learn_doubt(outcome)
        return told

    def _tell_parts(self, outcome: Outcome, now: float) -> None:
        origin = self._origin
        if outcome.error == "cancelled":
            if origin.breaker:
                origin.breaker.abandoned()
            if origin.concurrency:
                origin.concurrency.done(now, None)
            return
        down = outcome.status is None or outcome.status == 503
        if origin.breaker:
            origin.breaker.outcome(now, down)
        if origin.throttle:
            origin.throttle.answered(now, not down)
        if origin.concurrency:
            throttled = outcome.status in (429, 503) or outcome.error == "attempt_timeout"
            origin.concurrency.done(now, "throttled" if throttled else "ok" if outcome.status is not None else None)

    def _learn_doubt(self, outcome: Outcome) -> None:
        if outcome.status is not None:
            self._shared.doubts.pop(self._doubt_key, None)
        elif outcome.error not in self._policy.nothing_sent_kinds:
            self._shared.add_doubt(self._doubt_key)

    def _costs_nothing(self, outcome: Outcome) -> bool:
        """Nothing was sent: it was no load to anybody and costs nothing, so that many calls outlive a restart."""
        return outcome.status is None and outcome.error in self._policy.nothing_sent_kinds

    def _decision(self, outcome: Outcome, told: Told) -> Decision:
        now = self._clock.now()
        state = CallState(
            policy=self._policy, method=self._facts.method, keyed=self.key is not None and self.same_origin,
            body=self._body_kind(),
            attempts_made=self._attempts, elapsed_ms=now - self._started_at,
            retry_tokens=math.inf if self._costs_nothing(outcome) else self._origin.budget.tokens(now), cancelled=self.cancelled,
            now_unix_ms=self._clock.wall(), random=self._shared.settings.random)
        return decide(state, outcome, told)

    # Waiting

    def _wait_to_retry(self, outcome: Outcome, decision: Decision) -> Generator[Want, Any, None]:
        reason = str(outcome.error if outcome.status is None else outcome.status)
        now = self._clock.now()
        self._shared.count("retries", reason)
        if not self._costs_nothing(outcome):
            self._origin.budget.retry(now)
        self._spread = decision.source != "backoff"
        yield from self._wait(now + decision.wait_ms, decision.source, reason)

    def _wait(self, moment: Optional[float], source: str, reason: Optional[str] = None) -> Generator[Want, Any, None]:
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

    def _end(self, outcome: Optional[Outcome], reason: str, retry_at: Optional[float]) -> Ending:
        if self.redirect_reason and reason == "success":
            reason = self.redirect_reason
        status, error_type = self._last
        info = CallInfo(self._attempts, reason, retry_at, self._told_key, self._waited_ms, status, error_type)
        if self._hooked:  # hooks lead to logs, where no key belongs
            self._event("on_done", info=info._replace(idempotency_key=None), attempt=self._attempts, reason=reason)
        return Ending(info, outcome, self)

    def _event(self, hook: str, **event: Any) -> None:
        if self._hooked and hook in self._shared.settings.hooks:
            # Delivered later, maybe after another thread's: the order in which things happened is that of now_ms.
            self.events.append((hook, {"now_ms": self._clock.now(), "wall_ms": self._clock.wall(), **event}))
