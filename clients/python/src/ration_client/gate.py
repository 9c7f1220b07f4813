"""The hold-off that all calls with one origin, credential and bucket share.

An answer that says "not before then" closes the gate until then; the moment only ever moves later.
When it opens, one call goes first as a probe, and the others follow spread out once the probe was
let in. While the server tells how many requests remain, no more than that many are in flight. Pure:
the time is an argument, the caller sleeps until the moment that `ask` names.

Not thread-safe by itself: whoever shares a gate between threads holds one lock around each call.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from .decide import Told
from .limits import Limit
from .policy import Policy

Random = Callable[[], float]
_MOST_LOOKS = 64


class Ticket:
    """One call at one gate. `wake` is called when it should ask again.

    `spread`: the call comes from a wait that the server asked for, with a random extra. `max_wait_ms`: how far off the
    server's moment may be; None: as the gate's policy says.
    """

    __slots__ = ("wake", "spread", "max_wait_ms", "not_before", "queued", "granted")

    def __init__(self, wake: Optional[Callable[[], None]] = None, spread: bool = False,
                 max_wait_ms: Optional[float] = None) -> None:
        self.wake, self.spread, self.max_wait_ms = wake, spread, max_wait_ms
        self.not_before, self.queued, self.granted = -math.inf, False, False


class Answer(NamedTuple):
    go: bool
    wait_until: Optional[float] = None  # None: until the ticket is woken
    reject_until: Optional[float] = None  # set: further off than a call may wait


_GO = Answer(True)
ENTERED = Ticket()  # of all calls that `enter` let in: none of them waits, none is a probe
ENTERED.granted = True


class Gate:
    def __init__(self, policy: Policy, random: Random) -> None:
        self._policy, self._random = policy, random
        self._told_at = -math.inf  # the server's own moment
        self._guard = 0.0
        self.opens_at = -math.inf  # with guard and random extra
        self.probe_needed = False
        self.probe: Optional[Ticket] = None
        self.in_flight = 0
        self.remaining: Optional[int] = None  # as last told; None: unknown, no bound
        self._reset_at: Optional[float] = None  # of the window that `remaining` belongs to
        self._epoch_ms: Optional[float] = None
        self.queue: List[Ticket] = []  # in the order in which they go

    def enter(self, now: float) -> bool:
        """Lets a call in that nothing holds, and that needs no ticket to wait with: its own is ENTERED."""
        if self.queue or self.probe_needed or self.probe or now < self.opens_at:
            return False
        if self.remaining is not None and self._full():
            return False
        self.in_flight += 1
        return True

    def passed(self, clock: Any) -> None:
        """One that entered has an answer that teaches nothing."""
        self.in_flight -= 1
        if self.queue:
            self._advance(clock.now(), None)
            self._wake_first()

    def _full(self) -> bool:
        return self.remaining is not None and self.in_flight >= max(1, self.remaining)

    def ask(self, ticket: Ticket, now: float) -> Answer:
        """May the ticket's call be sent now?"""
        if ticket.granted:
            its_turn = self.probe is ticket or (self.probe is None and not self.probe_needed)
            if its_turn and now >= self.opens_at and (self.remaining is None or self.in_flight <= max(1, self.remaining)):
                return _GO
            self._revoke(ticket)
        max_wait = self._policy.max_server_wait_ms if ticket.max_wait_ms is None else ticket.max_wait_ms
        if self._told_at - now > max_wait:
            self.leave(ticket, now)
            return Answer(False, reject_until=self._told_at + self._guard)
        if ticket.spread and now >= self._told_at + self._guard:
            self.opens_at = min(self.opens_at, now)  # it has waited a random extra of its own
        if not ticket.queued:
            ticket.queued = True
            self._line_up(ticket, now)
        wait_until = self._advance(now, ticket)
        return _GO if ticket.granted else Answer(False, wait_until)

    def _line_up(self, ticket: Ticket, now: float) -> None:
        """Behind all who may go, before those whose random moments are still to come: behind them it would go at the
        last one's."""
        place = next((place for place, queued in enumerate(self.queue) if queued.not_before > now), len(self.queue))
        self.queue.insert(place, ticket)

    def _revoke(self, ticket: Ticket) -> None:
        """What was learnt between a grant and its call's waking: it waits again, as the first."""
        self.in_flight -= 1
        ticket.granted = False
        if self.probe is ticket:
            self.probe = None
        self.queue.insert(0, ticket)

    def leave(self, ticket: Ticket, now: float) -> None:
        """A ticket that waits no longer."""
        if ticket.queued and not ticket.granted:
            self.queue.remove(ticket)
            ticket.queued = False
            self._advance(now, ticket)
            self._wake_first()

    def done(self, ticket: Ticket, told: Optional[Told], refused: bool, now: float) -> None:
        """A granted call has its answer, or has failed: `told` is None when nothing was learnt."""
        self.in_flight -= 1
        if told and (refused or told.limits):
            self._learn(told, refused, now)
        if self.probe is ticket:
            self.probe = None
            if told and not refused and now >= self.opens_at:
                self.probe_needed = False
                self._spread(now)
        if self.queue:
            self._advance(now, None)
            self._wake_first()  # its moment may have moved

    def close(self, told_at: float, guard_ms: float) -> None:
        if told_at + guard_ms <= self._told_at + self._guard:
            return
        self._told_at, self._guard = told_at, guard_ms
        self.opens_at = max(self.opens_at, told_at + guard_ms + self._random() * self._policy.retry_after_extra_ms)
        self.probe_needed = True
        self.remaining = None  # of a window that will be over

    def idle(self, now: float) -> bool:
        return not self.in_flight and not self.queue and now >= self.opens_at

    def _wake_first(self) -> None:
        if self.queue and self.queue[0].wake:
            self.queue[0].wake()

    def _advance(self, now: float, asking: Optional[Ticket]) -> Optional[float]:
        """Grants what may go now; gives the moment at which more may, None when only an answer can help.

        The new first one looks again, for it is the one that waits for that moment.
        """
        first = self.queue[0] if self.queue else None
        moment = self._grant(now, asking)
        if self.queue and self.queue[0] is not first and self.queue[0] is not asking:
            self._wake_first()
        return moment

    def _grant(self, now: float, asking: Optional[Ticket]) -> Optional[float]:
        while self.queue:
            first = self.queue[0]
            if now < self.opens_at:
                return self.opens_at
            if self.probe or self._full():
                return None
            if self.probe_needed:
                self.probe = first
            elif now < first.not_before:
                return first.not_before
            self.queue.pop(0)
            self.in_flight += 1
            first.granted = True
            if first is not asking and first.wake:
                first.wake()
        return None

    def _learn(self, told: Told, refused: bool, now: float) -> None:
        if refused:
            if told.floor_ms is not None:
                self.close(now + told.floor_ms, self._policy.gate_guard_ms if told.source == "reset" else 0)
            return
        least = told.limits[0]
        for limit in told.limits:
            if limit.remaining < least.remaining:
                least = limit
        self._learn_remaining(least, now)
        for limit in told.limits:
            if limit.remaining == 0 and limit.reset_in_ms is not None:
                self.close(now + limit.reset_in_ms, self._policy.gate_guard_ms)

    def _learn_remaining(self, limit: Limit, now: float) -> None:
        """Within one window the least told counts; a window that is over says nothing.

        Answers overtake one another, so the last that came is not always the last that was meant.
        """
        reset_at = None if limit.reset_in_ms is None else now + limit.reset_in_ms
        order = "new" if self.remaining is None else self._compare(reset_at, limit.epoch_ms)
        if order == "new":
            self.remaining, self._reset_at, self._epoch_ms = limit.remaining, reset_at, limit.epoch_ms
        elif order == "same" and self.remaining is not None:
            self.remaining = min(self.remaining, limit.remaining)

    def _compare(self, reset_at: Optional[float], epoch_ms: Optional[float]) -> str:
        """What a told window is to the known one."""
        if epoch_ms is not None and self._epoch_ms is not None:
            return "same" if epoch_ms == self._epoch_ms else "new" if epoch_ms > self._epoch_ms else "old"
        if reset_at is None or self._reset_at is None:
            return "new"
        return "same" if abs(reset_at - self._reset_at) <= 1000 else "new"  # whole seconds are told

    def _spread(self, now: float) -> None:
        """The waiting calls go at random moments within the extra, in the order in which they came."""
        moments = sorted(now + self._random() * self._policy.retry_after_extra_ms for _ in self.queue)
        for ticket, moment in zip(self.queue, moments):
            ticket.not_before = moment


class GateBook:
    """Gates by key, at most `most` of them. One that nobody uses and that holds nobody back is forgotten for a new one;
    where none is found, newcomers share a gate."""

    def __init__(self, policy: Policy, random: Random, most: int) -> None:
        self._policy, self._random, self._most = policy, random, most
        self.gates: Dict[str, Gate] = {}
        self._common = Gate(policy, random)

    def find(self, key: str) -> Optional[Gate]:
        return self.gates.get(key)

    def open(self, key: str, now: float) -> Gate:
        gate = self.gates.get(key)
        if gate is None:
            if len(self.gates) >= self._most and not self._forget_one(now):
                return self._common
            gate = self.gates[key] = Gate(self._policy, self._random)
        return gate

    def _forget_one(self, now: float) -> bool:
        """Looks at a few; those that have to stay are looked at last the next time."""
        for key in list(itertools.islice(self.gates, _MOST_LOOKS)):
            gate = self.gates.pop(key)
            if gate.idle(now):
                return True
            self.gates[key] = gate
        return False
