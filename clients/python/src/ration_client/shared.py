"""What all calls of one transport share: settings, gates, budgets, the optional parts, counters.

`Shared.lock` is held around every step of every call; nothing in here waits.
"""

from __future__ import annotations

import dataclasses
import random as random_module
import re
import threading
import time
import uuid
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .budget import Budget
from .checks import check, check_part, is_list_of, is_token, is_whole
from .extras import Breaker, Concurrency, Pacer, Throttle
from .gate import GateBook
from .policy import Policy

MAX_GATES = 10_000
MAX_ORIGINS = 1_000
MAX_DOUBTS = 1_024
HOOKS = ("on_send", "on_answer", "on_wait", "on_done")


class SystemClock:
    @staticmethod
    def now() -> float:
        return time.monotonic() * 1000

    @staticmethod
    def wall() -> float:
        return time.time() * 1000


class RequestFacts(NamedTuple):
    """What the rules look at in a request. `origin` is scheme://host:port, `header` reads by a lower-case name."""

    method: str
    url: Any  # str() of it is the URL
    origin: str
    path: str
    header: Callable[[str], Optional[str]]

    @property
    def operation(self) -> str:
        return f"{self.method} {self.path}"


class Send(NamedTuple):
    """What a call asks of its transport."""

    timeout_ms: float
    attempt: int
    added_headers: Tuple[Tuple[str, str], ...]


Bucket = Union[str, Callable[[RequestFacts], str]]
Extra = Union[bool, Mapping[str, Any], None]


@dataclasses.dataclass(frozen=True)
class Settings:
    policy: Policy = Policy()
    clock: Any = SystemClock
    random: Callable[[], float] = random_module.random
    new_key: Callable[[], str] = lambda: str(uuid.uuid4())
    hooks: Mapping[str, Callable[[Mapping[str, Any]], None]] = dataclasses.field(default_factory=dict)
    bucket: Bucket = "path"  # path, origin, or a function: calls with the same result share a gate
    credential: Optional[Callable[[RequestFacts], str]] = None
    buffer_body: int = 1024 * 1024  # bytes of a streamed body that are kept for a repeat
    whole_answers: int = 0  # a good answer counts only when so many bytes of it, or all, have come
    attempt_header: Optional[str] = "Retry-Attempt"
    secret_headers: Sequence[str] = ("X-Api-Key",)  # that another origin must not see either
    nested: bool = False  # inside another client that retries: make no retries
    max_gates: int = MAX_GATES
    breaker: Extra = None
    throttle: Extra = None
    concurrency: Extra = None
    pace: Optional[Mapping[str, Any]] = None

    def __post_init__(self) -> None:
        """Raises for a value that cannot be meant."""
        check("policy", isinstance(self.policy, Policy), "a Policy")
        check("clock", all(callable(getattr(self.clock, name, None)) for name in ("now", "wall")), "an object with now and wall")
        check("random", callable(self.random), "a function")
        check("new_key", callable(self.new_key), "a function")
        known = isinstance(self.hooks, Mapping) and all(name in HOOKS for name in self.hooks)
        check("hooks", known, f"a mapping of {', '.join(HOOKS)}")
        for name, hook in self.hooks.items():
            check(f"hooks: {name}", callable(hook), "a function")
        check("bucket", self.bucket in ("path", "origin") or callable(self.bucket), "'path', 'origin' or a function")
        check("credential", self.credential is None or callable(self.credential), "a function or None")
        check("buffer_body", is_whole(self.buffer_body), "a whole number of at least 0")
        check("whole_answers", is_whole(self.whole_answers), "a whole number of at least 0")
        check("attempt_header", self.attempt_header in (None, "") or is_token(self.attempt_header), "the name of a field or None")
        check("secret_headers", is_list_of(self.secret_headers, is_token), "a list of names of fields")
        check("nested", isinstance(self.nested, bool), "True or False")
        check("max_gates", is_whole(self.max_gates) and self.max_gates >= 1, "a whole number of at least 1")
        for name in ("breaker", "throttle", "concurrency", "pace"):
            check_part(name, getattr(self, name))

    def bucket_of(self, facts: RequestFacts) -> str:
        if self.bucket == "path":
            return facts.operation
        return "" if isinstance(self.bucket, str) else self.bucket(facts)  # "origin"

    def credential_of(self, facts: RequestFacts) -> str:
        if self.credential:
            return self.credential(facts)
        return facts.header("authorization") or facts.header("x-api-key") or ""


