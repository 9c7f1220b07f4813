"""The header families that tell a limit's numbers:

    RateLimit: "name";r=50;t=30                    (draft-ietf-httpapi-ratelimit-headers, structured)
    RateLimit-Remaining, RateLimit-Reset           (earlier drafts)
    X-RateLimit-Remaining, X-RateLimit-Reset       (before any draft)

A family with a malformed number is ignored whole.
"""

from __future__ import annotations

import re
from typing import Callable, Dict, List, NamedTuple, Optional

from .hints import MAX_WAIT_MS, parse_delay_or_moment, trim_blanks

HeaderReader = Callable[[str], Optional[str]]  # by a lower-case name
_MAX_HEADER_CHARACTERS = 4096
_MAX_LIMITS = 16
_MAX_REMAINING = 2**53 - 1
_MAX_REMAINING_DIGITS = 16
_FIELDS = (("ratelimit-remaining", "ratelimit-reset"), ("x-ratelimit-remaining", "x-ratelimit-reset"))
_MINUS_ZERO = re.compile("-0+")

# One item of a structured list (RFC 9651): a string or token, then parameters.
_TEXT = r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"'
_TOKEN = r"[A-Za-z*][!#$%&'*+\-.^_`|~:/0-9A-Za-z]*"
_NAME = re.compile(f"{_TEXT}|({_TOKEN})")
_PARAMETER = re.compile(
    r"; *([a-z*][a-z0-9_\-.*]*)"
    rf"(?:=(-?[0-9]{{1,15}}(?:\.[0-9]{{1,3}})?|{_TEXT.replace('((', '(?:(', 1)}|:[A-Za-z0-9+/=]*:|\?[01]|@-?[0-9]{{1,15}}|{_TOKEN}))?")
_SEPARATOR = re.compile(r"[ \t]*,[ \t]*")


class Limit(NamedTuple):
    name: str
    remaining: int
    reset_in_ms: Optional[float]  # None: no time was given
    epoch_ms: Optional[float] = None  # None: the time was given as a delay


def tells_limits(header: HeaderReader) -> bool:
    return not (header("ratelimit") is None and header("x-ratelimit-remaining") is None
                and header("ratelimit-remaining") is None)


def parse_limits(header: HeaderReader, now_unix_ms: float) -> List[Limit]:
    limits: List[Limit] = []
    structured = header("ratelimit")
    if structured is not None:
        limits += _parse_structured(trim_blanks(structured))
    for remaining_name, reset_name in _FIELDS:
        remaining = header(remaining_name)
        if remaining is not None:
            limit = _parse_fields(remaining, header(reset_name), now_unix_ms)
            if limit:
                limits.append(limit)
    return limits


def _parse_fields(remaining_text: str, reset_text: Optional[str], now_unix_ms: float) -> Optional[Limit]:
    remaining = _whole_number(trim_blanks(remaining_text))
    if remaining is None:
        return None
    if reset_text is None:
        return Limit("default", remaining, None)
    reset = parse_delay_or_moment(trim_blanks(reset_text), now_unix_ms)
    return Limit("default", remaining, reset.wait_ms, reset.epoch_ms) if reset else None


def _whole_number(text: str) -> Optional[int]:
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    return _MAX_REMAINING if len(digits) > _MAX_REMAINING_DIGITS else min(int(digits), _MAX_REMAINING)


def _parse_structured(text: str) -> List[Limit]:
    if not text or len(text) > _MAX_HEADER_CHARACTERS:
        return []
    limits: List[Limit] = []
    at = 0
    while True:
        name = _NAME.match(text, at)
        if not name or len(limits) == _MAX_LIMITS:
            return []
        at = name.end()
        parameters: Dict[str, str] = {}
        match = _PARAMETER.match(text, at)
        while match:
            parameters[match[1]] = "?1" if match[2] is None else match[2]
            at = match.end()
            match = _PARAMETER.match(text, at)
        limit = _structured_limit(name, parameters)
        if not limit:
            return []
        limits.append(limit)
        if at == len(text):
            return limits
        separator = _SEPARATOR.match(text, at)
        if not separator:
            return []
        at = separator.end()


def _structured_number(text: str) -> Optional[int]:
    """RFC 9651 lets a zero be negative."""
    return 0 if _MINUS_ZERO.fullmatch(text) else _whole_number(text)


def _structured_limit(name: re.Match, parameters: Dict[str, str]) -> Optional[Limit]:
    remaining = _structured_number(parameters.get("r", ""))
    seconds = _structured_number(parameters["t"]) if "t" in parameters else None
    if remaining is None or (seconds is None and "t" in parameters):
        return None
    label = name[2] if name[1] is None else re.sub(r"\\(.)", r"\1", name[1])
    return Limit(label, remaining, None if seconds is None else min(seconds * 1000, MAX_WAIT_MS))
