"""Random and mangled headers: reading never raises, never gives a number that is no wait. Random calls: none goes
early, each ends. The seed is printed with a failure; RATION_SEED=... runs the same again."""

import datetime
import math
import os
import random
import unittest

from ration_client import core
from virtual import World

NOW = 1_795_996_800_000
ROUNDS = 10_000
SEED = int(os.environ.get("RATION_SEED", random.SystemRandom().randrange(2**31)))
PIECES = ["0", "1", "59", "999999999", "1795996830", "1795996830500", "9" * 40, "-", "+", ".", " ", "\t", ",", ";", "=", '"', "\\",
          "r", "t", "r=5", ";t=3", '"a"', "Mon, ", "30 Nov 2026", " 00:00:45", " GMT", "Monday, 30-Nov-26", "Nov", "\u0665", "e", "x",
          "NaN", "\U0001f600", "\0", "\ud800", "?1", ":YQ==:", "@1", "(", ")", "*", "{", "}", "[", "]", '"error":', '"type":',
          '"retry_after":', "null", "true"]


class Properties(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(SEED)

    def text(self):
        return "".join(self.random.choice(PIECES) for _ in range(self.random.randrange(9)))

    def sane(self, wait, least, what):
        self.assertTrue(wait is None or (math.isfinite(wait) and least <= wait <= core.MAX_WAIT_MS), (SEED, wait, what))

    def test_readers_take_anything(self):
        for _ in range(ROUNDS):
            value = self.text()
            self.sane(core.parse_retry_after(value, NOW), 1e-9, value)
            headers = {"ratelimit": value, "x-ratelimit-remaining": self.text(), "x-ratelimit-reset": self.text()}
            for limit in core.parse_limits(headers.get, NOW):
                self.sane(limit.reset_in_ms, 0, headers)
                self.assertTrue(0 <= limit.remaining < 2**53, headers)
            body = core.read_error_body(value.encode("utf-8", "surrogatepass"))
            self.sane(body.wait_ms, 1e-9, value)

    def test_hostile_bodies(self):
        for content in (b"[" * 60_000, b'{"a":' * 10_000, b'{"retry_after":' + b"9" * 5000 + b"}", b'{"retry_after":1e999}', b"\xff\xfe{"):
            self.sane(core.read_error_body(content).wait_ms, 1e-9, content[:20])

    def test_dates_come_back_from_each_of_their_forms(self):
        for _ in range(ROUNDS):
            at = NOW + self.random.randrange(-20 * 365 * 86_400, 20 * 365 * 86_400) * 1000
            moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=at)
            forms = (moment.strftime("%a, %d %b %Y %H:%M:%S GMT"), moment.strftime("%A, %d-%b-%y %H:%M:%S GMT"),
                     moment.strftime("%a %b ") + f"{moment.day:2} " + moment.strftime("%H:%M:%S %Y"))
            for form in forms:
                self.assertEqual(core.parse_http_date(form, NOW), at, (SEED, form))

    def test_a_decision_is_never_early_nor_beyond_the_deadline(self):
        policy = core.Policy()
        for _ in range(ROUNDS):
            value = str(self.random.randrange(130)) if self.random.random() < 0.5 else self.text()
            outcome = core.Outcome(status=429, header={"retry-after": value}.get)
            told, elapsed = core.read_answer(outcome, NOW), self.random.random() * 125_000
            state = core.CallState(policy, "GET", False, "none", self.random.randrange(1, 8), elapsed,
                                   self.random.random() * 3, False, NOW, self.random.random)
            decision = core.decide(state, outcome, told)
            if decision.action == "retry":
                floor = told.floor_ms
                self.assertTrue((floor or 0) <= decision.wait_ms <= (30_000 if floor is None else floor) + 500, (SEED, decision))
                self.assertLessEqual(elapsed + decision.wait_ms + policy.min_attempt_ms, policy.total_deadline_ms + 1e-6)

    def test_a_gate_is_never_early(self):
        for _ in range(200):
            self.gate_round()

    def gate_round(self):
        gate, now, told = core.Gate(core.Policy(), self.random.random), 0.0, -math.inf
        waiting, flying = [], []
        for _ in range(120):
            now += self.random.random() * 300
            ticket = self.random.choice(waiting) if waiting and self.random.random() < 0.5 else core.Ticket()
            if gate.ask(ticket, now).reject_until is None and ticket not in waiting:
                waiting.append(ticket)
            for granted in [each for each in waiting if each.granted]:
                self.assertGreaterEqual(now, told, SEED)
                waiting.remove(granted)
                flying.append(granted)
            self.assertEqual(gate.in_flight, len(flying), SEED)
            if flying and self.random.random() < 0.5:
                told = max(told, self.finish_one(gate, flying.pop(self.random.randrange(len(flying))), now))

    def finish_one(self, gate, ticket, now):
        """Ends a flight in one of the ways there are; gives the moment that was told."""
        wait, kind = 1000.0 * self.random.randrange(1, 6), self.random.randrange(4)
        if kind == 0:
            gate.done(ticket, core.Told(status=429, floor_ms=wait), True, now)
        elif kind == 1:
            gate.done(ticket, core.Told(status=200, limits=[core.Limit("a", 0, wait)]), False, now)
        else:
            gate.done(ticket, core.Told(status=200) if kind == 2 else None, False, now)
        return now + wait if kind < 2 else -math.inf

    def test_no_call_goes_early_and_nothing_of_it_is_left(self):
        for number in range(200):
            self.calls_round({"concurrency": {"initial": 1, "max": 1}} if number % 2 else {}, watched=number % 4 < 2)

    def calls_round(self, options, watched):
        pick, early = self.random.randrange, []

        def reply(send):
            early.extend(each for each in world.sends if each.get("status") == 429 and each["until"] > send["at"])
            mood, delay, seconds = pick(7), pick(400), 1 + pick(4)
            if mood < 2:
                return (None, None) if mood else (delay, core.Outcome(error="connection_lost"))
            if mood > 3:
                return delay, core.Outcome(status=200, header={}.get)
            send["until"] = send["at"] + delay + 1000 * seconds
            return delay, core.Outcome(status=429, header={"retry-after": str(seconds)}.get)

        world = World(NOW, reply, watched=watched, random=self.random.random, bucket="origin", attempt_timeout_ms=3000,
                      total_deadline_ms=30_000, **options)
        running = []
        for _ in range(1 + pick(30)):
            at, cancelled, after = pick(5000), self.random.random() < 0.3, pick(5000)
            world.clock.at(at, lambda cancelled=cancelled, moment=at + after: self.begin(world, running, cancelled, moment))
        world.clock.run()
        self.assertEqual(early, [], SEED)
        self.assertEqual([call for call in running if call.ending is None], [], SEED)
        gates, origins = world.shared.stats()["gates"], world.shared.origins.values()
        self.assertEqual({(gate["in_flight"], gate["waiting"]) for gate in gates}, {(0, 0)}, SEED)
        self.assertEqual({origin.concurrency.in_flight for origin in origins if origin.concurrency} | {0}, {0}, SEED)

    def begin(self, world, running, cancelled, moment):
        call = world.start("GET", "/v1/quote")
        running.append(call)
        if cancelled:
            world.clock.at(moment, call.cancel)


if __name__ == "__main__":
    unittest.main()
