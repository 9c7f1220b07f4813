"""Drives calls: on threads, or on an event loop that anyio knows."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from typing import Any, Awaitable, Callable, Iterator, Optional, Sequence, Set

from .call import Call, Ending, Wait
from .decide import Outcome
from .plain import Plain
from .policy import Policy
from .shared import RequestFacts, Send, Shared

_current: contextvars.ContextVar[Optional["CancelToken"]] = contextvars.ContextVar("ration_cancel", default=None)


class CancelToken:
    """Ends calls that were begun inside `scope()`, from any thread: a wait at once, a send when it returns.

    What was on its way when it was cancelled still comes, and goes back with the reason `cancelled`: an answer, whatever
    its status, or what broke it off. Threads only: an event loop's calls end with their task.

        token = CancelToken()
        with token.scope():
            client.get(url)          # elsewhere: token.cancel()
    """

    def __init__(self) -> None:
        self._lock, self._calls, self.cancelled = threading.Lock(), set(), False  # type: ignore[var-annotated]

    def cancel(self) -> None:
        with self._lock:
            self.cancelled = True
            calls: Set[Call] = set(self._calls)
        for call in calls:
            call.cancelled = True
            call.wake()

    @contextlib.contextmanager
    def scope(self) -> Iterator["CancelToken"]:
        before = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(before)

    def add(self, call: Call) -> None:
        """While the call waits, `cancel` wakes it."""
        with self._lock:
            self._calls.add(call)
            call.cancelled = call.cancelled or self.cancelled

    def remove(self, call: Call) -> None:
        with self._lock:
            self._calls.discard(call)


def flush(shared: Shared, call: Call) -> None:
    """Watching changes nothing: what a hook raises is its own matter."""
    events, call.events = call.events, []
    for hook, event in events:
        with contextlib.suppress(Exception):
            shared.settings.hooks[hook](event)


def drive(shared: Shared, facts: RequestFacts, body_kind: Callable[[], str],
          send: Callable[[Optional[Call], Send], Outcome], closing: CancelToken, plainly: bool = True,
          policy: Optional[Policy] = None, before: Optional[Call] = None) -> Ending:
    """Runs a call on this thread. `send` gives an outcome and raises nothing but what ends the thread; without
    `plainly` it is always told for which Call.

    An answer that is not given back is closed (`response.close`).
    """
    scope = _current.get()
    tokens = (closing, scope) if scope else (closing,)
    plain, value = None, None
    if plainly and policy is None and before is None and not closing.cancelled and not (scope and scope.cancelled):
        plain = Plain.enter(shared, facts)
    if plain is not None:
        try:
            value = send(None, plain.send)
        except BaseException:
            plain.abandon()
            raise
        info = None if closing.cancelled or scope and scope.cancelled else plain.passed(value)
        if info is not None:
            return Ending(info, value)
    call = Call(shared, facts, body_kind, policy, before, plain)
    try:
        while True:
            call.cancelled = closing.cancelled or scope is not None and scope.cancelled
            with shared.lock:
                step = call.step(value)
            if call.events:
                flush(shared, call)
            if value is not None:
                if isinstance(step, Ending) and step.outcome is value:
                    return step
                if value.response is not None:  # it went into a decision and does not come out
                    value.response.close()
                value = None
            if isinstance(step, Send):
                value = send(call, step)
            elif isinstance(step, Wait):
                _sleep(shared, call, step.until, tokens)
            else:
                return step
    except BaseException:
        with shared.lock:
            call.leave()
        raise


def _sleep(shared: Shared, call: Call, until: float, tokens: Sequence[CancelToken]) -> None:
    event = threading.Event()
    call.waker = event.set
    try:
        for token in tokens:
            token.add(call)
        if not call.woken and not call.cancelled:
            event.wait(max(0.0, min((until - shared.settings.clock.now()) / 1000, threading.TIMEOUT_MAX)))
    finally:
        for token in tokens:
            token.remove(call)
        call.waker = None


async def drive_async(shared: Shared, facts: RequestFacts, body_kind: Callable[[], str],
                      send: Callable[[Optional[Call], Send], Awaitable[Outcome]], plainly: bool = True,
                      policy: Optional[Policy] = None) -> Ending:
    """As `drive`, on this event loop; cancelling the task ends it wherever it is (`response.aclose`)."""
    plain = Plain.enter(shared, facts) if plainly and policy is None else None
    value: Optional[Outcome] = None
    if plain is not None:
        try:
            value = await send(None, plain.send)
        except BaseException:
            plain.abandon()
            raise
        info = plain.passed(value)
        if info is not None:
            return Ending(info, value)
    call = Call(shared, facts, body_kind, policy, None, plain)
    try:
        while True:
            with shared.lock:
                step = call.step(value)
            if call.events:
                flush(shared, call)
            if value is not None:
                if isinstance(step, Ending) and step.outcome is value:
                    return step
                if value.response is not None:  # it went into a decision and does not come out
                    await value.response.aclose()
                value = None
            if isinstance(step, Send):
                value = await send(call, step)
            elif isinstance(step, Wait):
                await _sleep_async(shared, call, step.until)
            else:
                return step
    except BaseException:
        with shared.lock:
            call.leave()
        raise


async def _sleep_async(shared: Shared, call: Call, until: float) -> None:
    import anyio  # of the extra httpx, the only user

    event = anyio.Event()
    call.waker = event.set
    try:
        if not call.woken:
            with anyio.move_on_after(max(0.0, (until - shared.settings.clock.now()) / 1000)):
                await event.wait()
    finally:
        call.waker = None