def make_settings(options: Mapping[str, Any]) -> Settings:
    """From one flat mapping: fields of Settings and fields of Policy. An unknown one raises TypeError."""
    own = {field.name for field in dataclasses.fields(Settings)}
    policy_fields = {name: value for name, value in options.items() if name not in own}
    if options.get("nested"):
        policy_fields["max_retries"] = 0
    policy = options.get("policy", Policy())
    check("policy", isinstance(policy, Policy), "a Policy")
    policy = dataclasses.replace(policy, **policy_fields)
    return Settings(**{**{name: value for name, value in options.items() if name in own}, "policy": policy})


def key_rule(policy: Policy) -> Callable[[str, str], bool]:
    rule = policy.idempotency
    if callable(rule):
        return rule
    if isinstance(rule, str):
        wanted = rule == "auto"
        return lambda method, path: wanted
    return route_matcher(rule)


def route_matcher(patterns: Any) -> Callable[[str, str], bool]:
    """Patterns such as "POST /v1/x/{id}": {id} is one segment, ** the rest."""
    def expression(pattern: str) -> str:
        parts = re.split(r"(\{[^/}]+\}|\*\*)", pattern)
        return "".join(".*" if part == "**" else "[^/]+" if part.startswith("{") else re.escape(part) for part in parts)
    compiled = re.compile("|".join(f"(?:{expression(pattern)})" for pattern in patterns) or r"(?!)")
    return lambda method, path: compiled.fullmatch(f"{method} {path}") is not None


class Origin:
    def __init__(self, settings: Settings) -> None:
        self.budget = Budget(settings.policy)
        self.breaker = Breaker(**_given(settings.breaker)) if _is_on(settings.breaker) else None
        self.throttle = Throttle(**_given(settings.throttle)) if _is_on(settings.throttle) else None
        self.concurrency = Concurrency(**_given(settings.concurrency)) if _is_on(settings.concurrency) else None


def _is_on(extra: Extra) -> bool:
    return extra is not None and extra is not False  # an empty mapping: with its standard numbers


def _given(extra: Extra) -> Mapping[str, Any]:
    return extra if isinstance(extra, Mapping) else {}


class Shared:
    def __init__(self, settings: Settings) -> None:
        Origin(settings)  # raises for settings that cannot be meant: now, not at the first call
        self.settings = settings
        self.lock = threading.RLock()
        self.gates = GateBook(settings.policy, settings.random, settings.max_gates)
        self.narrow_gates = GateBook(settings.policy, settings.random, settings.max_gates)
        self.origins: Dict[str, Origin] = {}
        self.doubts: Dict[str, None] = {}  # keys of attempts whose outcome is unknown
        self.pacer = Pacer(**_given(settings.pace)) if _is_on(settings.pace) else None
        # Whether there is more to ask and to tell than gates and budgets.
        self.has_parts = any(map(_is_on, (settings.pace, settings.breaker, settings.throttle, settings.concurrency)))
        self.watched = bool(settings.hooks) or self.has_parts  # every call has something to tell of itself
        self.makes_key = key_rule(settings.policy)
        self.makes_keys = settings.policy.idempotency != "caller"
        self.first_send = Send(max(1, min(settings.policy.attempt_timeout_ms, settings.policy.total_deadline_ms)), 1, ())
        self.usual_info: Any = None  # the last CallInfo of a plain call without a key: most are the same
        self.key_header = settings.policy.idempotency_header.lower()
        self.calls = self.sends = 0
        self.counters: Dict[str, Dict[str, float]] = {"retries": {}, "wait_ms": {}, "local_refusals": {}}

    def origin(self, name: str) -> Origin:
        origin = self.origins.get(name)
        if origin is None:
            if len(self.origins) >= MAX_ORIGINS:
                del self.origins[next(iter(self.origins))]
            origin = self.origins[name] = Origin(self.settings)
        return origin

    def add_doubt(self, key: str) -> None:
        if len(self.doubts) >= MAX_DOUBTS:
            del self.doubts[next(iter(self.doubts))]
        self.doubts[key] = None

    def count(self, table: str, name: str, amount: float = 1) -> None:
        self.counters[table][name] = self.counters[table].get(name, 0) + amount

    def stats(self) -> Dict[str, Any]:
        """A copy for whoever watches; credentials are not in it."""
        with self.lock:
            now = self.settings.clock.now()
            gates: List[Dict[str, Any]] = []
            for key, gate in self.gates.gates.items():
                origin, _, bucket = key.split("\n", 2)
                state = "closed" if now < gate.opens_at else "probing" if gate.probe_needed else "open"
                gates.append({"origin": origin, "bucket": bucket, "state": state,
                              "opens_in_ms": max(0.0, gate.opens_at - now), "in_flight": gate.in_flight,
                              "waiting": len(gate.queue), "remaining": gate.remaining})
            return {"calls": self.calls, "sends": self.sends,
                    **{name: dict(table) for name, table in self.counters.items()},
                    "budgets": {name: origin.budget.left for name, origin in self.origins.items()}, "gates": gates}
