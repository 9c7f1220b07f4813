"""What an answer says about waiting: Retry-After, the body's own words, the error's type.

Reading never raises; what cannot be read is as if it were absent.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple, Optional

from .http_date import parse_http_date

MAX_WAIT_MS = 365 * 24 * 3600 * 1000  # longer ones saturate here
MAX_BODY_BYTES = 64 * 1024  # of a body that is searched for a type
_NUMBER = re.compile(r"([0-9]+)(?:\.([0-9]+))?")
_FIRST_MOMENT = 10**9  # Unix seconds; smaller numbers are delays
_FIRST_MILLISECONDS, _LAST_MILLISECONDS = 10**12, 10**13 - 1  # 13 digits
_MOST_DIGITS = 15  # larger numbers saturate


class Seconds(NamedTuple):
    ms: float
    whole: float  # the part before the point


class DelayOrMoment(NamedTuple):
    wait_ms: float
    epoch_ms: Optional[float]  # None: it was a delay


class ErrorBody(NamedTuple):
    type: Optional[str]
    wait_ms: Optional[float]


def parse_seconds(text: str) -> Optional[Seconds]:
    """Rounded up to milliseconds, so that a wait is never shortened; None when `text` is no number."""
    if len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit():
        return Seconds(int(text) * 1000, int(text))
    match = _NUMBER.fullmatch(text)
    if not match:
        return None
    digits = match[1].lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        return Seconds(math.inf, math.inf)
    fraction = match[2] or ""
    thousandths = int(fraction[:3].ljust(3, "0")) + (1 if fraction[3:].strip("0") else 0)
    return Seconds(int(digits) * 1000 + thousandths, int(digits))


def parse_delay_or_moment(text: str, now_unix_ms: float) -> Optional[DelayOrMoment]:
    """13 digits are Unix milliseconds, from 10^9 on they are Unix seconds, else it is a delay.

    A moment already past gives 0.
    """
    number = parse_seconds(text)
    if not number:
        return None
    epoch_ms = None
    if number.whole >= _FIRST_MOMENT:  # the whole part: rounding makes no delay a moment
        in_ms = _FIRST_MILLISECONDS <= number.whole <= _LAST_MILLISECONDS
        epoch_ms = number.ms / 1000 if in_ms else number.ms
    wait = number.ms if epoch_ms is None else max(0, epoch_ms - now_unix_ms)
    return DelayOrMoment(MAX_WAIT_MS if wait >= MAX_WAIT_MS else math.ceil(wait), epoch_ms)


def trim_blanks(text: str) -> str:
    return text.strip(" \t")


def parse_retry_after(value: Optional[str], now_unix_ms: float) -> Optional[float]:
    """Milliseconds, None when it says nothing usable: unreadable, zero, negative, past."""
    if not isinstance(value, str):
        return None
    text = trim_blanks(value)
    number = parse_delay_or_moment(text, now_unix_ms)
    if number:
        wait: Optional[float] = number.wait_ms
    else:
        date = parse_http_date(text, now_unix_ms)
        wait = None if date is None else min(date - now_unix_ms, MAX_WAIT_MS)
    return wait if wait is not None and wait > 0 else None


def server_now(date_header: Optional[str], now_unix_ms: float) -> float:
    """The server's clock as its Date header tells it, else `now_unix_ms`."""
    date = parse_http_date(trim_blanks(date_header), now_unix_ms) if isinstance(date_header, str) else None
    return now_unix_ms if date is None else date


def read_error_body(content: Optional[bytes]) -> ErrorBody:
    """Bytes beyond MAX_BODY_BYTES, and what is not a JSON object, say nothing."""
    nothing = ErrorBody(None, None)
    if not content or len(content) > MAX_BODY_BYTES:
        return nothing
    try:
        body = json.loads(content.decode("utf-8-sig", "replace"), parse_int=_whole_of, parse_constant=_not_json)
    except (ValueError, RecursionError):
        return nothing
    return ErrorBody(_type_of(body), _wait_of(body)) if isinstance(body, dict) else nothing


def _whole_of(text: str) -> float:
    """Python reads no number of thousands of digits, and here is no use for one."""
    return int(text) if len(text) < 400 else math.inf


def _not_json(name: str) -> None:
    raise ValueError(name)


def _type_of(body: dict) -> Optional[str]:
    error = body.get("error")
    candidates = [error.get("type") if isinstance(error, dict) else None, error, body.get("type")]
    return next((value for value in candidates if isinstance(value, str)), None)


def _wait_of(body: dict) -> Optional[float]:
    error = body.get("error")
    for holder in (body, error if isinstance(error, dict) else {}):
        for name in ("retry_after", "retry_after_seconds"):
            wait = _seconds_of(holder.get(name))
            if wait is not None:
                return wait
    return None


def _seconds_of(value: Any) -> Optional[float]:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
        return MAX_WAIT_MS if value >= MAX_WAIT_MS / 1000 else math.ceil(value * 1000)
    number = parse_seconds(trim_blanks(value)) if isinstance(value, str) else None
    return min(number.ms, MAX_WAIT_MS) if number and number.ms > 0 else None
