"""A virtual clock that drives calls of the core against a function instead of a server."""

import heapq
import itertools

from ration_client import core
from ration_client.limits import tells_limits


class VirtualClock:
    def __init__(self, wall_start, timer_error_ms=0):
        self.time, self.wall_offset, self.timer_error_ms = 0.0, wall_start, timer_error_ms
        self._events, self._order = [], itertools.count()

    def now(self):
        return self.time

    def wall(self):
        return self.wall_offset + self.time

    def at(self, moment, action):
        """Calls `action` then; gives a function that takes it back."""
        entry = [max(moment, self.time), next(self._order), action]
        heapq.heappush(self._events, entry)

        def cancel():
            entry[2] = None
        return cancel

    def timers(self):
        return sum(1 for entry in self._events if entry[2])

    def run(self, until=None):
        """Lets everything happen, up to `until`."""
        while self._events and (until is None or self._events[0][0] <= until):
            moment, _, action = heapq.heappop(self._events)
            if action:
                self.time = max(self.time, moment)
                action()
        if until is not None:
            self.time = max(self.time, until)


class Running:
    """One call under way, driven as `drive` does: `ending` and `ended_at` are set when it is over."""

    def __init__(self, world, facts, policy, context):
        self.world, self.context, self._given = world, context, (world.shared, facts, lambda: context["body"]["kind"], policy)
        self.ending, self.ended_at, self.hooks = None, None, []
        self.call, self._timer, self._cancelled = None, None, False
        self.plain = core.Plain.enter(world.shared, facts) if policy is None else None
        if self.plain:
            context["key"] = facts.header(world.shared.key_header)
            world.send(self, self.plain.send)
        else:
            self.call = core.Call(*self._given)
            context["key"] = self.call.key
            self.step(None)

    def _passed(self, outcome):
        info = None if self._cancelled else self.plain.passed(outcome)
        if info:
            self.ending, self.ended_at = core.Ending(info, outcome), self.world.clock.time
        else:
            self.call = core.Call(*self._given, plain=self.plain)
            self.call.cancelled = self._cancelled
        return info is not None

    def step(self, value):
        clock = self.world.clock
        self._timer = None
        if self.call is None and self._passed(value):
            return
        self.call.waker = None
        want = self.call.step(value)
        self.hooks += self.call.events
        self.call.events = []
        if isinstance(want, core.Ending):
            self.ending, self.ended_at = want, clock.time
        elif isinstance(want, core.Send):
            self.world.send(self, want)
        else:
            wait = want.until - clock.time
            early = clock.timer_error_ms if wait >= 20 else 0
            self._timer = clock.at(want.until + early, lambda: self.step(None))
            self.call.waker = self._wake
            if self.call.woken:
                self._wake()

    def _wake(self):
        if self._timer:
            self._timer()
            self._timer = self.world.clock.at(self.world.clock.time, lambda: self.step(None))
            self.call.waker = None

    def cancel(self):
        self._cancelled = True
        if self.call:
            self.call.cancelled = True
            if self.ending is None:
                self.call.wake()

    def result(self):
        """The status, the error's kind, or why there is neither."""
        outcome = self.ending.outcome
        if outcome is None:
            return self.ending.info.reason
        if outcome.status is not None:
            return outcome.status
        return "deadline" if self.ending.info.reason == "deadline" else outcome.error


class World:
    """`reply(send)` gives (delay in ms, Outcome); a delay of None means: at the attempt's timeout.

    Unwatched, there are no hooks: calls that nothing holds are plain ones.
    """

    def __init__(self, wall_start, reply, timer_error_ms=0, watched=True, **options):
        self.clock, self.reply, self.sends = VirtualClock(wall_start, timer_error_ms), reply, []
        hooks = {name: (lambda event: None) for name in ("on_send", "on_wait", "on_done") if watched}
        settings = core.make_settings({"clock": self.clock, "hooks": hooks, **options})
        self.shared = core.Shared(settings)

    def start(self, method, path, headers=None, body="none", policy=None, **context):
        lower = {name.lower(): value for name, value in (headers or {}).items()}
        facts = core.RequestFacts(method, f"https://api.example{path}", "https://api.example:443", path.split("?")[0], lower.get)
        return Running(self, facts, policy, {**context, "body": {"kind": body}})

    def send(self, running, want):
        record = {"at": self.clock.time, "running": running, "attempt": want.attempt, "key": running.context["key"]}
        self.sends.append(record)
        if running.context["body"]["kind"] == "stream_once":
            running.context["body"]["kind"] = "stream_once_consumed"
        delay, outcome = self.reply(record)
        if delay is None or delay > want.timeout_ms:
            delay, outcome = want.timeout_ms, core.Outcome(error="attempt_timeout")
        outcome.quiet = outcome.status is not None and outcome.status < 400 and not tells_limits(outcome.header)

        def replied():
            record["replied_at"], record["status"] = self.clock.time, outcome.status
            running.step(outcome)
        self.clock.at(self.clock.time + delay, replied)
