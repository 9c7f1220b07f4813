"""Every case of clients/vectors.json, each kind by the method of its name."""

import copy
import json
import os
import pathlib
import random
import unittest

from virtual import World

from ration_client import core

PATH = os.environ.get("RATION_VECTORS", str(pathlib.Path(__file__).resolve().parents[2] / "vectors.json"))
VECTORS = json.loads(pathlib.Path(PATH).read_text())
NOW = VECTORS["reference_now_unix_ms"]
RANDOM_SOURCES = [lambda: 0.0, lambda: 0.5, lambda: 1 - 2**-53, random.random]


def policy_of(given):
    return core.make_policy(given.get("policy", {}))


def reader(headers):
    return {name.lower(): value for name, value in (headers or {}).items()}.get


def outcome_of(given):
    if "error" in given:
        return core.Outcome(error=given["error"])
    body = given.get("body")
    content = None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
    return core.Outcome(status=given["status"], header=reader(given["headers"]), body=content)


def drawn(draws):
    rest = list(draws)
    return lambda: rest.pop(0) if len(rest) > 1 else rest[0]


def refused(status):
    return status in (429, 503)


class Vectors(unittest.TestCase):
    def test_every_case(self):
        for case in VECTORS["cases"]:
            with self.subTest(case["name"], about=case["about"]):
                self.assertTrue(all(rule in VECTORS["rules"] for rule in case["rules"]))
                getattr(self, "kind_" + case["kind"])(copy.deepcopy(case["given"]), case["expect"])

    def test_defaults(self):
        for name, value in VECTORS["defaults"].items():
            own = getattr(core.Policy(), name)
            self.assertEqual(list(own) if isinstance(own, tuple) else own, value, name)

    def within(self, value, bounds, what):
        self.assertTrue(bounds["min"] <= value <= bounds["max"], f"{what}: {value} is not within {bounds}")

    def kind_decide(self, given, expect):
        sources = ([drawn(given["draws"])] if "draws" in given else []) + RANDOM_SOURCES
        for index, source in enumerate(sources):
            outcome = outcome_of(given["outcome"])
            state = core.CallState(
                policy_of(given), given["method"], "idempotency-key" in {name.lower() for name in given["headers"]},
                given.get("body", "none"), given["attempts_made"], given["elapsed_ms"], given.get("retry_tokens", 50),
                given.get("cancelled", False), NOW, source)
            decision = core.decide(state, outcome, core.read_answer(outcome, NOW))
            self.assertEqual((decision.action, decision.reason), (expect["action"], expect.get("reason")))
            if "wait_ms" in expect:
                self.within(decision.wait_ms, expect["wait_ms"], "wait")
            if "wait_ms_exact" in expect and index == 0:
                self.assertAlmostEqual(decision.wait_ms, expect["wait_ms_exact"])
            for name in ("error_type", "retry_at_unix_ms"):
                if name in expect:
                    self.assertEqual(getattr(decision, name), expect[name], name)

    def kind_retry_after(self, given, expect):
        now = core.server_now(given.get("date"), given["now_unix_ms"])
        self.assertEqual(core.parse_retry_after(given["value"], now), expect["wait_ms"])

    def kind_limit_headers(self, given, expect):
        read = core.parse_limits(reader(given["headers"]), given["now_unix_ms"])
        told = [{"name": limit.name, "remaining": limit.remaining, "reset_in_ms": limit.reset_in_ms} for limit in read]
        self.assertEqual(told, expect["limits"])

    def kind_error_body(self, given, expect):
        text = given["text"] + " " * given.get("blanks", 0)
        read = core.read_error_body(text.encode(given.get("encoding", "utf-8")))
        self.assertEqual({"type": read.type, "wait_ms": read.wait_ms}, expect)

    def kind_backoff(self, given, expect):
        self.assertEqual([core.backoff_bound(policy_of(given), retry) for retry in given["retries"]], expect["bound_ms"])

    def kind_spread(self, given, expect):
        outcome, waits = outcome_of(given["answer"]), []
        for seed in range(given["clients"]):
            state = core.CallState(policy_of(given), "GET", False, "none", 1, 0, 50, False, NOW, random.Random(seed).random)
            waits.append(core.decide(state, outcome, core.read_answer(outcome, NOW)).wait_ms)
        for wait in waits:
            self.within(wait, expect["wait_ms"], "wait")
        self.within(sum(waits) / len(waits), expect["mean_ms"], "mean")
        self.assertGreaterEqual(len(set(waits)), expect["distinct"])

    def kind_gate(self, given, expect):
        for source in RANDOM_SOURCES:
            for watched in (True, False):
                self.one_gate(given, expect, source, watched)

    def one_gate(self, given, expect, source, watched):
        """All calls of the steps are sent at 0, before anything is known; each is answered at its moment."""
        def reply(send):
            context = send["running"].context
            if context.get("lost"):
                return 0, core.Outcome(error="connection_lost")
            step = context.get("step")
            return (step["at_ms"], outcome_of(step["answer"])) if step else (0, core.Outcome(status=200))
        world = World(NOW, reply, watched=watched, random=source, max_retries=0, bucket=lambda facts: facts.header("x-bucket"))

        def call(on, key=None, **context):
            method, path = on.get("operation", on["bucket"]).split(" ")
            headers = {"Authorization": on["credential"], "X-Bucket": on["bucket"], **({"Idempotency-Key": key} if key else {})}
            return world.start(method, path, headers, **context)
        for step in given["steps"]:
            call(step["on"], step=step)
        following = given["next"]
        key = "in-doubt" if following.get("key_in_doubt") else None
        if key:
            call(following["on"], key, lost=True)
        world.clock.run(max([following["at_ms"]] + [step["at_ms"] for step in given["steps"]]))
        before = len(world.sends)
        running = call(following["on"], key)
        world.clock.run()
        if expect["action"] == "reject":
            self.assertEqual(running.ending.info.reason, expect["reason"])
            self.assertEqual(running.ending.info.retry_at, NOW + expect["retry_at_ms"])
            self.assertEqual(len(world.sends), before)
        else:
            self.assertEqual(len(world.sends), before + 1)
            self.within(world.sends[-1]["at"], expect["send_at_ms"], "sent")

    def kind_in_flight(self, given, expect):
        gate, tickets = core.Gate(core.Policy(), lambda: 0.0), {}
        for step in given["steps"]:
            now = step["at_ms"]
            if "ask" in step:
                ticket = tickets.setdefault(step["ask"], core.Ticket())
                self.assertEqual("go" if gate.ask(ticket, now).go else "hold", step["expect"], step)
            elif "leave" in step:
                gate.leave(tickets[step["leave"]], now)
            elif "lost" in step:
                gate.done(tickets[step["lost"]], None, False, now)
            else:
                told = core.read_answer(outcome_of(step), NOW + now)
                gate.done(tickets[step["answer"]], told, refused(step["status"]), now)

    def kind_herd(self, given, expect):
        for source in RANDOM_SOURCES:
            for watched in (True, False):
                Herd(self, given, expect, source, watched).run()

    def kind_call(self, given, expect):
        for source in RANDOM_SOURCES:
            for watched in (True, False):
                OneCall(self, given, expect, source, watched).run()

    def kind_budget(self, given, expect):
        budget, now = core.Budget(core.Policy()), 0
        for index, step in enumerate(given["steps"]):
            for _ in range(step.get("retries", 0)):
                budget.retry(now)
            for _ in range(step.get("successes", 0)):
                budget.success()
            now += step.get("idle_ms", 0)
            self.assertAlmostEqual(budget.left, expect["tokens"][index])
            self.assertEqual(budget.tokens(now) >= 1 - 1e-9, expect["allowed"][index], index)

    def kind_local_refusal(self, given, expect):
        self.assertAlmostEqual(
            core.reject_probability(given["requests"], given["accepts"], given["k"]), expect["probability"], places=5)
        throttle = core.Throttle(given["k"])
        for _ in range(given["requests"]):
            throttle.sent(0)
        for _ in range(given["accepts"]):
            throttle.answered(0, True)
        self.assertEqual("reject" if throttle.rejects(0, lambda: given["draw"]) else "send", expect["action"])
        self.assertFalse(throttle.rejects(120_001, lambda: 0.0))  # two minutes later nothing is known

    def kind_redirect(self, given, expect):
        decision = core.decide_redirect(policy_of(given), given["method"], given["status"], given["from"], given["to"],
                                        given.get("followed", 0))
        self.assertEqual((decision.action, decision.reason), (expect["action"], expect.get("reason")))
        if decision.action == "follow":
            secrets = ("authorization", "cookie", "idempotency-key")
            kept = [name for name in given["headers"] if not decision.drop_secrets or name.lower() not in secrets]
            self.assertEqual((decision.url, decision.method, kept), (expect["url"], expect["method"], expect["headers_kept"]))

    def kind_pace(self, given, expect):
        pacer = core.Pacer(given["rate_per_min"], given["burst"])
        self.assertEqual([pacer.reserve(at) for at in given["offered_at_ms"]], expect["send_at_ms"])

    def kind_concurrency(self, given, expect):
        steps = given.pop("steps")
        limiter = core.Concurrency(**given)
        for step in steps:
            if step["signal"] == "throttled":
                limiter.throttled(step["at_ms"])
            else:
                limiter.window_ok(step["limit_was_reached"])
        self.assertEqual(limiter.limit, expect["limit"])

    def kind_breaker(self, given, expect):
        enabled, outcomes, asks = given.pop("enabled"), given.pop("outcomes"), given.pop("asks")
        breaker, actions = core.Breaker(**given) if enabled else None, []

        def failed(outcome):
            return outcome not in ("ok", "http_429")
        for outcome in outcomes if breaker else []:
            breaker.outcome(0, failed(outcome))
        for ask in asks:
            allowed = breaker.allows(ask["at_ms"]) if breaker else True
            if allowed and "then" in ask:
                breaker.outcome(ask["at_ms"], failed(ask["then"]))
            actions.append("send" if allowed else "reject")
        self.assertEqual(actions, expect["actions"])


