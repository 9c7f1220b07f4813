"""HTTP-date in its three forms (RFC 9110, section 5.6.7):

    Mon, 30 Nov 2026 00:00:45 GMT      Monday, 30-Nov-26 00:00:45 GMT      Mon Nov 30 00:00:45 2026

Names compare without case. The day's name must be one, but is not held against the date.
"""

from __future__ import annotations

import datetime
import functools
import re
from typing import Optional

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAY = "(?:mon|tue|wed|thu|fri|sat|sun)"
_LONG_DAY = "(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_TIME = "([0-9]{2}):([0-9]{2}):([0-9]{2})"
_FIXED = re.compile(f"{_DAY}, ([0-9]{{2}}) ([a-z]{{3}}) ([0-9]{{4}}) {_TIME} gmt", re.I | re.A)
_RFC_850 = re.compile(f"{_LONG_DAY}, ([0-9]{{2}})-([a-z]{{3}})-([0-9]{{2}}) {_TIME} gmt", re.I | re.A)
_ASCTIME = re.compile(f"{_DAY} ([a-z]{{3}}) ([0-9]{{2}}| [0-9]) {_TIME} ([0-9]{{4}})", re.I | re.A)
_MAX_CHARACTERS = 40
_EPOCH = datetime.datetime(1970, 1, 1)


def parse_http_date(text: str, now_unix_ms: float) -> Optional[float]:
    """Unix milliseconds, or None when `text` is no HTTP-date.

    `now_unix_ms` gives two-digit years their century: what would lie more than 50 years ahead is past.
    """
    if len(text) > _MAX_CHARACTERS:
        return None
    date = _of_whole_year(text)
    if date is not None:
        return date
    match = _RFC_850.fullmatch(text)
    if not match:
        return None
    this_year = (_EPOCH + datetime.timedelta(milliseconds=now_unix_ms)).year
    year = this_year - this_year % 100 + int(match[3])
    return _moment(year - 100 if year > this_year + 50 else year, match[2], int(match[1]), match.groups()[3:])


@functools.lru_cache(maxsize=64)
def _of_whole_year(text: str) -> Optional[float]:
    """Remembered, for all answers of one second carry the same Date."""
    match = _FIXED.fullmatch(text)
    if match:
        return _moment(int(match[3]), match[2], int(match[1]), match.groups()[3:])
    match = _ASCTIME.fullmatch(text)
    if match:
        return _moment(int(match[6]), match[1], int(match[2]), match.groups()[2:5])
    return None


def _moment(year: int, month_name: str, day: int, time: tuple) -> Optional[float]:
    hour, minute, second = (int(part) for part in time)
    if month_name.lower() not in _MONTHS or hour > 23 or minute > 59 or second > 60:
        return None
    try:
        date = datetime.datetime(year, _MONTHS.index(month_name.lower()) + 1, day)
    except ValueError:
        return None
    return ((date - _EPOCH).days * 86_400 + (hour * 60 + minute) * 60 + second) * 1000
