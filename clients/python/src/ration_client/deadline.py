"""An attempt's deadline for blocking sockets.

A read timeout counts from the last byte, so a server that drips keeps a blocking call for ever. What
reads from the socket asks `left` before each read and waits no longer than that.
"""

from __future__ import annotations

import threading
import time
from typing import Optional

_MINIMUM_S = 0.001
_local = threading.local()


class deadline:  # noqa: N801: used like a function
    """All reads of this thread inside the block end `seconds` from now."""

    __slots__ = ("_seconds", "_before")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._before: Optional[float] = None

    def __enter__(self) -> None:
        self._before = getattr(_local, "until", None)
        _local.until = time.monotonic() + self._seconds

    def __exit__(self, *_: object) -> None:
        _local.until = self._before


def left(timeout: Optional[float]) -> Optional[float]:
    """`timeout`, cut to what is left of this thread's deadline; None: for ever."""
    until = getattr(_local, "until", None)
    if until is None:
        return timeout
    rest = max(_MINIMUM_S, until - time.monotonic())
    return rest if timeout is None else min(timeout, rest)


def over() -> bool:
    until = getattr(_local, "until", None)
    return until is not None and time.monotonic() >= until
