#!/usr/bin/env python3
"""What a refusal says and costs, and the other answers that the gateway makes by itself."""

import json
import time
import unittest

from harness import Service, free_port, new_address, spend, wait_for

PUBLIC = "/v1/public/bootstrap"
BODY = {"error": {"type": "rate_limited", "message": "Too many requests."}}


class Refusals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = cls.enterClassContext(Service())

    def exhausted(self):
        """An address that has nothing left on the public routes, and its first refusal."""
        address = new_address()
        spending = spend(self.service, lambda _: ("GET", PUBLIC, {"address": address}))
        return address, spending.refusals[0]

    def test_body_to_the_letter(self):
        _, refusal = self.exhausted()
        self.assertEqual(json.loads(refusal.body), BODY)
        self.assertEqual(list(refusal.json()["error"]), ["type", "message"])
        self.assertTrue(refusal.headers["Content-Type"].startswith("application/json"))

    def test_headers_of_a_429(self):
        _, refusal = self.exhausted()
        self.assertEqual(refusal.headers.get_all("RateLimit-Remaining"), ["0"])
        self.assertEqual(len(refusal.headers.get_all("Retry-After")), 1)
        self.assertIn(refusal.headers["Retry-After"], ("1", "2"))  # a token comes every 2 s
        self.assertEqual(refusal.headers["Cache-Control"], "no-store")
        self.assertTrue(refusal.headers["Ration-Request-Id"])

    def test_a_200_has_neither_header(self):
        answer = self.service.ask("GET", PUBLIC, address=new_address())
        self.assertEqual(answer.status, 200)
        self.assertNotIn("Retry-After", answer.headers)
        self.assertNotIn("RateLimit-Remaining", answer.headers)
        self.assertTrue(answer.headers["Ration-Request-Id"])

    def test_waiting_as_told_admits(self):
        address, refusal = self.exhausted()
        time.sleep(int(refusal.headers["Retry-After"]))
        self.assertEqual(self.service.ask("GET", PUBLIC, address=address).status, 200)

    def test_a_long_wait_is_told_exactly(self):
        address, path = new_address(), "/v1/bookings/bkg_none/verify"
        begun = time.monotonic()
        spending = spend(self.service, lambda _: ("POST", path, {"address": address, "key": "pk_demo_tokyo"}))
        seconds = time.monotonic() - begun
        told = int(spending.refusals[0].headers["Retry-After"])  # one token every 6 s
        self.assertLessEqual(told, 6)
        self.assertGreaterEqual(told, 6 - int(seconds) - 1)

    def test_refill_is_continuous_wherever_the_minute_stands(self):
        address, _ = self.exhausted()
        time.sleep(4.1)
        again = spend(self.service, lambda _: ("GET", PUBLIC, {"address": address}))
        self.assertGreaterEqual(again.admitted, 2)
        self.assertLessEqual(again.admitted, 3 + int(again.seconds / 2))

    def test_refusals_cost_nothing(self):
        address, _ = self.exhausted()
        begun, told = time.monotonic(), []
        while time.monotonic() - begun < 8:
            answer = self.service.ask("GET", PUBLIC, address=address)
            if answer.status == 200:
                break
            told.append(int(answer.headers["Retry-After"]))
        self.assertEqual(answer.status, 200, "hammering kept the bucket from refilling")
        self.assertLess(time.monotonic() - begun, 3)
        self.assertGreater(len(told), 20)
        self.assertEqual(told, sorted(told, reverse=True))

    def test_unknown_and_missing_keys(self):
        for key in ("pk_nobody", "xx_other", None):
            answer = self.service.ask("GET", "/v1/quote", key=key, address=new_address())
            self.assertEqual(answer.status, 401, key)
            self.assert_own_answer(answer)

    def test_a_key_of_the_wrong_kind(self):
        for method, path, key in (("GET", "/v1/quote", "ak_demo_one"), ("POST", "/v1/calendars", "pk_demo_tokyo"),
                                  ("GET", "/v1/account/usage", "sk_demo_tokyo")):
            answer = self.service.ask(method, path, key=key, address=new_address())
            self.assertEqual(answer.status, 403, path)
            self.assert_own_answer(answer)

    def test_no_such_route(self):
        for method, path in (("GET", "/v1/nothing"), ("GET", "/"), ("DELETE", "/v1/quote")):
            answer = self.service.ask(method, path, key="pk_demo_tokyo", address=new_address())
            self.assertEqual(answer.status, 404, path)
            self.assert_own_answer(answer)

    def test_a_target_that_two_servers_could_read_differently(self):
        answer = self.service.ask("GET", "/v1%2Fquote", key="pk_demo_tokyo", address=new_address())
        self.assertEqual(answer.status, 400)

    def assert_own_answer(self, answer):
        error = answer.json()["error"]
        self.assertEqual(list(error), ["type", "message"])
        self.assertTrue(error["type"] and error["message"])
        self.assertEqual(answer.headers["Cache-Control"], "no-store")
        self.assertNotIn("RateLimit-Remaining", answer.headers)
        self.assertTrue(answer.headers["Ration-Request-Id"])


