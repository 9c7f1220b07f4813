"""Drives calls: on threads, or on an event loop that anyio knows."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from typing import Any, Awaitable, Callable, Iterator, Optional, Sequence, Set

from .call import Call, Ending, Send
from .decide import Outcome
from .shared import Shared

_current: contextvars.ContextVar[Optional["CancelToken"]] = contextvars.ContextVar("ration_cancel", default=None)


class CancelToken:
    """Ends calls that were begun inside `scope()`, from any thread: a wait at once, a send when it returns.

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


def _unwanted(value: Any, ending: Optional[Ending] = None) -> bool:
    """An answer that went into a decision and does not come out of the call."""
    if not isinstance(value, Outcome) or value.response is None:
        return False
    return ending is None or ending.outcome is not value


def drive(shared: Shared, call: Call, send: Callable[[Send], Outcome], closing: CancelToken) -> Ending:
    """Runs the call on this thread. `send` gives an outcome and raises nothing but what ends the thread.

    An answer that is not given back is closed (`response.close`).
    """
    scope = _current.get()
    tokens = (closing, scope) if scope else (closing,)
    steps: Any = None
    value: Any = None
    sending = False
    try:
        call.cancelled = _cancelled(tokens)
        with shared.lock:
            first = call.send_at_once()
        if first is not None:
            sending = True
            value = send(first)
            sending = False
            call.cancelled = _cancelled(tokens)
            with shared.lock:
                ending = call.end_at_once(value)
            if ending is not None:
                return ending
        steps, sent = call.run(), None
        while True:
            call.cancelled = _cancelled(tokens)
            try:
                with shared.lock:
                    step = steps.send(sent)
            except StopIteration as stop:
                if _unwanted(value, stop.value):
                    value.response.close()
                return stop.value
            finally:
                if call.events:
                    flush(shared, call)
            if _unwanted(value):
                value.response.close()
            value = sent = None
            if isinstance(step, Send):
                sending = True
                value = sent = send(step)
                sending = False
            else:
                _sleep(shared, call, step.until, tokens)
    finally:
        if sending or steps is not None:
            _left(shared, call, steps, sending)


def _cancelled(tokens: Sequence[CancelToken]) -> bool:
    return tokens[0].cancelled or len(tokens) > 1 and tokens[1].cancelled


def _left(shared: Shared, call: Call, steps: Any, sending: bool) -> None:
    """However the call was left: nothing of it stays behind."""
    with shared.lock:
        if sending:
            call.abandoned()
        if steps is not None:
            steps.close()
        else:
            call.give_back()


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


async def drive_async(shared: Shared, call: Call, send: Callable[[Send], Awaitable[Outcome]]) -> Ending:
    """Runs the call on this event loop; cancelling the task ends it wherever it is (`response.aclose`)."""
    steps: Any = None
    value: Any = None
    sending = False
    try:
        with shared.lock:
            first = call.send_at_once()
        if first is not None:
            sending = True
            value = await send(first)
            sending = False
            with shared.lock:
                ending = call.end_at_once(value)
            if ending is not None:
                return ending
        steps, sent = call.run(), None
        while True:
            try:
                with shared.lock:
                    step: Any = steps.send(sent)
            except StopIteration as stop:
                if _unwanted(value, stop.value):
                    await value.response.aclose()
                return stop.value
            finally:
                if call.events:
                    flush(shared, call)
            if _unwanted(value):
                await value.response.aclose()
            value = sent = None
            if isinstance(step, Send):
                sending = True
                value = sent = await send(step)
                sending = False
            else:
                await _sleep_async(shared, call, step.until)
    finally:
        if sending or steps is not None:
            _left(shared, call, steps, sending)


async def _sleep_async(shared: Shared, call: Call, until: float) -> None:
    import anyio  # httpx, the only user, brings it

    event = anyio.Event()
    call.waker = event.set
    try:
        if not call.woken:
            with anyio.move_on_after(max(0.0, (until - shared.settings.clock.now()) / 1000)):
                await event.wait()
    finally:
        call.waker = None
