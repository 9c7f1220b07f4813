"""The optional parts, each off unless asked for: local refusal, circuit breaker, in-flight limit, load
shaper. All are pure: the time is an argument."""

from __future__ import annotations

import math
from typing import Callable, Dict, List, Optional, Tuple


class _Window:
    """Counts in slots of time, so that a window of any length takes bounded room."""

    def __init__(self, length_ms: float, slots: int = 20) -> None:
        self._slot_ms, self._slots = length_ms / slots, slots
        self._counts: Dict[int, List[int]] = {}  # slot number to [all, good]

    def add(self, now: float, all_: int, good: int) -> None:
        slot = math.floor(now / self._slot_ms)
        self._forget(slot)
        counts = self._counts.setdefault(slot, [0, 0])
        counts[0] += all_
        counts[1] += good

    def totals(self, now: float) -> Tuple[int, int]:
        self._forget(math.floor(now / self._slot_ms))
        return sum(counts[0] for counts in self._counts.values()), sum(counts[1] for counts in self._counts.values())

    def _forget(self, slot: int) -> None:
        for old in [old for old in self._counts if old <= slot - self._slots]:
            del self._counts[old]


def reject_probability(requests: int, accepts: int, k: float) -> float:
    """The share of calls to refuse locally when the server accepts less than 1/k of what it is sent."""
    return max(0.0, (requests - k * accepts) / (requests + 1))


class Throttle:
    def __init__(self, k: float = 2, window_ms: float = 120_000) -> None:
        if not (k >= 1 and window_ms > 0):
            raise ValueError("throttle needs a k of at least 1 and window_ms above 0")
        self._k, self._window = k, _Window(window_ms)

    def rejects(self, now: float, random: Callable[[], float]) -> bool:
        requests, accepts = self._window.totals(now)
        return random() < reject_probability(requests, accepts, self._k)

    def sent(self, now: float) -> None:
        self._window.add(now, 1, 0)

    def answered(self, now: float, healthy: bool) -> None:
        """A refusal for the caller's own rate is an answer of a healthy server."""
        self._window.add(now, 0, 1 if healthy else 0)


class Breaker:
    """Opens when most of the recent outcomes are lost connections, timeouts or 503s; then one probes."""

    def __init__(self, window_ms: float = 10_000, min_outcomes: int = 10, failure_ratio: float = 0.5,
                 open_ms: float = 5_000) -> None:
        if not (window_ms > 0 and min_outcomes >= 1 and 0 < failure_ratio <= 1 and open_ms >= 0):
            raise ValueError("breaker needs window_ms above 0, min_outcomes of at least 1 and a failure_ratio above 0 and at most 1")
        self._window_ms, self._min_outcomes, self._failure_ratio = window_ms, min_outcomes, failure_ratio
        self._open_ms, self._window = open_ms, _Window(window_ms)
        self.open_until: Optional[float] = None
        self._probing = False

    def allows(self, now: float) -> bool:
        """True when the call may be sent; a True after the pause makes that call the probe."""
        if self.open_until is None:
            return True
        if now < self.open_until or self._probing:
            return False
        self._probing = True
        return True

    def outcome(self, now: float, failed: bool) -> None:
        if self.open_until is not None:
            if self._probing:
                self._probing = False
                self.open_until = now + self._open_ms if failed else None
                self._window = _Window(self._window_ms)
            return
        self._window.add(now, 1, 0 if failed else 1)
        all_, good = self._window.totals(now)
        if all_ >= self._min_outcomes and (all_ - good) / all_ >= self._failure_ratio:
            self.open_until = now + self._open_ms

    def abandoned(self) -> None:
        """A probe that ended without an outcome leaves its place to the next."""
        self._probing = False


class Concurrency:
    """The number of calls in flight: one more after a full window in which the limit was the bottleneck,
    half at most once in a while when the server is throttled."""

    def __init__(self, initial: int = 10, min: int = 1, max: int = 100, increase_per_window: int = 1,
                 decrease_factor: float = 0.5, decrease_at_most_every_ms: float = 1000) -> None:
        if not 1 <= min <= initial <= max or not 0 <= decrease_factor < 1:
            raise ValueError("concurrency needs 1 <= min <= initial <= max and a decrease_factor below 1")
        self.limit, self._min, self._max = initial, min, max
        self._increase, self._factor, self._every_ms = increase_per_window, decrease_factor, decrease_at_most_every_ms
        self._last_cut = -math.inf
        self.in_flight, self._reached, self._successes = 0, False, 0
        self._waiting: List[Callable[[], None]] = []

    def window_ok(self, limit_was_reached: bool) -> None:
        if limit_was_reached:
            self.limit = min(self._max, self.limit + self._increase)

    def throttled(self, now: float) -> None:
        if now - self._last_cut >= self._every_ms:
            self._last_cut = now
            self.limit = max(self._min, math.floor(self.limit * self._factor))

    def ask(self, wake: Callable[[], None]) -> bool:
        """True when the call of this `wake` may go; else it is called when it may look again."""
        if self.in_flight < self.limit and (not self._waiting or self._waiting[0] == wake):
            self.leave(wake)
            self.in_flight += 1
            self._reached = self._reached or self.in_flight >= self.limit
            return True
        if wake not in self._waiting:
            self._waiting.append(wake)
        return False

    def leave(self, wake: Callable[[], None]) -> None:
        if wake in self._waiting:
            self._waiting.remove(wake)
            self._wake_first()

    def done(self, now: float, signal: Optional[str]) -> None:
        """`signal`: ok, throttled, or None when nothing was learnt."""
        self.in_flight -= 1
        if signal == "throttled":
            self.throttled(now)
        elif signal == "ok":
            self._successes += 1
            if self._successes >= self.limit:
                self.window_ok(self._reached)
                self._successes, self._reached = 0, False
        self._wake_first()

    def _wake_first(self) -> None:
        if self._waiting:
            self._waiting[0]()


class Pacer:
    """Evenly spaced sends with a burst; idling never stores more than the burst; order is kept."""

    def __init__(self, rate_per_min: float = 0, burst: int = 1) -> None:
        if not rate_per_min > 0 or not burst >= 1:
            raise ValueError("pace needs rate_per_min above 0 and a burst of at least 1")
        self._interval_ms = 60_000 / rate_per_min
        self._allowance_ms = (burst - 1) * self._interval_ms
        self._next_at = -math.inf

    def reserve(self, now: float) -> float:
        """The moment at which what is offered now may be sent."""
        send_at = max(now, self._next_at - self._allowance_ms)
        self._next_at = max(self._next_at, send_at) + self._interval_ms
        return send_at