class CallerAddress(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = cls.enterClassContext(Service(policy={"30/min": "30/h"}))  # nothing refills meanwhile

    def status(self, forwarded):
        return self.service.ask("GET", PUBLIC, address=forwarded).status

    def exhaust(self, forwarded):
        return spend(self.service, lambda _: ("GET", PUBLIC, {"address": forwarded})).admitted

    def test_ipv6_counts_by_its_64(self):
        self.exhaust("2001:db8:1:2::1")
        self.assertEqual(self.status("2001:db8:1:2:ffff:ffff:ffff:ffff"), 429)
        self.assertEqual(self.status("2001:db8:1:3::1"), 200)

    def test_ipv4_counts_whole(self):
        self.exhaust("192.0.2.10")
        self.assertEqual(self.status("192.0.2.11"), 200)

    def test_mapped_ipv4_is_ipv4(self):
        self.exhaust("192.0.2.20")
        self.assertEqual(self.status("::ffff:192.0.2.20"), 429)

    def test_what_the_caller_wrote_to_the_left_does_not_count(self):
        self.exhaust("192.0.2.30")
        self.assertEqual(self.status("192.0.2.99, 192.0.2.30"), 429)
        self.assertEqual(self.status("192.0.2.30, 192.0.2.31"), 200)


class BrowserFields(unittest.TestCase):
    ORIGIN = {"Origin": "https://shop.example"}

    @classmethod
    def setUpClass(cls):
        cls.service = cls.enterClassContext(Service())

    def assert_readable(self, answer):
        self.assertEqual(answer.headers.get_all("Access-Control-Allow-Origin"), ["*"])
        exposed = {name.strip().lower() for name in answer.headers["Access-Control-Expose-Headers"].split(",")}
        self.assertLessEqual({"retry-after", "ratelimit-remaining"}, exposed)

    def test_on_answers_and_on_refusals(self):
        address = new_address()
        self.assert_readable(self.service.ask("GET", PUBLIC, address=address, headers=self.ORIGIN))
        spending = spend(self.service, lambda _: ("GET", PUBLIC, {"address": address, "headers": self.ORIGIN}))
        self.assert_readable(spending.refusals[0])

    def test_on_401_and_404(self):
        for path, status in (("/v1/quote", 401), ("/nothing", 404)):
            answer = self.service.ask("GET", path, headers=self.ORIGIN, address=new_address())
            self.assertEqual(answer.status, status)
            self.assert_readable(answer)

    def test_preflights_are_free(self):
        address = new_address()
        asked = {**self.ORIGIN, "Access-Control-Request-Method": "POST",
                 "Access-Control-Request-Headers": "authorization, content-type"}
        for _ in range(100):
            answer = self.service.ask("OPTIONS", "/v1/public/cancel", address=address, headers=asked)
            self.assertIn(answer.status, (200, 204))
        self.assertEqual(answer.headers["Access-Control-Allow-Origin"], "*")
        self.assertIn("POST", answer.headers["Access-Control-Allow-Methods"])
        self.assertIn("authorization", answer.headers["Access-Control-Allow-Headers"].lower())
        spending = spend(self.service, lambda _: ("GET", PUBLIC, {"address": address}))
        self.assertGreaterEqual(spending.admitted, 30)


class UpstreamDown(unittest.TestCase):
    def test_502_in_the_pages_shape_and_back_again(self):
        with Service(upstream_port=free_port()) as service:
            answer = service.ask("GET", PUBLIC, address=new_address(), headers={"Origin": "https://shop.example"})
            self.assertEqual(answer.status, 502)
            self.assertEqual(list(answer.json()["error"]), ["type", "message"])
            self.assertEqual(answer.headers["Access-Control-Allow-Origin"], "*")
            service.start_upstream()
            wait_for(lambda: service.ask("GET", PUBLIC, address=new_address()).status == 200,
                     "the gateway finds the upstream again", 10)


if __name__ == "__main__":
    unittest.main()
