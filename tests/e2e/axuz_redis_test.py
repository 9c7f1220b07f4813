#!/usr/bin/env python3
"""The Axuz page again, with its counters on a real Redis: the same tests, and what only a store of its
own can show."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

import axuz_test
from harness import AXUZ, Client, Process, Service, accepts, free_port, wait_for


class Redis:
    """A redis-server of this test's own."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ration-e2e-redis-"))
        self.port = free_port()
        self.start()

    def start(self):
        self.process = Process(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                                "--appendonly", "no", "--dir", str(self.folder)], self.folder, "redis")
        wait_for(lambda: accepts(self.port), "redis-server answers")

    def kill(self):
        self.process.child.kill()
        self.process.wait()

    def command(self, *words):
        done = subprocess.run(["redis-cli", "-p", str(self.port), *words], stdout=subprocess.PIPE, check=True)
        return done.stdout.decode().split("\n")

    def end(self):
        self.process.end()
        shutil.rmtree(self.folder, ignore_errors=True)


def on(redis):
    """serve.yaml's counters. The deadline is for machines that build something else meanwhile."""
    return {"counters: {memory: 64MiB}": f"counters: {{redis: {{address: \"127.0.0.1:{redis.port}\", deadline: 5s}}}}"}


class OnRedis:
    def setUp(self):
        self.redis = Redis()
        self.addCleanup(self.redis.end)
        self.service = self.enterContext(Service(example=AXUZ, settings=on(self.redis)))


class TokensOnRedis(OnRedis, axuz_test.Tokens):
    def test_a_ceiling_is_one_over_two_gateways(self):
        with Service(example=AXUZ, settings=on(self.redis)) as other:
            self.within_one_minute()
            answers = [service.ask("GET", "/me/summary", key="axp_demo_ben")
                       for _ in range(4) for service in (self.service, other)]
        # Five a minute; an edge of the minute in between can only give each window its own five.
        admitted = [answer for answer in answers if answer.status == 200]
        windows = {answer.headers["X-RateLimit-Reset"] for answer in answers}
        self.assertLessEqual(len(admitted), 5 * len(windows))
        if len(windows) == 1:
            self.assertEqual(len(admitted), 5)
            self.assertEqual(answers[-1].json()["count"], 8)

    def test_no_token_and_no_address_is_in_redis(self):
        self.ask("GET", "/me/summary", key="axp_demo_ben")
        keys = "\n".join(self.redis.command("KEYS", "*"))
        self.assertIn("personal_token", keys)
        self.assertNotIn("axp_", keys)
        self.assertNotIn(self.address, keys)


class TeamsOnRedis(OnRedis, axuz_test.Teams):
    pass


class SignInOnRedis(OnRedis, axuz_test.SignIn):
    def test_a_block_is_not_longer_after_a_restart(self):
        for _ in range(5):
            self.sign_in(axuz_test.wrong("someone@example.org"))
        before = int(self.sign_in(axuz_test.RIGHT).headers["Retry-After"])
        self.service.restart(kill=False)
        after = int(self.sign_in(axuz_test.RIGHT).headers["Retry-After"])
        self.assertLessEqual(after, before)
        self.assertGreater(after, 300)


class OthersOnRedis(OnRedis, axuz_test.Others):
    pass


class Outage(OnRedis, unittest.TestCase):
    def outage(self, environment):
        with Service(example=AXUZ, settings=on(self.redis), environment=environment) as service:
            self.assertEqual(service.ask("GET", "/me/summary", key="axp_demo_ana").status, 200)
            self.redis.kill()
            answers = {"token": service.ask("GET", "/me/summary", key="axp_demo_ana"),
                       "change": service.ask("POST", "/teams/t_red/tasks", headers=axuz_test.SESSION,
                                             body={"title": "one"})}
            errors = service.gateway.error_text()
            ready = service.admin("/readyz").status
            self.redis.start()
            wait_for(lambda: "X-RateLimit-Remaining" in
                     service.ask("GET", "/me/summary", key="axp_demo_ana").headers, "limits count again")
        return answers, errors, ready

    def test_open_unless_the_environment_says_otherwise(self):
        answers, _, ready = self.outage({})
        self.assertEqual(answers["token"].status, 200)
        self.assertNotIn("X-RateLimit-Remaining", answers["token"].headers)
        self.assertLess(answers["change"].status, 300)
        self.assertEqual(ready, 200)

    def test_closed_where_the_environment_says_so(self):
        answers, _, ready = self.outage({"RATE_LIMIT_FAIL_CLOSED": "true", "MUTATION_RATE_LIMIT_FAIL_CLOSED": "0"})
        self.assert_closed(answers["token"])
        self.assertLess(answers["change"].status, 300)
        self.assertEqual(ready, 503)

    def test_the_other_switch(self):
        answers, _, _ = self.outage({"MUTATION_RATE_LIMIT_FAIL_CLOSED": "yes"})
        self.assertEqual(answers["token"].status, 200)
        self.assert_closed(answers["change"])

    def assert_closed(self, answer):
        self.assertEqual(answer.status, 503)
        self.assertEqual(answer.json(), {"error": "rate_limiter_unavailable"})
        self.assertEqual(answer.headers["Retry-After"], "60")


if __name__ == "__main__":
    unittest.main()
