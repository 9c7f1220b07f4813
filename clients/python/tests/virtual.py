"""A virtual clock that drives calls of the core against a function instead of a server."""

import heapq
import itertools

from ration_client import core


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
    """One call under way: `ending` and `ended_at` are set when it is over."""

    def __init__(self, world, call, context):
        self.world, self.call, self.context = world, call, context
        self.ending, self.ended_at, self.hooks = None, None, []
        self._timer = None
        self.step(None)

    def step(self, value):
        clock = self.world.clock
        self._timer = None
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

    Unwatched, there are no hooks: calls that nothing holds are sent without a generator.
    """

    def __init__(self, wall_start, reply, timer_error_ms=0, watched=True, **options):
        self.clock, self.reply, self.sends = VirtualClock(wall_start, timer_error_ms), reply, []
        hooks = {name: (lambda event: None) for name in ("on_send", "on_wait", "on_done") if watched}
        settings = core.make_settings({"clock": self.clock, "hooks": hooks, **options})
        self.shared = core.Shared(settings)

    def start(self, method, path, headers=None, body="none", policy=None, **context):
        lower = {name.lower(): value for name, value in (headers or {}).items()}
        facts = core.RequestFacts(method, f"https://api.example{path}", "https://api.example:443", path.split("?")[0], lower.get)
        kind = {"kind": body}
        call = core.Call(self.shared, facts, lambda: kind["kind"], policy)
        running = Running.__new__(Running)
        context["body"] = kind
        context["key"] = call.key
        running.__init__(self, call, context)
        return running

    def send(self, running, want):
        record = {"at": self.clock.time, "running": running, "attempt": want.attempt, "key": running.context["key"]}
        self.sends.append(record)
        if running.context["body"]["kind"] == "stream_once":
            running.context["body"]["kind"] = "stream_once_consumed"
        delay, outcome = self.reply(record)
        if delay is None or delay > want.timeout_ms:
            delay, outcome = want.timeout_ms, core.Outcome(error="attempt_timeout")

        def replied():
            record["replied_at"], record["status"] = self.clock.time, outcome.status
            running.step(outcome)
        self.clock.at(self.clock.time + delay, replied)
