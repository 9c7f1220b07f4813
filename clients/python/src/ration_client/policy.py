"""The numbers and lists that a decision is made from. All times are milliseconds."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable, Mapping, Sequence, Union

from .checks import check, is_list_of, is_number, is_refusal, is_route, is_text, is_token, is_whole

IdempotencyRule = Union[str, Sequence[str], Callable[[str, str], bool]]


@dataclasses.dataclass(frozen=True)
class Policy:
    max_retries: int = 5
    backoff_base_ms: float = 500
    backoff_factor: float = 2
    backoff_cap_ms: float = 30_000
    retry_after_extra_ms: float = 500  # random, on top of a wait that the server asked for
    max_server_wait_ms: float = 60_000  # when the server asks for more, the call ends at once
    total_deadline_ms: float = 120_000  # for the whole call: sends, waits, gates
    attempt_timeout_ms: float = 30_000
    min_attempt_ms: float = 100
    gate_guard_ms: float = 50
    retry_statuses: Sequence[int] = (429, 503)
    retry_types: Sequence[str] = ()  # error types that make any status retryable
    never_retry_types: Sequence[str] = ("booking_volume_refused", "idempotency_mismatch")
    # Close their own operation only; retried only after a wait that their answer tells.
    narrow_types: Sequence[str] = ("daily_booking_limit",)
    safe_methods: Sequence[str] = ("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE")
    retry_error_kinds: Sequence[str] = ("dns_failed", "connect_failed", "connection_lost", "attempt_timeout")
    nothing_sent_kinds: Sequence[str] = ("dns_failed", "connect_failed")
    # Whether a key is made for a POST or PATCH that has none: "caller" (no), "auto", routes such as
    # "POST /v1/bookings", or a function of method and path.
    idempotency: IdempotencyRule = "caller"
    idempotency_header: str = "Idempotency-Key"
    budget_capacity: float = 50
    budget_retry_cost: float = 1
    budget_success_deposit: float = 0.2
    budget_floor_ms: float = 10_000
    max_redirects: int = 5
    redirect_to_get: bool = False  # follow a redirect that turns the method into GET

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check(field.name, getattr(self, field.name), field.default)
        object.__setattr__(self, "safe_methods", tuple(method.upper() for method in self.safe_methods))


# Of what all calls share, so that no call can have its own.
SHARED_FIELDS = ("gate_guard_ms", "budget_capacity", "budget_retry_cost", "budget_success_deposit", "budget_floor_ms")

ERROR_KINDS = ("dns_failed", "connect_failed", "connection_lost", "attempt_timeout", "tls_certificate", "bad_request",
               "protocol_error")


def _check(name: str, value: Any, standard: Any) -> None:
    """Raises for a value that cannot be meant."""
    if isinstance(standard, bool):
        check(name, isinstance(value, bool), "True or False")
    elif name in ("max_retries", "max_redirects"):
        check(name, is_whole(value), "a whole number of at least 0")
    elif name == "backoff_factor":
        check(name, is_number(value) and value >= 1, "a number of at least 1")
    elif isinstance(standard, (int, float)):
        check(name, is_number(value), "a number of at least 0")
    elif name == "retry_statuses":
        check(name, is_list_of(value, is_refusal), "a list of whole numbers from 400 to 599")
    elif name == "safe_methods":
        check(name, is_list_of(value, is_token), "a list of methods")
    elif name in ("retry_error_kinds", "nothing_sent_kinds"):
        check(name, is_list_of(value, lambda kind: kind in ERROR_KINDS), f"a list of {', '.join(ERROR_KINDS)}")
    elif isinstance(standard, tuple):
        check(name, is_list_of(value, is_text), "a list of texts")
    elif name == "idempotency":
        good = value in ("caller", "auto") if isinstance(value, str) else callable(value) or is_list_of(value, is_route)
        check(name, good, '"caller", "auto", a list of routes such as "POST /v1/bookings" or a function')
    else:
        check(name, is_token(value), "the name of a field")


def make_policy(given: Mapping[str, Any], over: Policy = Policy()) -> Policy:
    """`over` with the given fields; an unknown field raises TypeError."""
    return dataclasses.replace(over, **given) if given else over


def backoff_bound(policy: Policy, retry: int) -> float:
    """The most that a backoff may wait before retry number `retry`, counted from 0; never overflows."""
    try:
        bound = policy.backoff_base_ms * float(policy.backoff_factor) ** retry
    except OverflowError:
        bound = math.inf if policy.backoff_base_ms else 0
    return min(bound, policy.backoff_cap_ms)
