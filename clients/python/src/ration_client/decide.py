"""What to do when an attempt has ended. Pure: times, tokens and the random source are arguments.

The checks stand in the order in which they are told; the first that speaks ends it.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Optional, Sequence

from .hints import parse_retry_after, read_error_body, server_now
from .limits import HeaderReader, Limit, parse_limits, tells_limits
from .policy import Policy, backoff_bound


@dataclasses.dataclass
class Outcome:
    """How one attempt ended: an answer (`status` is set) or a transport error (`error` is)."""

    status: Optional[int] = None
    header: HeaderReader = lambda name: None
    body: Optional[bytes] = None  # of a refusal, when it could be read
    error: Optional[str] = None
    response: Any = None  # as the transport gave it
    cause: Optional[BaseException] = None
    quiet: bool = False  # known beforehand: a good answer, and none of its headers tells limits


@dataclasses.dataclass
class Told:
    """What one answer says. `floor_ms`: the wait that the server asks for, None when it names none."""

    status: Optional[int] = None
    error_type: Optional[str] = None
    limits: Sequence[Limit] = ()
    floor_ms: Optional[float] = None
    source: str = "backoff"  # retry_after, reset or body, where floor_ms comes from


@dataclasses.dataclass
class CallState:
    policy: Policy
    method: str
    keyed: bool
    body: str  # none, buffered, rewindable, stream_once, stream_once_consumed
    attempts_made: int
    elapsed_ms: float
    retry_tokens: float
    cancelled: bool
    now_unix_ms: float
    random: Callable[[], float]


@dataclasses.dataclass
class Decision:
    action: str  # retry or stop
    reason: Optional[str] = None
    wait_ms: float = 0
    source: str = "backoff"
    error_type: Optional[str] = None
    retry_at_unix_ms: Optional[float] = None


NOTHING_TOLD = Told()  # by an answer that went well


def read_answer(outcome: Outcome, now_unix_ms: float) -> Told:
    told = Told(status=outcome.status)
    if outcome.status is None or outcome.status < 400 and not tells_limits(outcome.header):
        return told
    now = server_now(outcome.header("date"), now_unix_ms)
    told.limits = parse_limits(outcome.header, now)
    if outcome.status < 400:
        return told
    body = read_error_body(outcome.body)
    told.error_type = body.type
    resets = [limit.reset_in_ms for limit in told.limits if limit.remaining == 0 and limit.reset_in_ms]
    for source, wait in (("retry_after", parse_retry_after(outcome.header("retry-after"), now)),
                         ("reset", max(resets) if resets else None), ("body", body.wait_ms)):
        if wait is not None:
            told.floor_ms, told.source = wait, source
            break
    return told


def decide(state: CallState, outcome: Outcome, told: Told) -> Decision:
    retry_at = None if told.floor_ms is None else state.now_unix_ms + told.floor_ms
    reason = _reason_to_stop(state, outcome, told)
    if reason:
        return Decision("stop", reason, error_type=told.error_type, retry_at_unix_ms=retry_at)
    return Decision("retry", None, _wait_for(state, told), told.source, told.error_type, retry_at)


def _reason_to_stop(state: CallState, outcome: Outcome, told: Told) -> Optional[str]:
    if state.cancelled:
        return "cancelled"
    if outcome.status is not None and outcome.status < 400:
        return "success"
    return (_reason_in_outcome(state.policy, outcome, told) or _reason_in_request(state, outcome)
            or _reason_in_time(state, told))


def _reason_in_outcome(policy: Policy, outcome: Outcome, told: Told) -> Optional[str]:
    if outcome.status is None:
        return None if outcome.error in policy.retry_error_kinds else "error_not_retryable"
    if told.error_type in policy.never_retry_types:
        return "type_never_retry"
    if told.error_type in policy.narrow_types and told.floor_ms is None:
        return "type_never_retry"  # clears at a moment that it did not tell
    good = outcome.status in policy.retry_statuses or told.error_type in policy.retry_types
    return None if good else "status_not_retryable"


def _reason_in_request(state: CallState, outcome: Outcome) -> Optional[str]:
    nothing_sent = outcome.error in state.policy.nothing_sent_kinds
    if not nothing_sent and not state.keyed and state.method not in state.policy.safe_methods:
        return "unsafe_method"
    if state.body == "stream_once_consumed":
        return "body_not_replayable"
    return "attempts_exhausted" if state.attempts_made > state.policy.max_retries else None


def _reason_in_time(state: CallState, told: Told) -> Optional[str]:
    if told.floor_ms is not None and told.floor_ms > state.policy.max_server_wait_ms:
        return "server_wait_too_long"
    if _room_for(state) < (told.floor_ms or 0):
        return "deadline"
    return "budget_exhausted" if state.retry_tokens < state.policy.budget_retry_cost else None


def _room_for(state: CallState) -> float:
    """The longest wait after which an attempt still has its least time."""
    return state.policy.total_deadline_ms - state.elapsed_ms - state.policy.min_attempt_ms


def _wait_for(state: CallState, told: Told) -> float:
    """What the server asked for and a little more, or any time up to the backoff's bound."""
    room = _room_for(state)
    if told.floor_ms is not None:
        return told.floor_ms + state.random() * min(state.policy.retry_after_extra_ms, room - told.floor_ms)
    return state.random() * min(backoff_bound(state.policy, state.attempts_made - 1), room)
