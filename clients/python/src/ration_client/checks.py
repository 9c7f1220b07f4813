"""What settings may be. Each check raises a ValueError that names the setting; none shows its value, which may be a
secret in the wrong place."""

from __future__ import annotations

import math
import re
from typing import Any, Callable, Mapping

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110
_ROUTE = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Z]+ (?:/|\*\*)[^\s?#]*")  # methods that get keys are in capitals


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_token(value: Any) -> bool:
    return isinstance(value, str) and _TOKEN.fullmatch(value) is not None


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value) and value >= 0


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_refusal(value: Any) -> bool:
    return is_whole(value) and 400 <= value <= 599


def is_route(value: Any) -> bool:
    return isinstance(value, str) and _ROUTE.fullmatch(value) is not None


def is_list_of(value: Any, is_member: Callable[[Any], bool]) -> bool:
    return isinstance(value, (list, tuple, set, frozenset)) and all(is_member(member) for member in value)


def check(name: str, good: bool, wanted: str) -> None:
    if not good:
        raise ValueError(f"{name} must be {wanted}")


def check_part(name: str, value: Any) -> None:
    """One of the optional parts, which knows its own bounds and names."""
    if value is None or value is False or (value is True and name != "pace"):
        return
    check(name, isinstance(value, Mapping), "a mapping" if name == "pace" else "True, False or a mapping")
    for own, number in value.items():
        check(f"{name}: {own}", is_number(number), "a number of at least 0")
