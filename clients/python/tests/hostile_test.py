"""Real sockets and a server that misbehaves: nothing hangs, leaks, goes early or is sent twice."""

import concurrent.futures
import io
import json
import socket
import ssl
import time
import unittest

import httpx
import requests
import urllib3
from hostile import ADAPTERS, Handshake, HostileServer, SlowReader, field, reply

import ration_client.requests

OK = reply(200, {}, "good")
GENEROUS_S = 20  # for what must end by itself long before, on a machine that does other things too
UUID4 = r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = HostileServer()
        cls.addClassCleanup(cls.server.stop)

    def each(self, check):
        """The check through every adapter, all at once: most of them wait."""
        with concurrent.futures.ThreadPoolExecutor(len(ADAPTERS)) as pool:
            futures = {adapter.name: pool.submit(check, adapter) for adapter in ADAPTERS}
            for name, future in futures.items():
                with self.subTest(name):
                    future.result()

    def two_sends(self, first, at_least=0.0, at_most=550.0, **script):
        def check(adapter):
            target, waits = self.server.script(first, OK, **script), []
            result = adapter.ask(target.url, hooks={"on_wait": waits.append})
            self.assertEqual((result.status, result.text), (200, "good"), result.error)
            sends = target.log()
            self.assertEqual(len(sends), 2)
            self.assertTrue(at_least <= waits[0]["ms"] <= at_most, waits)
            self.assertGreaterEqual(sends[1]["at_ms"] - sends[0]["at_ms"], at_least - 2, "not before the told moment")
        self.each(check)

    def test_useless_hints_are_backoff(self):
        for value in ("0", "-3", "garbage", "", "1m0s", "1e3"):
            with self.subTest(value):
                self.two_sends(reply(429, {"Retry-After": value}))

    def test_a_second_is_a_second(self):
        self.two_sends(reply(429, {"Retry-After": "1"}), 1000, 1500)

    def test_dates_on_wrong_clocks(self):
        for form, skew in (("fixed", -3600), ("rfc850", 0), ("asctime", 86_400)):
            with self.subTest(form, skew=skew):
                self.two_sends(reply(503, {"Retry-After": f"@{form}(1)", "Date": "@fixed(0)"}), 1000, 1500, skew_s=skew)

    def test_ten_to_the_thirty(self):
        def check(adapter):
            target = self.server.script(reply(429, {"Retry-After": "1" + "0" * 30}))
            result = adapter.ask(target.url)
            self.assertEqual((result.status, result.info.reason), (429, "server_wait_too_long"))
            self.assertGreater(result.info.retry_at, (time.time() + 300 * 86_400) * 1000)
            self.assertEqual(len(target.log()), 1)
        self.each(check)

    def test_429_without_a_body(self):
        self.two_sends({"reply": "HTTP/1.1 429 No\n\n", "end": "close"})

    def test_endless_body_of_a_refusal(self):
        self.two_sends({"reply": "HTTP/1.1 429 No\nTransfer-Encoding: chunked\n\n", "chunks": "endless", "end": "close"})

    def test_refusal_cut_half_way(self):
        self.two_sends({"reply": 'HTTP/1.1 429 No\nContent-Length: 100\n\n{"error":', "end": "close"})

    def test_a_refusal_that_is_not_repeated_goes_back_whatever_its_body_does(self):
        head = "HTTP/1.1 429 No\nRetry-After: 3600\nContent-Type: application/json\n"
        cut = {"reply": head + 'Content-Length: 100\n\n{"error":', "end": "close"}
        steps = [cut, {**cut, "end": "reset"}, {**cut, "end": "stall"}, {**cut, "drip_ms": 20, "end": "stall"},
                 {"reply": head + "Transfer-Encoding: chunked\n\n", "chunks": "endless", "end": "close"}]

        def check(adapter):
            for step in steps:
                result = adapter.ask(self.server.script(step).url, total_deadline_ms=4000)
                self.assertEqual((result.status, result.info and result.info.reason), (429, "server_wait_too_long"), (step, result.error))
            missing = self.server.script({**cut, "reply": cut["reply"].replace("429", "404")})
            result = adapter.ask(missing.url)
            self.assertEqual((result.status, result.info and result.info.reason), (404, "status_not_retryable"), result.error)
        self.each(check)

    def test_compressed_refusal(self):
        def check(adapter):
            body = {"error": {"type": "booking_volume_refused"}}
            told = "HTTP/1.1 429 No\nContent-Type: application/json\n\n" + json.dumps(body)
            target = self.server.script({"reply": told, "gzip": True}, OK)
            result = adapter.ask(target.url)
            self.assertEqual((result.status, json.loads(result.text), result.info.reason, len(target.log())),
                             (429, body, "type_never_retry", 1))
        self.each(check)

    def test_answer_that_breaks_off_before_its_head(self):
        def check(adapter):
            target = self.server.script({"reply": "HTTP/1.1 20", "end": "reset"}, OK)
            self.assertEqual(adapter.ask(target.url).status, 200)
            self.assertEqual(len(target.log()), 2)
        self.each(check)

    def test_reset_after_the_request(self):
        def check(adapter):
            get = self.server.script({"end": "reset"}, OK)
            self.assertEqual(adapter.ask(get.url).status, 200)
            post = self.server.script({"end": "reset"}, OK)
            result = adapter.ask(post.url, method="POST", content=b"x")
            self.assertEqual((result.info.reason, result.info.attempts), ("unsafe_method", 1))
            self.assertEqual(len(post.log()), 1)
            keyed = self.server.script({"end": "reset"}, {"unread": True}, OK)
            self.assertEqual(adapter.ask(keyed.url, method="POST", content=b"x", idempotency="auto").status, 200)
            keys = {field(entry, "idempotency-key") for entry in keyed.log()}
            self.assertEqual(len(keys), 1)
            self.assertRegex(keys.pop(), UUID4)
        self.each(check)

    def test_every_connection_is_reset(self):
        def check(adapter):
            result = adapter.ask(f"http://localhost:{self.server.ports['reset']}/x", headers={"Idempotency-Key": "k"},
                                 max_retries=2, backoff_base_ms=1)
            self.assertEqual((result.info.attempts, result.info.reason, result.info.idempotency_key),
                             (3, "attempts_exhausted", "k"))
        self.each(check)

    def test_nothing_listens(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]

        def check(adapter):
            result = adapter.ask(f"http://127.0.0.1:{port}/x", method="POST", content=b"x", max_retries=2, backoff_base_ms=1)
            self.assertEqual((result.info.attempts, result.info.reason), (3, "attempts_exhausted"))
        self.each(check)

    def test_bad_certificate(self):
        def check(adapter):
            target = self.server.script(OK, listener="https")
            result = adapter.ask(target.url)
            self.assertEqual((result.info.reason, result.info.attempts, target.log()), ("error_not_retryable", 1, []))
        self.each(check)

    def test_what_is_no_request_is_tried_once(self):
        def check(adapter):
            target = self.server.script(OK)
            result = adapter.ask(target.url, headers={"X-Note": "a\r\nX-Evil: 1"})
            self.assertIsNotNone(result.error)
            self.assertIn(result.info and (result.info.reason, result.info.attempts), (None, ("error_not_retryable", 1)))
            self.assertEqual(target.log(), [])
        self.each(check)

    def test_redirect_loop(self):
        def check(adapter):
            target = self.server.script(reply(302, {"Location": "?again"}))
            result = adapter.ask(target.url)
            if adapter.name == "requests":
                self.assertEqual(type(result.error).__name__, "TooManyRedirects")
            else:
                self.assertEqual(result.status, 302)
            self.assertEqual((result.info.reason, result.info.attempts, len(target.log())), ("too_many_redirects", 1, 6))
        self.each(check)

    def test_places_that_are_none(self):
        def check(adapter):
            for place in ("http://", "https://", "ftp://localhost/x", "http://user:word@localhost/x", "http://localhost:99999/x", ""):
                target = self.server.script(reply(307, {"Location": place}), OK)
                result = adapter.ask(target.url)
                self.assertEqual((result.status, result.info.reason, len(target.log())), (307, "bad_location", 1), place)
        self.each(check)

    def test_what_a_redirect_says_beside_its_place_does_not_matter(self):
        def check(adapter):
            for how in ({"reply": "HTTP/1.1 307 Go\nLocation: ?b\nTransfer-Encoding: chunked\n\n", "chunks": "endless", "end": "close"},
                        {"reply": "HTTP/1.1 307 Go\nLocation: ?b\nContent-Length: 100\n\nhalf", "end": "close"}):
                target = self.server.script(how, OK)
                result = adapter.ask(target.url, method="POST", content=b"x")
                self.assertEqual((result.status, result.info.attempts, len(target.log())), (200, 1, 2), result.error)
        self.each(check)

    def test_the_hops_of_a_call_have_one_key_and_one_count(self):
        def check(adapter):
            hop = reply(307, {"Location": "?b"})
            target = self.server.script(hop, reply(503), hop, hop, reply(201))
            result = adapter.ask(target.url, method="POST", content=b"x", idempotency="auto", backoff_base_ms=1)
            self.assertEqual((result.status, result.info.attempts), (201, 2), result.error)
            keys = {field(entry, "idempotency-key") for entry in target.log()}
            self.assertEqual(keys, {result.info.idempotency_key})
            self.assertRegex(keys.pop(), UUID4)
        self.each(check)

    def test_the_hops_of_a_call_have_one_deadline(self):
        def check(adapter):
            target = self.server.script({"reply": reply(307, {"Location": "?b"}), "drip_ms": 5})
            result = adapter.ask(target.url, total_deadline_ms=800)
            self.assertEqual(result.info.reason, "deadline", result)
            self.assertLess(len(target.log()), 6)
        self.each(check)

    def test_a_made_key_stays_at_home(self):
        def check(adapter):
            target = self.server.script(OK, listener="other")
            first = self.server.script(reply(307, {"Location": target.url}))
            self.assertEqual(adapter.ask(first.url, method="POST", content=b"x", idempotency="auto").status, 200)
            self.assertEqual([field(entry, "idempotency-key") for entry in target.log()], [None])
        self.each(check)

    def test_without_its_key_a_post_is_sent_to_another_host_once(self):
        def check(adapter):
            for failure in ({"end": "reset"}, reply(503)):
                target = self.server.script(failure, listener="other")
                first = self.server.script(reply(307, {"Location": target.url}))
                what = {"content": b"x", "headers": {"Idempotency-Key": "k"}, "backoff_base_ms": 1, "max_retries": 1}
                result = adapter.ask(first.url, method="POST", **what)
                self.assertEqual((result.info.reason, len(target.log())), ("unsafe_method", 1))
                self.assertEqual(adapter.ask(first.url, method="PUT", **what).info.attempts, 2)
        self.each(check)

    def test_what_the_caller_was_handling_is_no_cause(self):
        """Python hangs it on every exception as its context."""
        handled = [socket.gaierror(-2, "Name or service not known"), ssl.SSLCertVerificationError("x"), ConnectionRefusedError("x"),
                   requests.exceptions.ConnectTimeout("x"), httpx.ConnectError("x"), TimeoutError("x"),
                   urllib3.exceptions.NewConnectionError(None, "x")]

        def check(adapter):
            for error in handled:
                for method, sends in (("POST", 1), ("GET", 2)):
                    target = self.server.script({"end": "reset"})
                    try:
                        raise error
                    except Exception:
                        result = adapter.ask(target.url, method=method, max_retries=1, backoff_base_ms=1)
                    self.assertEqual((len(target.log()), result.info.attempts), (sends, sends), (method, error))
        self.each(check)

    def test_a_redirect_that_leads_to_nobody(self):
        """Whoever answered with it was asked: without a key it is not asked again."""
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            nobody = f"http://127.0.0.1:{unused.getsockname()[1]}/"

            def check(adapter):
                for method, sends in (("POST", 1), ("PUT", 1 if adapter.name == "requests" else 3)):  # which repeats the hop alone
                    first = self.server.script(*[reply(307, {"Location": nobody})] * 3)
                    result = adapter.ask(first.url, method=method, content=b"x", max_retries=2, backoff_base_ms=1)
                    self.assertIsNone(result.status)
                    self.assertEqual(len(first.log()), sends, method)
            self.each(check)

    def test_other_host_sees_no_credentials(self):
        headers = {"Authorization": "Bearer s3cret", "Cookie": "a=s3cret", "Idempotency-Key": "s3cret",
                   "X-Api-Key": "s3cret", "Proxy-Authorization": "s3cret", "X-Note": "plain"}

        def check(adapter):
            target = self.server.script(OK, listener="other")
            first = self.server.script(reply(307, {"Location": target.url}))
            result = adapter.ask(first.url, method="POST", headers=dict(headers), content=b"thing")
            self.assertEqual(result.status, 200, result.error)
            entry = target.log()[0]
            self.assertNotIn("s3cret", json.dumps(entry))
            self.assertEqual((field(entry, "x-note"), entry["method"], entry["body"]), ("plain", "POST", "thing"))
        self.each(check)

    def hops_away(self, last):
        """Scripts a way to another host, two hops on it, and `last`; gives the first and the scripts after it."""
        third = self.server.script(reply(307, {"Location": last.url, "Set-Cookie": "third=3; Path=/"}), listener="other")
        second = self.server.script(reply(307, {"Location": third.url, "Set-Cookie": "second=2; Path=/"}), listener="other")
        first = self.server.script(reply(307, {"Location": second.url, "Set-Cookie": "home=of-home; Path=/"}))
        return first, [second, third, last]

    def test_nor_does_any_hop_after_it(self):
        headers = {"Authorization": "Bearer s3cret", "Cookie": "a=s3cret", "Idempotency-Key": "s3cret", "X-Api-Key": "s3cret"}

        def check(adapter):
            for listener in ("other", "http"):  # the way back to the first host is no way home
                first, after = self.hops_away(self.server.script(OK, listener=listener))
                result = adapter.ask(first.url, method="POST", headers=dict(headers), content=b"thing")
                self.assertEqual((result.status, result.info.idempotency_key), (200, "s3cret"), result.error)
                for script in after:
                    self.assertNotIn("s3cret", json.dumps(script.log()))
                for script in after[:2]:
                    self.assertNotIn("of-home", json.dumps(script.log()))
        self.each(check)

    def test_cookies_of_the_way_are_those_of_who_set_them(self):
        def check(adapter):
            away = self.server.script(reply(200, {"Set-Cookie": "away=1; Path=/"}), listener="other")
            there = self.server.script(reply(307, {"Location": away.url}), listener="other")
            at_home = self.server.script(reply(307, {"Location": there.url, "Set-Cookie": "two=2; Path=/"}))
            first = self.server.script(reply(307, {"Location": at_home.url, "Set-Cookie": "one=1; Path=/"}))
            with adapter.client() as client:
                client.get(first.url, headers={"Cookie": "own=0; one=0"})
                client.get(first.url)
            first_hops = [field(entry, "cookie") for entry in first.log()]
            self.assertIn(first_hops, (["own=0; one=0", "one=1; two=2"], ["own=0; one=0", "two=2; one=1"]))
            self.assertIn("one=1", field(at_home.log()[0], "cookie"))
            for script in (there, away):
                self.assertEqual([field(entry, "cookie") for entry in script.log()], [None, None])
        for adapter in ADAPTERS:
            if hasattr(adapter, "client"):
                with self.subTest(adapter.name):
                    check(adapter)

    def test_a_cookie_that_is_deleted_on_the_way_is_gone(self):
        def check(adapter):
            last = self.server.script(OK)
            first = self.server.script(reply(307, {"Location": last.url, "Set-Cookie": "stale=; Max-Age=0; Path=/"}))
            with adapter.client() as client:
                self.assertEqual(client.get(first.url, headers={"Cookie": "stale=1; other=2"}).status_code, 200)
                self.assertEqual(field(last.log()[-1], "cookie"), "other=2")
                self.assertEqual(client.get(first.url, headers={"Cookie": "stale=1"}).status_code, 200)
                self.assertIsNone(field(last.log()[-1], "cookie"))
        for adapter in ADAPTERS:
            if hasattr(adapter, "client"):
                with self.subTest(adapter.name):
                    check(adapter)

    def test_a_prepared_request_may_be_sent_again(self):
        target = self.server.script(OK)
        with ration_client.requests.Session() as session:
            session.trust_env = False
            prepared = session.prepare_request(requests.Request("PUT", target.url, data=io.BytesIO(b"content")))
            for _ in range(2):
                self.assertEqual(session.send(prepared).status_code, 200)
        self.assertEqual([entry["body"] for entry in target.log()], ["content"] * 2)

    def test_what_a_session_knows_stays_at_home_too(self):
        first, after = self.hops_away(self.server.script(OK, listener="other"))
        with ration_client.requests.Session() as session:
            session.trust_env = False
            session.cookies.set("anywhere", "s3cret")
            session.cookies.set("here", "s3cret", domain="localhost.local")
            answer = session.post(first.url, cookies={"own": "s3cret"}, data=b"thing", auth=("user", "s3cret"))
        self.assertEqual(answer.status_code, 200)
        self.assertIn("s3cret", json.dumps(first.log()))
        self.assertNotIn("of-home", json.dumps([script.log() for script in after]))
        cookies = [field(script.log()[0], "cookie") for script in after]
        self.assertNotIn("s3cret", json.dumps([script.log() for script in after]))
        self.assertEqual(cookies, [None, "second=2", "second=2; third=3"], "its own are the other host's")

    def test_a_connection_that_ends_within_the_handshake(self):
        """It says nothing of certificates: what may be repeated is."""
        def check(adapter):
            for end in ("fin", "reset"):
                with Handshake(end) as server:
                    result = adapter.ask(f"https://127.0.0.1:{server.port}/", max_retries=1, backoff_base_ms=1)
                    self.assertIsNone(result.status)
                    self.assertEqual((result.info.attempts, server.connections), (2, 2), (end, result.error))
        self.each(check)

    def test_an_answer_that_is_cut_in_its_head_is_none(self):
        def check(adapter):
            for head in ("HTTP/1.1 20", "HTTP/1.1 200 OK\n", "HTTP/1.1 200 OK\nContent-Le", "HTTP/1.1 429 No\nRetry-After: 6",
                         "HTTP/1.1 201 Created\nContent-Length: 5\nX-A"):
                target = self.server.script({"reply": head, "end": "close"}, OK)
                result = adapter.ask(target.url, backoff_base_ms=1)
                self.assertEqual((result.status, result.text, result.info.attempts), (200, "good", 2), (head, result.error))
        self.each(check)

    def test_bodies_of_redirects(self):
        """What can be read again goes on, what cannot stays."""
        def check(adapter):
            target = self.server.script(OK)
            first = self.server.script(reply(307, {"Location": target.url}))
            begun = io.BytesIO(b"before content")
            begun.seek(7)
            files = {"httpx": [io.BytesIO(b"content")], "requests": [io.BytesIO(b"content"), begun]}  # httpx tells a begun one's whole size
            for body in [b"content", *files.get(adapter.name, [])]:
                result = adapter.ask(first.url, method="PUT", content=body)
                self.assertEqual((result.status, target.log()[-1]["body"]), (200, "content"), result.error)
            sends = len(target.log())
            result = adapter.ask(first.url, method="PUT", content=adapter.pieces([b"con", b"tent"]))
            self.assertEqual((result.status, result.info.reason, len(target.log())), (307, "body_not_replayable", sends), result.error)
        self.each(check)

    def test_a_reader_that_is_too_slow_for_the_deadline(self):
        def check(adapter):
            with SlowReader() as server:
                for body in (b"x" * 20_000_000, adapter.pieces(b"x" * 16384 for _ in range(1000))):
                    begun = time.monotonic()
                    result = adapter.ask(f"http://127.0.0.1:{server.port}/", method="PUT", content=body, total_deadline_ms=1500)
                    self.assertIsNone(result.status)
                    self.assertLess(time.monotonic() - begun, GENEROUS_S)
        self.each(check)

    def test_the_key_is_told_when_the_answer_breaks_off(self):
        def check(adapter):
            cut = "HTTP/1.1 201 Told\nContent-Length: 500\n\n{"
            target = self.server.script({"reply": cut, "end": "close"})
            result = adapter.ask(target.url, method="POST", content=b"x", idempotency="auto", max_retries=0)
            self.assertIsNone(result.status)
            self.assertRegex(result.info.idempotency_key, UUID4)
            self.assertEqual(field(target.log()[0], "idempotency-key"), result.info.idempotency_key)
        self.each(check)

    def test_the_key_is_told_wherever_the_call_ends(self):
        def check(adapter):
            for end, attempts in ((OK, 1), ({"end": "reset"}, 1), (reply(503), 1)):
                target = self.server.script(end, listener="other")
                first = self.server.script(reply(307, {"Location": target.url}))
                result = adapter.ask(first.url, method="POST", headers={"Idempotency-Key": "k1"}, content=b"x")
                self.assertEqual((result.info.idempotency_key, result.info.attempts), ("k1", attempts), result.error)
                self.assertIsNone(field(target.log()[0], "idempotency-key"))
        self.each(check)

    def test_same_host_keeps_them(self):
        def check(adapter):
            target = self.server.script(OK)
            first = self.server.script(reply(308, {"Location": target.url}))
            adapter.ask(first.url, method="PUT", headers={"Authorization": "Bearer t", "Idempotency-Key": "k"}, content=b"thing")
            entry = target.log()[0]
            self.assertEqual((field(entry, "authorization"), field(entry, "idempotency-key"), entry["body"]),
                             ("Bearer t", "k", "thing"))
        self.each(check)

    def test_https_to_http(self):
        def check(adapter):
            target = self.server.script(OK)
            first = self.server.script(reply(302, {"Location": target.url}), listener="https")
            result = adapter.ask(first.url, verify=self.server.certificate)
            self.assertEqual((result.status, result.info.reason, target.log()), (302, "redirect_to_insecure", []), result.error)
        self.each(check)

    def test_post_is_not_turned_into_get(self):
        def check(adapter):
            target = self.server.script(OK)
            for status in (301, 302, 303):
                first = self.server.script(reply(status, {"Location": target.url}))
                self.assertEqual(adapter.ask(first.url, method="POST", content=b"x").status, status)
            self.assertEqual(target.log(), [])
            first = self.server.script(reply(303, {"Location": target.url}))
            self.assertEqual(adapter.ask(first.url, method="POST", content=b"x", redirect_to_get=True).status, 200)
            self.assertEqual((target.log()[0]["method"], target.log()[0]["body"]), ("GET", ""))
        self.each(check)

    def test_head_that_drips_past_the_deadline(self):
        def check(adapter):
            target, begun = self.server.script({"reply": OK, "drip_ms": 100}), time.monotonic()
            result = adapter.ask(target.url, total_deadline_ms=700)
            self.assertEqual(result.info.reason, "deadline")
            self.assertIn("CallRefused", type(result.error).__name__)
            self.assertLess(time.monotonic() - begun, GENEROUS_S)
        self.each(check)

    def test_body_that_drips_past_the_deadline(self):
        def check(adapter):
            target = self.server.script({"reply": reply(200, {}, "x" * 5000), "drip_ms": 5})
            result = adapter.ask(target.url, total_deadline_ms=900, whole_answers=65536)
            self.assertEqual(result.info.reason, "deadline", result.status)
        self.each(check)

    def test_good_answer_cut_half_way(self):
        def check(adapter):
            cut = {"reply": 'HTTP/1.1 201 Made\nContent-Length: 100\n\n{"id":', "end": "reset"}
            target = self.server.script(cut, reply(201, {}, '{"id":7}'))
            result = adapter.ask(target.url, method="POST", content=b"x", idempotency=["POST /{name}"], whole_answers=65536)
            self.assertEqual(result.text, '{"id":7}')
            self.assertEqual(len({field(entry, "idempotency-key") for entry in target.log()}), 1)
        self.each(check)

    def test_interim_answers_are_passed_over(self):
        def check(adapter):
            target = self.server.script(f"HTTP/1.1 103 Early Hints\nLink: </x>\n\nHTTP/1.1 102 Processing\n\n{OK}")
            result = adapter.ask(target.url)
            self.assertEqual((result.status, result.text, len(target.log())), (200, "good", 1))
        self.each(check)

    def test_endless_interim_answers_end(self):
        def check(adapter):
            target, begun = self.server.script({"interim": "endless"}), time.monotonic()
            result = adapter.ask(target.url, total_deadline_ms=700)
            self.assertIn(result.info.reason, ("deadline", "error_not_retryable"))
            self.assertLess(time.monotonic() - begun, GENEROUS_S)
        self.each(check)

    def test_answer_that_is_not_http(self):
        def check(adapter):
            target = self.server.script({"reply": "SSH-2.0-hello\n\n", "end": "close"})
            result = adapter.ask(target.url)
            self.assertEqual((result.info.reason, len(target.log())), ("error_not_retryable", 1), result.error)
        self.each(check)

    def test_repeats_carry_the_attempt_number(self):
        def check(adapter):
            target = self.server.script(reply(503), reply(503), OK)
            adapter.ask(target.url, backoff_base_ms=10)
            self.assertEqual([field(entry, "retry-attempt") for entry in target.log()], [None, "2", "3"])
        self.each(check)

    def test_inside_another_retrying_client(self):
        def check(adapter):
            target = self.server.script(reply(503))
            self.assertEqual((adapter.ask(target.url, nested=True).status, len(target.log())), (503, 1))
        self.each(check)

    def test_bodies_are_identical(self):
        def check(adapter):
            content = bytes(range(256)) * 280
            target = self.server.script(reply(503), reply(503), OK)
            self.assertEqual(adapter.ask(target.url, method="PUT", content=content, backoff_base_ms=5).status, 200)
            sends = target.log()
            self.assertEqual({entry["body"] for entry in sends}, {content.decode("latin-1")})
            self.assertEqual({field(entry, "content-length") for entry in sends}, {str(len(content))})
        self.each(check)

    def test_one_shot_bodies_are_sent_once(self):
        def chunks():
            yield b"only "
            yield b"once"

        def check(adapter):
            target = self.server.script(reply(503), OK)
            content = io.BytesIO(b"only once") if adapter.name == "httpx async" else chunks()
            result = adapter.ask(target.url, method="PUT", content=content, backoff_base_ms=5)
            self.assertEqual((result.status, result.info.reason), (503, "body_not_replayable"))
            self.assertEqual([entry["body"] for entry in target.log()], ["only once"])
        self.each(check)

    def test_the_last_answer_is_given_back_unread(self):
        def check(adapter):
            long = "x" * 200_000
            for body in ("", "short", long):
                target = self.server.script(reply(429, {"Retry-After": "3600"}, body))
                result = adapter.ask(target.url)
                self.assertEqual((result.status, result.text == body), (429, True))
        self.each(check)


if __name__ == "__main__":
    unittest.main()
