#!/usr/bin/env python3
"""The Axuz page's server side, asked of the running gateway before the example's own upstream."""

import http.client
import json
import threading
import time
import unittest

from harness import AXUZ, Client, Service, new_address

RIGHT = {"email": "ana@example.org", "password": "ana-demo-password"}
SESSION = {"Cookie": "axuz_session=sess_demo_ana"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
CLIENT = "client_id=demo-client&client_secret=demo-client-secret"


def wrong(email):
    return {"email": email, "password": "a guess"}


class Axuz(unittest.TestCase):
    """A fresh gateway for each test: no window is used, nobody is blocked."""

    def setUp(self):
        self.service = self.enterContext(Service(example=AXUZ))

    def ask(self, method, path, **what):
        return self.service.ask(method, path, **{"address": self.address, **what})

    address = "203.0.113.7"

    def sign_in(self, body, **what):
        return self.ask("POST", "/auth/login", body=body, **what)


class Tokens(Axuz):
    def within_one_minute(self):
        """Waits for a new minute where the present one is nearly over; tells its end."""
        if time.time() % 60 > 50:
            time.sleep(60.05 - time.time() % 60)
        return int(time.time() // 60 + 1) * 60

    def test_five_a_minute_and_what_is_told(self):
        while True:
            end = self.within_one_minute()
            answers = [self.ask("GET", "/me/summary", key="axp_demo_ben") for _ in range(7)]
            if time.time() < end:
                break  # all in one window
        self.assertEqual([answer.status for answer in answers], [200] * 5 + [429] * 2)
        for answer, left in zip(answers, (4, 3, 2, 1, 0, 0, 0)):
            for name, value in (("Limit", 5), ("Remaining", left), ("Reset", end)):
                self.assertEqual(answer.headers.get_all(f"X-RateLimit-{name}"), [str(value)])
        self.assertNotIn("Retry-After", answers[0].headers)
        refusal = answers[5]
        wait = int(refusal.headers["Retry-After"])
        self.assertEqual(refusal.json(), {"error": "rate_limited", "limit": 5, "count": 6, "retry_after": wait})
        self.assertLessEqual(1, wait)
        self.assertLessEqual(wait, 60)
        self.assertEqual(answers[6].json()["count"], 7)
        self.assertEqual(refusal.headers["Cache-Control"], "no-store")

    def test_tokens_of_one_user_have_separate_windows_and_sessions_have_none(self):
        first = self.ask("GET", "/me/summary", key="axp_demo_ana")
        second = self.ask("GET", "/me/summary", key="axp_demo_ana_ci")
        self.assertEqual([first.headers["X-RateLimit-Remaining"], second.headers["X-RateLimit-Remaining"]],
                         ["59", "999"])
        browser = self.ask("GET", "/me/summary", headers=SESSION)
        self.assertEqual(browser.json()["user"]["id"], "u_ana")
        self.assertNotIn("X-RateLimit-Limit", browser.headers)

    def test_parallel_requests_are_each_counted_once(self):
        limit, threads, each = 60, 8, 25
        end = self.within_one_minute()
        answers, lock = [], threading.Lock()

        def work():
            mine = [self.service.ask("GET", "/me/summary", key="axp_demo_ana") for _ in range(each)]
            with lock:
                answers.extend(mine)

        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        by_window = {}
        for answer in answers:
            by_window.setdefault(answer.headers["X-RateLimit-Reset"], []).append(answer)
        self.assertIn(str(end), by_window)
        for window in by_window.values():  # one, or two on a slow machine
            admitted = [answer for answer in window if answer.status == 200]
            counts = sorted(answer.json()["count"] for answer in window if answer.status == 429)
            self.assertEqual(len(admitted), min(limit, len(window)))
            self.assertEqual(counts, list(range(limit + 1, len(window) + 1)))
            self.assertTrue(all(int(answer.headers["X-RateLimit-Remaining"]) >= 0 for answer in window))

    def test_the_apis_own_answers_and_the_gateways_carry_the_headers(self):
        self.assertEqual(self.ask("GET", "/no/such/path", key="axp_demo_ana").status, 404)
        self.service.upstream.end()
        lost = self.ask("GET", "/me/summary", key="axp_demo_ana")
        self.assertEqual(lost.status, 502)
        self.assertEqual(lost.headers.get_all("X-RateLimit-Limit"), ["60"])


class Teams(Axuz):
    def test_changes_and_their_refusal(self):
        for _ in range(200):
            answer = self.ask("POST", "/teams/t_red/tasks", key="axp_demo_ana_ci", body={"title": "a task"})
            if answer.status == 429:
                break
        self.assertEqual(answer.status, 429)
        self.assertEqual(answer.json(), {"error": "rate_limited", "retry_after": 1})
        self.assertEqual(answer.headers["Retry-After"], "1")
        self.assertEqual(answer.headers.get_all("X-RateLimit-Limit"), ["60"])
        self.assertNotIn("X-RateLimit-Remaining", answer.headers)
        self.assertNotIn("X-RateLimit-Reset", answer.headers)
        reading = self.ask("GET", "/teams/t_red/tasks", key="axp_demo_ana_ci")
        self.assertEqual((reading.status, len(reading.json()["tasks"]) >= 60), (200, True))
        self.assertEqual(self.ask("POST", "/teams/t_blue/tasks", key="axp_demo_ana_ci",
                                  body={"title": "x"}).status, 201)
        time.sleep(int(answer.headers["Retry-After"]))
        self.assertEqual(self.ask("POST", "/teams/t_red/tasks", key="axp_demo_ana_ci",
                                  body={"title": "x"}).status, 201)

    def test_a_team_key_is_good_for_its_own_team(self):
        self.assertEqual(self.ask("GET", "/teams/t_red/tasks", key="axt_demo_red").status, 200)
        self.assertEqual(self.ask("GET", "/teams/t_blue/tasks", key="axt_demo_red").status, 404)


class SignIn(Axuz):
    def test_a_right_password_gives_the_session(self):
        answer = self.sign_in(RIGHT)
        self.assertEqual((answer.status, answer.headers["Set-Cookie"].split(";")[0]),
                         (200, SESSION["Cookie"]))

    def test_five_wrong_ones_block_the_address(self):
        answers = [self.sign_in(wrong(f"user{n}@example.org")) for n in range(5)]
        self.assertEqual([answer.status for answer in answers], [401] * 5)
        refusal = self.sign_in(RIGHT)
        wait = int(refusal.headers["Retry-After"])
        self.assertEqual((refusal.status, refusal.json()),
                         (429, {"error": "ip_blocked", "retry_after_seconds": wait}))
        self.assertTrue(500 < wait <= 600, wait)
        for path in ("/auth/codes", "/auth/anything", "/oauth/token"):
            self.assertEqual(self.ask("POST", path).json()["error"], "ip_blocked")
        self.assertEqual(self.ask("GET", "/me/summary", key="axp_demo_ana").status, 200)
        self.assertEqual(self.sign_in(RIGHT, address=new_address()).status, 200)

    def test_a_block_outlives_the_process(self):
        for n in range(5):
            self.sign_in(wrong(f"user{n}@example.org"))
        self.service.restart(kill=False)
        refusal = self.sign_in(RIGHT)
        self.assertEqual((refusal.status, refusal.json()["error"]), (429, "ip_blocked"))

    def test_of_a_thousand_guesses_at_once_five_reach_the_api(self):
        self.service.__exit__(None)  # this one's API is too quick
        self.service = self.enterContext(Service(example=AXUZ, latency_ms=300))
        statuses, lock = [], threading.Lock()

        def work(number):
            client = Client(self.service.port)
            mine = [client.ask("POST", "/auth/login", address=self.address,
                               body=wrong(f"user{number}-{n}@example.org")).status for n in range(25)]
            client.close()
            with lock:
                statuses.extend(mine)

        workers = [threading.Thread(target=work, args=(number,)) for number in range(40)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual((statuses.count(401), statuses.count(429)), (5, 995))

    def test_an_account_is_slowed_down_wherever_the_guesses_come_from(self):
        for n in range(10):
            self.assertEqual(self.sign_in(wrong("Ana@example.org"), address=f"198.51.100.{n}").status, 401)
        refusal = self.sign_in(RIGHT)
        self.assertEqual((refusal.status, refusal.json()["error"]), (429, "rate_limited"))
        self.assertTrue(1 <= int(refusal.headers["Retry-After"]) <= 60)
        ben = {"email": "ben@example.org", "password": "ben-demo-password"}
        self.assertEqual(self.sign_in(ben).status, 200)

    def test_what_the_gateway_counts_apart_is_another_account(self):
        for around in ("\u00a0", "\u2003", "\f", "\v", "\x1f", "\ufeff"):
            answer = self.sign_in({**RIGHT, "email": RIGHT["email"] + around}, address=new_address())
            self.assertEqual(answer.status, 401, repr(around))
        for spelled in (" \t\r\nana@example.org ", "ANA@Example.org"):
            self.assertEqual(self.sign_in({**RIGHT, "email": spelled}).status, 200)

    def test_half_a_character_is_a_bad_request(self):
        half, tasks, key = "\ud800", "/teams/t_red/tasks", "axp_demo_ana_ci"
        task = self.ask("POST", tasks, key=key, body={"title": "a task"}).headers["Location"]
        for method, path, body in (
                ("POST", "/auth/login", {**RIGHT, "password": half}),
                ("POST", "/auth/login", {**RIGHT, "email": f"ana{half}@example.org"}),
                ("POST", "/auth/codes", {"email": f"{half}@example.org"}),
                ("POST", "/auth/verify-email", {"email": "ana@example.org", "code": half}),
                ("POST", "/auth/verify-email", {"email": f"{half}@example.org", "code": "123456"}),
                ("POST", "/me/ai/chat", {"message": half}),
                ("POST", tasks, {"title": half}),
                ("PATCH", task, {"title": f"a{half}"}),
                ("POST", "/teams/t_red/invitations", {"email": f"a@{half}"})):
            headers = {} if path.startswith("/auth/") else SESSION
            for sent in (json.dumps(body).encode(), json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")):
                answer = self.ask(method, path, headers=headers, body=sent, address=new_address())
                self.assertEqual((answer.status, answer.json()["error"]), (400, "invalid_request"), (path, sent))
                self.assertTrue(answer.json()["message"])
        self.assertEqual(self.sign_in({**RIGHT, "password": "\U0001f600"}).status, 401)

    def test_codes(self):
        statuses = [self.ask("POST", "/auth/codes", body={"email": f"user{n}@example.org"}).status
                    for n in range(6)]
        self.assertEqual(statuses, [202] * 5 + [429])
        code = self.ask("POST", "/auth/codes", body={"email": "ben@example.org"}, address=new_address())
        verified = self.ask("POST", "/auth/verify-email",
                            body={"email": "ben@example.org", "code": code.json()["demo_code"]})
        self.assertEqual((verified.status, verified.json()), (200, {"verified": True}))

    def test_a_body_in_pieces_is_read_whole_before_it_counts(self):
        def chunks():
            for piece in json.dumps(RIGHT):
                yield piece.encode()

        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=30)
        connection.request("POST", "/auth/login", body=chunks(), encode_chunked=True,
                           headers={"Transfer-Encoding": "chunked", "X-Forwarded-For": self.address})
        answer = connection.getresponse()
        self.assertEqual((answer.status, json.loads(answer.read())["user"]), (200, "u_ana"))
        connection.close()

    def test_a_body_that_is_too_large_to_be_looked_at(self):
        largest = json.dumps({**RIGHT, "more": ""}).encode()
        largest = largest.replace(b'"more": ""', b'"more": "' + b"x" * (65536 - len(largest)) + b'"')
        self.assertEqual(len(largest), 65536)
        self.assertEqual(self.sign_in(largest).status, 200)
        self.assertEqual(self.sign_in(largest + b" ").status, 413)
        for n in range(5):  # nothing of it was an attempt
            self.assertEqual(self.sign_in(wrong(f"user{n}@example.org")).status, 401)


class Others(Axuz):
    def test_oauth(self):
        answer = self.ask("POST", "/oauth/token", headers=FORM, body=f"grant_type=client_credentials&{CLIENT}")
        token = answer.json()["access_token"]
        alive = self.ask("POST", "/oauth/introspect", headers=FORM, body=f"token={token}&{CLIENT}")
        self.assertEqual(alive.json(), {"active": True, "client_id": "demo-client"})
        self.assertEqual(self.ask("POST", "/oauth/revoke", headers=FORM,
                                  body=f"token={token}&{CLIENT}").status, 200)
        for _ in range(300):
            answer = self.ask("POST", "/oauth/introspect", headers=FORM, body=f"token={token}&{CLIENT}")
            if answer.status == 429:
                break
        self.assertEqual((answer.status, answer.json()["error"]), (429, "rate_limited"))
        self.assertIn("error_description", answer.json())
        self.assertTrue(int(answer.headers["Retry-After"]) >= 1)

    def test_the_assistant_and_uploads(self):
        said = self.ask("POST", "/me/ai/chat", headers=SESSION, body={"message": "hello"})
        self.assertEqual(said.json(), {"user": "u_ana", "reply": "You said: hello"})
        for _ in range(60):
            said = self.ask("POST", "/me/ai/chat", headers=SESSION, body={"message": "hello"})
            if said.status == 429:
                break
        self.assertEqual((said.status, said.json()["error"]), (429, "rate_limited"))
        stored = self.ask("POST", "/files?name=a.txt", headers=SESSION, body=b"some bytes")
        self.assertEqual((stored.status, stored.json()["bytes"]), (201, 10))

    def test_a_hundred_unknown_tokens(self):
        statuses = [self.ask("GET", "/me/summary", key=f"axp_guess_{n}").status for n in range(101)]
        self.assertEqual(statuses, [401] * 100 + [429])
        refusal = self.ask("GET", "/me/summary", key="axp_guess")
        self.assertEqual(refusal.json(), {"error": "ip_blocked",
                                          "retry_after_seconds": int(refusal.headers["Retry-After"])})
        self.assertEqual(self.ask("GET", "/me/summary", key="axp_demo_ana").status, 200)

    def test_an_attempt_refused_after_the_api_answered_others(self):
        for n in range(4):
            seen = self.ask("GET", "/me/summary", key="axp_demo_ana")
            self.assertEqual((seen.status, seen.json()["user"]["id"]), (200, "u_ana"))
            failed = self.sign_in(wrong(f"user{n}@example.org"))
            self.assertEqual((failed.status, failed.json()["error"]), (401, "invalid_credentials"))
            refused = self.ask("GET", "/me/summary", key=f"axp_guess_{n}")
            self.assertEqual((refused.status, refused.json()["error"]), (401, "unauthorized"))
            self.assertEqual(refused.headers["WWW-Authenticate"], "Bearer")

    def test_a_secret_is_in_no_log(self):
        self.ask("GET", "/me/summary", key="axp_some_secret_guess")
        self.ask("GET", "/me/summary", key="axp_demo_ana")
        self.sign_in(wrong("ana@example.org"))
        metrics = self.service.admin("/metrics").body.decode()
        self.service.gateway.end()
        written = self.service.gateway.error_text() + self.service.gateway.output.read_text() + metrics
        self.assertIn("/me/summary", written)
        for secret in ("axp_some_secret_guess", "axp_demo_ana", "a guess"):
            self.assertNotIn(secret, written)


if __name__ == "__main__":
    unittest.main()
