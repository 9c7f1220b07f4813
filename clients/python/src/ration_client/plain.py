"""The usual call: nothing holds it, and its answer is good and tells nothing.

For most calls a `Call` and its steps would cost more than all that they decide. A plain call enters its gate and leaves
it as a Call does; whatever else comes of its one send, a Call goes on from there.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

from .decide import Outcome
from .gate import ENTERED, Gate
from .shared import Origin, RequestFacts, Send, Settings, Shared


class CallInfo(NamedTuple):
    """What is known of a call that has ended. `retry_at`: when the server would take another call, in Unix
    milliseconds; None when it did not say."""

    attempts: int
    reason: str
    retry_at: Optional[float]
    idempotency_key: Optional[str]
    waited_ms: float
    status: Optional[int]
    error_type: Optional[str]


def gate_key(settings: Settings, facts: RequestFacts) -> str:
    """Of all calls that one gate holds: an origin's, a credential's, a bucket's."""
    bucket = f"{facts.method} {facts.path}" if settings.bucket == "path" else settings.bucket_of(facts)
    return f"{facts.origin}\n{settings.credential_of(facts)}\n{bucket}"


def key_of(given: Optional[str]) -> Optional[str]:
    """The key in its field's value: an empty one is none."""
    return given and given.strip(" \t") or None


def doubt_key(facts: RequestFacts, key: Optional[str]) -> str:
    return f"{facts.origin}\n{key}"


class Plain:
    """One call that was let in at once. Whoever drives it sends, and then ends it: by `passed`, by `abandon`, or by a
    Call that it is given to."""

    __slots__ = ("started_at", "gate", "_shared", "_facts", "_origin", "_key")
    started_at: float
    gate: Gate
    _shared: Shared
    _facts: RequestFacts
    _origin: Origin
    _key: Optional[str]

    @staticmethod
    def enter(shared: Shared, facts: RequestFacts) -> Optional["Plain"]:
        """None, and nothing done: something holds the call, or it has more to do than to ask one gate."""
        if shared.watched or facts.method in ("POST", "PATCH") and shared.makes_keys:
            return None
        key, bucket = key_of(facts.header(shared.key_header)), gate_key(shared.settings, facts)
        plain = Plain()
        with shared.lock:
            now = shared.settings.clock.now()
            gate = shared.gates.open(bucket, now)
            if shared.narrow_gates.gates or not gate.enter(now):
                return None
            plain.started_at, plain.gate, plain._origin = now, gate, shared.origin(facts.origin)
            shared.calls += 1
            shared.sends += 1
        plain._shared, plain._facts, plain._key = shared, facts, key
        return plain

    @property
    def send(self) -> Send:
        return self._shared.first_send

    def passed(self, outcome: Outcome) -> Optional[CallInfo]:
        """Its end, when there is nothing to learn and nothing to decide."""
        if not outcome.quiet:
            return None
        shared = self._shared
        with shared.lock:
            self.gate.passed(shared.settings.clock)
            self._origin.budget.success()
            if self._key is not None:
                shared.doubts.pop(doubt_key(self._facts, self._key), None)
            info = shared.usual_info
            if self._key is not None or info is None or info.status != outcome.status:
                info = CallInfo(1, "success", None, self._key, 0.0, outcome.status, None)
                if self._key is None:
                    shared.usual_info = info
        return info

    def abandon(self) -> None:
        """The driver was ended: what it sent has an unknown end."""
        shared = self._shared
        with shared.lock:
            self.gate.done(ENTERED, None, False, shared.settings.clock.now())
            if self._key is not None:
                shared.add_doubt(doubt_key(self._facts, self._key))