class WindowServer:
    """Windows of the wall clock, told by X-RateLimit-Remaining and -Reset."""

    def __init__(self, limit, every_ms, latency_ms):
        self.limit, self.every, self.latency, self.used, self.refused = limit, every_ms, latency_ms, {}, {}

    def reply(self, wall):
        window = int((wall + self.latency / 2) // self.every)
        self.used[window] = self.used.get(window, 0) + 1
        good = self.used[window] <= self.limit
        headers = {"X-RateLimit-Remaining": str(max(0, self.limit - self.used[window])),
                   "X-RateLimit-Reset": str((window + 1) * self.every // 1000), **({} if good else {"Retry-After": "1"})}
        if not good:
            self.refused[window] = self.refused.get(window, 0) + 1
        return self.latency, core.Outcome(status=200 if good else 429, header=reader(headers))


class Herd:
    def __init__(self, test, given, expect, source, watched):
        self.test, self.given, self.expect = test, given, expect
        self.window = WindowServer(**given["window"]) if "window" in given else None
        self.before = True
        self.world = World(NOW, self.reply, given.get("timer_error_ms", 0), watched, random=source,
                           **{**given.get("policy", {}), "bucket": "path"})

    def reply(self, send):
        if self.before:
            return 0, outcome_of(self.given["steps_before"][0]["answer"])
        if self.window:
            return self.window.reply(self.world.clock.wall())
        step = next(step for step in self.given["server"] if step["until_ms"] is None or send["at"] < step["until_ms"])
        return step["latency_ms"], outcome_of(step["reply"])

    def call(self, policy=None):
        return self.world.start("GET", "/v1/availability", {"Authorization": "tok-A"}, policy=policy)

    def run(self):
        clock, given = self.world.clock, self.given
        if "steps_before" in given:
            self.call(core.make_policy({"max_retries": 0}))
            clock.run(0)
            self.world.sends.clear()
        self.before = False
        clock.run(given["start_ms"])
        jump = given.get("wall_clock_jump")
        if jump:
            clock.at(jump["at_ms"], lambda: setattr(clock, "wall_offset", clock.wall_offset + jump["by_ms"]))
        calls = [self.call() for _ in range(given["calls"])]
        if "cancel_at_ms" in given:
            clock.at(given["cancel_at_ms"], lambda: [call.cancel() for call in calls])
        clock.run()
        self.check(calls)
        self.check_sends()

    def check(self, calls):
        test, expect = self.test, self.expect
        if expect.get("all_succeed"):
            test.assertEqual([call.result() for call in calls if call.result() != 200], [])
        if "result" in expect:
            test.assertEqual({call.result() for call in calls}, {expect["result"]})
            for call in calls:
                test.within(call.ended_at, expect["ends_ms"], "ended")
        if "timers_left" in expect:
            test.assertEqual(self.world.clock.timers(), expect["timers_left"])
        if "refused_per_later_window_max" in expect:
            later = {window: count for window, count in self.window.refused.items() if window > NOW // self.window.every}
            test.assertLessEqual(max(later.values(), default=0), expect["refused_per_later_window_max"])

    def check_sends(self):
        test, expect, sends = self.test, self.expect, self.world.sends
        for span in expect.get("sends_between_ms", []):
            count = sum(span["from"] <= send["at"] < span["to"] for send in sends)
            test.assertLessEqual(count, span["max"], span)
        if "probes_before_first_reply" in expect:
            times = [send["at"] for send in sends]
            quiet = next(index for index, at in enumerate(times)
                         if at > self.given["start_ms"] and at - (times[index - 1] if index else -1000) >= 1000)
            early = sum(times[quiet] <= at < sends[quiet]["replied_at"] for at in times)
            test.assertEqual(early, expect["probes_before_first_reply"])
        if "sends_per_call_max" in expect:
            test.assertLessEqual(max(send["attempt"] for send in sends), expect["sends_per_call_max"])
        if "last_send_before_ms" in expect:
            test.assertLess(sends[-1]["at"], expect["last_send_before_ms"])
        if "sends_total" in expect:
            test.assertEqual(len(sends), expect["sends_total"])


class OneCall:
    def __init__(self, test, given, expect, source, watched):
        self.test, self.given, self.expect = test, given, expect
        self.answers, self.watched = [], watched
        self.world = World(NOW, self.reply, watched=watched, random=source, **given.get("policy", {}))

    def reply(self, send):
        answer = self.answers.pop(0)
        if answer.get("error") == "never_answers":
            return None, None
        return answer.get("takes_ms", 0), outcome_of(answer)

    def run(self):
        test, expect, given = self.test, self.expect, self.given
        body = given.get("body", {"source": "none"})["source"].replace("once", "stream_once")
        sent = []
        for index, answers in enumerate(given["answers"]):
            self.answers = list(answers)
            self.world.sends.clear()
            running = self.world.start(given["method"], "/v1/thing", given["headers"], body)
            self.world.clock.run()
            test.assertEqual(len(self.world.sends), expect["sends"][index])
            test.assertEqual(running.result(), expect["result"][index])
            test.assertLessEqual(len({send["key"] for send in self.world.sends}), 1)
            self.check_waits(running, index)
            sent += self.world.sends
        keys = {send["key"] for send in sent if send["key"] and send["key"].strip()}
        if "keys_distinct" in expect:
            test.assertEqual(len(keys), expect["keys_distinct"])
        if "keys" in expect:
            test.assertEqual(sorted(keys), expect["keys"])
        if "events" in expect and self.watched:
            test.assertEqual([self.named(*hook) for hook in running.hooks], expect["events"])
        if "ends_ms" in expect:
            test.within(running.ended_at, expect["ends_ms"], "ended")
        test.assertEqual(self.world.clock.timers(), 0)

    def check_waits(self, running, index):
        waits = [event for hook, event in running.hooks if hook == "on_wait"]
        if "waits" in self.expect and self.watched:
            expected = self.expect["waits"][index]
            self.test.assertEqual([wait["source"] for wait in waits], [wait["source"] for wait in expected])
            for wait, bounds in zip(waits, expected):
                self.test.within(wait["ms"], bounds, "wait")

    @staticmethod
    def named(hook, event):
        return {"on_send": f"attempt:{event.get('attempt')}", "on_wait": f"wait:{event.get('source')}",
                "on_done": f"done:{event.get('reason')}"}[hook]


if __name__ == "__main__":
    unittest.main()
