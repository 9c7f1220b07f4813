"""An attempt's deadline for blocking sockets.

A read timeout counts from the last byte, so a server that drips keeps a blocking call for ever. What
reads from the socket asks `left` before each read and waits no longer than that.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Iterator, Optional

_MINIMUM_S = 0.001


class _Local(threading.local):
    until: Optional[float] = None


_local = _Local()


def begin(seconds: float) -> Optional[float]:
    """All reads of this thread end `seconds` from now. Gives what `end` wants."""
    before = _local.until
    _local.until = time.monotonic() + seconds
    return before


def end(before: Optional[float]) -> None:
    _local.until = before


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    before = begin(seconds)
    try:
        yield
    finally:
        end(before)


def left(timeout: Optional[float]) -> Optional[float]:
    """`timeout`, cut to what is left of this thread's deadline; None: for ever."""
    until = _local.until
    if until is None:
        return timeout
    rest = max(_MINIMUM_S, until - time.monotonic())
    return rest if timeout is None else min(timeout, rest)


def over() -> bool:
    until = _local.until
    return until is not None and time.monotonic() >= until
