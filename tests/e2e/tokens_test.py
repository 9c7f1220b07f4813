#!/usr/bin/env python3
"""Tokens made at run time and blocks, by the command and by the admin listener."""

import json
import pathlib
import re
import subprocess
import unittest

from harness import AXUZ, Client, RATION, Service, new_address, wait_for

SECRET = re.compile(r"axp_[A-Za-z0-9_-]{43}")


class Operators(unittest.TestCase):
    def setUp(self):
        self.service = self.enterContext(Service(example=AXUZ))

    def command(self, *words, code=0):
        done = subprocess.run([RATION, *words, "--admin", f"http://127.0.0.1:{self.service.admin_port}"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def admin(self, method, path, body=None):
        client = Client(self.service.admin_port)
        try:
            return client.ask(method, path, body=body)
        finally:
            client.close()

    def create(self, *words):
        return json.loads(self.command("token", "create", *words, "--json"))

    def summary(self, secret, **what):
        return self.service.ask("GET", "/me/summary", key=secret, **what)


class Tokens(Operators):
    def test_made_used_listed_revoked(self):
        made = self.create("--user", "u_ana", "--rate-limit-per-min", "7", "--name", "ci")
        self.assertTrue(SECRET.fullmatch(made["secret"]), made)
        self.assertEqual((made["kind"], made["user"], made["rate_limit_per_min"], made["name"]),
                         ("personal_token", "u_ana", 7, "ci"))
        self.assertIsNone(made["last_used"])
        answer = self.summary(made["secret"])
        self.assertEqual((answer.status, answer.headers["X-RateLimit-Limit"], answer.json()["user"]["id"]),
                         (200, "7", "u_ana"))
        self.assertEqual(self.summary("axp_demo_ana").headers["X-RateLimit-Limit"], "60")

        listed = self.command("token", "list")
        self.assertIn(made["id"], listed)
        self.assertNotIn(made["secret"], listed)
        page = json.loads(self.command("token", "list", "--owner", "u_ana", "--json"))
        self.assertEqual([token["id"] for token in page["tokens"]], [made["id"]])
        self.assertIsNotNone(page["tokens"][0]["last_used"])
        self.assertEqual(json.loads(self.command("token", "list", "--owner", "u_ben", "--json"))["tokens"], [])

        self.assertIn("revoked", self.command("token", "revoke", made["id"]))
        self.assertEqual(self.summary(made["secret"]).status, 401)
        self.command("token", "revoke", made["id"], code=1)

    def test_the_plain_output_ends_with_the_secret(self):
        lines = self.command("token", "create", "--user", "u_ben").splitlines()
        self.assertTrue(SECRET.fullmatch(lines[-1]), lines)
        self.assertIn("rate_limit_per_min  60", lines)
        self.assertEqual(self.summary(lines[-1]).json()["user"]["id"], "u_ben")

    def test_ceilings_are_from_1_to_1000(self):
        for number in ("0", "1001", "-1", "1.5"):
            self.command("token", "create", "--user", "u_ana", f"rate_limit_per_min={number}", code=1)
        for number in (1, 1000):
            made = self.create("--user", "u_ana", "--rate-limit-per-min", str(number))
            self.assertEqual(made["rate_limit_per_min"], number)
        self.assertEqual(self.create("--user", "u_ana")["rate_limit_per_min"], 60)

    def test_a_token_may_do_what_it_was_made_for(self):
        made = self.create("--user", "u_ana", "--rate-limit-per-min", "7")
        changed = self.admin("PATCH", f"/v1/tokens/{made['id']}", {"rate_limit_per_min": 100})
        self.assertEqual((changed.status, changed.error_type()), (409, "fixed_at_creation"))
        self.assertIn("revoke", changed.json()["error"]["message"])
        self.assertEqual(self.summary(made["secret"]).headers["X-RateLimit-Limit"], "7")

    def test_team_keys_have_the_same_design(self):
        made = self.create("--team", "t_blue", "--rate-limit-per-min", "3")
        self.assertTrue(made["secret"].startswith("axt_"))
        answers = [self.service.ask("GET", "/teams/t_blue/tasks", key=made["secret"]) for _ in range(4)]
        self.assertEqual(answers[0].headers["X-RateLimit-Limit"], "3")
        self.assertIn(answers[3].status, (200, 429))  # 200 only in another minute
        self.assertEqual(self.service.ask("GET", "/teams/t_red/tasks", key=made["secret"]).status,
                         404 if answers[3].status == 200 else 429)

    def test_orders_that_are_refused(self):
        for body, status in (({}, 400), ({"user": ""}, 400), ({"user": 7}, 400), ({"user": "u_nobody"}, 422),
                             ({"user": "u_ana", "team": "t_red"}, 400), ({"kind": "session", "user": "u_ana"}, 400),
                             ({"user": "u_ana", "colour": "red"}, 400), ({"user": "u_ana", "name": "x" * 129}, 400),
                             ({"user": "u_ana", "rate_limit_per_min": "60"}, 422),
                             ({"user": "u_ana", "rate_limit_per_min": 2 ** 64}, 422), ([], 400), ("{", 400)):
            answer = self.admin("POST", "/v1/tokens", body)
            self.assertEqual(answer.status, status, (body, answer))
        self.assertEqual(self.admin("GET", "/v1/tokens").json()["tokens"], [])
        self.assertEqual(self.admin("POST", "/v1/tokens", {"user": "u_ana", "name": "x" * 128}).status, 201)

    def test_pages(self):
        ids = sorted(self.create("--user", "u_ana")["id"] for _ in range(5))
        first = self.admin("GET", "/v1/tokens?limit=3").json()
        self.assertEqual(([token["id"] for token in first["tokens"]], first["next"]), (ids[:3], ids[2]))
        second = self.admin("GET", f"/v1/tokens?limit=3&after={first['next']}").json()
        self.assertEqual(([token["id"] for token in second["tokens"]], second["next"]), (ids[3:], None))
        self.assertEqual(self.admin("GET", "/v1/tokens?limit=1001").status, 400)

    def test_tokens_outlive_the_process_and_revocations_too(self):
        lasting, gone = self.create("--user", "u_ana"), self.create("--user", "u_ana")
        self.summary(lasting["secret"])
        self.command("token", "revoke", gone["id"])
        used = self.admin("GET", f"/v1/tokens/{lasting['id']}").json()["last_used"]
        self.service.restart(kill=False)
        self.assertEqual(self.admin("GET", f"/v1/tokens/{lasting['id']}").json()["last_used"], used)
        self.assertEqual(self.summary(lasting["secret"]).status, 200)
        self.assertEqual(self.summary(gone["secret"]).status, 401)
        self.service.restart(kill=True)
        self.assertEqual(self.summary(lasting["secret"]).status, 200)
        self.assertEqual(self.summary(gone["secret"]).status, 401)

    def test_a_secret_stands_nowhere(self):
        made = self.create("--user", "u_ana")
        self.summary(made["secret"])
        self.summary(made["secret"] + "x")
        self.command("token", "revoke", made["id"])
        self.summary(made["secret"])
        metrics, policy = self.service.admin("/metrics").body, self.service.admin("/v1/policy").body
        self.service.gateway.end()
        for path in self.service.folder.iterdir():
            if path.is_file():
                self.assertNotIn(made["secret"].encode(), path.read_bytes(), path)
        for text in (metrics, policy):
            self.assertNotIn(made["secret"].encode(), text)

    def test_a_flood_of_guesses_asks_the_ledger_nothing(self):
        self.create("--user", "u_ana")
        before = self.admin("GET", "/v1/ledger").json()
        addresses = [new_address() for _ in range(20)]
        statuses = [self.summary(f"axp_{n:043}", address=addresses[n % 20]).status for n in range(1980)]
        self.assertEqual(set(statuses), {401})
        after = self.admin("GET", "/v1/ledger").json()
        for name in ("commits", "failures"):
            self.assertEqual(find(before, name), find(after, name), name)
        statuses = [self.summary("axp_guess", address=addresses[0]).status for _ in range(2)]
        self.assertEqual(statuses, [401, 429], "the hundredth failure blocks")


class Blocks(Operators):
    def block(self, address):
        for n in range(5):
            answer = self.service.ask("POST", "/auth/login", address=address,
                                      body={"email": f"user{n}@example.org", "password": "x"})
            self.assertEqual(answer.status, 401)

    def sign_in(self, address):
        return self.service.ask("POST", "/auth/login", address=address,
                                body={"email": "ana@example.org", "password": "ana-demo-password"})

    def test_listed_and_lifted(self):
        self.assertEqual(self.command("block", "list"), "")
        self.block("203.0.113.7")
        self.block("2001:db8:1:2::3")
        listed = self.command("block", "list")
        self.assertRegex(listed, r"(?m)^203\.0\.113\.7  failed sign-ins  until \S+ \(\d+ s left, level 1\)$")
        self.assertEqual(len(listed.splitlines()), 2)
        blocks = self.admin("GET", "/v1/blocks").json()["blocks"]
        self.assertEqual([block["subject"] for block in blocks], [["2001:db8:1:2::"], ["203.0.113.7"]])

        self.command("block", "lift", "203.0.113.8", code=1)
        self.command("block", "lift", "203.0.113.7", "--rule", "unknown tokens", code=1)
        self.assertEqual(self.sign_in("203.0.113.7").status, 429)
        self.assertEqual(self.command("block", "lift", "203.0.113.7"), "lifted: 1\n")
        self.assertEqual(self.sign_in("203.0.113.7").status, 200)
        self.assertEqual(self.command("block", "lift", "2001:db8:1:2:ffff::"), "lifted: 1\n")
        self.assertEqual(self.sign_in("2001:db8:1:2::3").status, 200)
        self.service.restart(kill=False)
        self.assertEqual(self.sign_in("203.0.113.7").status, 200)
        self.assertEqual(self.command("block", "list"), "")

    def test_a_block_is_kept_before_long_whatever_ends_the_process(self):
        self.block("203.0.113.7")
        ledger = pathlib.Path(self.service.folder / "ledger.db-wal")
        wait_for(lambda: b"failed sign-ins\t203.0.113.7" in ledger.read_bytes(), "the block is written down")
        self.service.restart(kill=True)
        self.assertEqual(self.sign_in("203.0.113.7").json()["error"], "ip_blocked")
        self.assertEqual(len(self.command("block", "list").splitlines()), 1)

    def test_bad_questions(self):
        for body in ({}, {"subject": 7}, {"subject": "x", "rul": "y"}, [], "{"):
            self.assertEqual(self.admin("POST", "/v1/blocks/lift", body).status, 400, body)
        self.assertEqual(self.admin("GET", "/v1/blocks?limit=0").status, 400)
        self.assertEqual(self.admin("POST", "/v1/blocks").status, 405)


def find(tree, name):
    """The value of that name, wherever it stands."""
    for key, value in tree.items():
        if key == name:
            return value
        if isinstance(value, dict) and (found := find(value, name)) is not None:
            return found
    return None


if __name__ == "__main__":
    unittest.main()
