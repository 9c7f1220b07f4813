"""An attempt's deadline for blocking sockets.

A read timeout counts from the last byte, so a server that drips keeps a blocking call for ever. What
reads from the socket asks `left` before each read and waits no longer than that.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Dict, Iterator, Optional

MINIMUM_S = 0.001  # the least that `left` gives, for no time at all has another meaning to sockets


_until: Dict[int, float] = {}  # by thread, of those that have one; a threading.local costs five times as much


def begin(seconds: float) -> Optional[float]:
    """All reads of this thread end `seconds` from now. Gives what `end` wants."""
    thread = threading.get_ident()
    before = _until.get(thread)
    _until[thread] = time.monotonic() + seconds
    return before


def end(before: Optional[float]) -> None:
    if before is None:
        del _until[threading.get_ident()]
    else:
        _until[threading.get_ident()] = before


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    before = begin(seconds)
    try:
        yield
    finally:
        end(before)


def left(timeout: Optional[float]) -> Optional[float]:
    """`timeout`, cut to what is left of this thread's deadline; None: for ever."""
    until = _until.get(threading.get_ident())
    if until is None:
        return timeout
    rest = until - time.monotonic()
    if timeout is not None and timeout < rest:
        return timeout
    return rest if rest > MINIMUM_S else MINIMUM_S


def over() -> bool:
    until = _until.get(threading.get_ident())
    return until is not None and time.monotonic() >= until
