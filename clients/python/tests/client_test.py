"""What is shared, what is optional, what can be watched: through httpx on a scripted transport, and the core
on a virtual clock."""

import gzip
import io
import threading
import time
import tracemalloc
import unittest
import unittest.mock
import zlib

import httpx
import requests
from hostile import HostileServer, reply
from virtual import World

import ration_client.httpx
import ration_client.requests
from ration_client import core

NOW = 1_795_996_800_000


def client_of(handler, **options):
    return httpx.Client(transport=ration_client.httpx.Transport(httpx.MockTransport(handler), **options))


def answers(*statuses, headers=None):
    rest = list(statuses)
    return lambda request: httpx.Response(rest.pop(0) if len(rest) > 1 else rest[0], headers=headers)


class Settings(unittest.TestCase):
    def test_a_request_may_have_a_policy_of_its_own(self):
        client = client_of(answers(503), backoff_base_ms=1)
        answer = client.get("https://api.example/a", extensions={"ration": {"max_retries": 1}})
        self.assertEqual((answer.status_code, answer.extensions["ration"].attempts), (503, 2))

    def test_a_nested_client_makes_no_retries_whatever_a_request_says(self):
        client = client_of(answers(503), backoff_base_ms=1, nested=True)
        answer = client.get("https://api.example/a", extensions={"ration": {"max_retries": 3}})
        self.assertEqual(answer.extensions["ration"].attempts, 1)

    def test_the_body_is_read_for_the_types_of_a_requests_own_policy(self):
        def handler(request):
            seen.append(request)
            body = iter([b'{"error": {"type": "still_running"}}'])  # of no told length
            return httpx.Response(409, content=body) if len(seen) == 1 else httpx.Response(200)
        seen = []
        client = client_of(handler, backoff_base_ms=1)
        answer = client.get("https://api.example/a", extensions={"ration": {"retry_types": ["still_running"]}})
        self.assertEqual((answer.status_code, len(seen)), (200, 2))

    def test_buckets(self):
        for bucket, sent in (("path", 2), ("origin", 1), (lambda facts: facts.path[:2], 1)):
            client = client_of(answers(429, headers={"Retry-After": "3600"}), bucket=bucket)
            client.get("https://api.example/a")
            try:
                client.get("https://api.example/ab")
            except ration_client.httpx.CallRefused as error:
                self.assertEqual(error.info.reason, "gate_closed")
                self.assertGreater(error.info.retry_at, time.time() * 1000)
            self.assertEqual(client._transport.stats()["sends"], sent)

    def test_refusals_are_what_the_library_raises(self):
        self.assertTrue(issubclass(ration_client.httpx.CallRefused, httpx.HTTPError))
        self.assertTrue(issubclass(ration_client.requests.CallRefused, requests.RequestException))

    def test_what_is_learnt_elsewhere_and_then_at_home(self):
        def handler(request):
            if request.url.host == "other.example":
                return httpx.Response(503)
            sends.append(request)
            if len(sends) == 1:
                return httpx.Response(307, headers={"Location": "https://other.example/"})
            return httpx.Response(429, headers={"Retry-After": "3600"})
        sends = []
        transport = ration_client.httpx.Transport(httpx.MockTransport(handler), follow_redirects=True, backoff_base_ms=1)
        answer = httpx.Client(transport=transport).get("https://api.example/a")
        self.assertEqual((answer.status_code, answer.extensions["ration"].attempts), (429, 2))
        self.assertEqual(transport.stats()["gates"][0]["state"], "closed")

    def test_keys_for_listed_routes(self):
        keys = []

        def handler(request):
            keys.append(request.headers.get("Idempotency-Key"))
            return httpx.Response(201)
        client = client_of(handler, idempotency=["POST /v1/bookings", "POST /v1/x/{id}/y"], new_key=lambda: "made")
        for path in ("/v1/bookings", "/v1/bookings/7", "/v1/x/7/y", "/v1/x/7/8/y"):
            client.post(f"https://api.example{path}")
        self.assertEqual(keys, ["made", None, "made", None])

    def test_counters_and_hooks_hold_no_secret(self):
        events = []
        hooks = {name: lambda event, name=name: events.append((name, event)) for name in ("on_send", "on_answer", "on_wait", "on_done")}
        client = client_of(answers(503, 200), hooks=hooks, backoff_base_ms=1)
        answer = client.get("https://api.example/a", headers={"Authorization": "Bearer s3cret", "Idempotency-Key": "s3cret"})
        self.assertEqual(answer.extensions["ration"].idempotency_key, "s3cret")
        stats = client._transport.stats()
        self.assertEqual((stats["calls"], stats["sends"], stats["retries"]), (1, 2, {"503": 1}))
        self.assertEqual([name for name, _ in events], ["on_send", "on_answer", "on_wait", "on_send", "on_answer", "on_done"])
        self.assertNotIn("s3cret", repr((stats, events)))

    def test_a_hook_that_raises_changes_nothing(self):
        self.assertEqual(client_of(answers(200), hooks={"on_send": lambda event: 1 / 0}).get("https://api.example").status_code, 200)

    def test_no_more_gates_than_the_bound(self):
        client = client_of(answers(200), max_gates=10)
        for number in range(25):
            client.get(f"https://api.example/{number}")
        gates = client._transport.stats()["gates"]
        self.assertEqual((len(gates), gates[9]["bucket"]), (10, "GET /24"))

    def test_gates_that_hold_somebody_stay_and_newcomers_share_one(self):
        book = core.GateBook(core.Policy(), lambda: 0.0, 3)
        for key in ("a", "idle", "b", "c"):
            gate = book.open(key, 0)
            if key != "idle":
                gate.close(10_000, 0)
        self.assertEqual(sorted(book.gates), ["a", "b", "c"])
        common = book.open("d", 0)
        self.assertIs(book.open("e", 0), common)
        self.assertEqual(len(book.gates), 3)
        self.assertIsNot(book.open("e", 10_000), common)
        self.assertEqual(len(book.gates), 3)

    def test_those_that_have_to_stay_are_looked_at_last_the_next_time(self):
        book = core.GateBook(core.Policy(), lambda: 0.0, 200)
        for number in range(200):
            book.open(str(number), 0).close(10_000 if number < 150 else 0, 0)
        common = book.open("new", 0)
        self.assertIs(book.open("new", 0), common)
        self.assertIsNot(book.open("new", 0), common)
        self.assertEqual((book.find("0") is None, book.find("150")), (False, None))

    def test_what_can_be_kept_is_kept_for_a_repeat(self):
        bodies, file = [], io.BytesIO(b"-content")

        def send(adapter, request, **how):
            body = request.body
            bodies.append(body if isinstance(body, bytes) else body.read())
            change()
            response = requests.Response()
            response.status_code, response.request, response.url = 503 if len(bodies) < 2 else 200, request, request.url
            response.headers = requests.structures.CaseInsensitiveDict()
            response._content, response._content_consumed = b"", True
            return response

        def rewrite():
            file.seek(0)
            file.write(b"-changed")
        changing = bytearray(b"content")
        for body, change in ((bytearray(b"content"), lambda: None), (memoryview(b"content"), lambda: None),
                             (changing, lambda: changing.__setitem__(0, 88)), (file, rewrite)):
            bodies.clear()
            file.seek(1)
            with unittest.mock.patch.object(requests.adapters.HTTPAdapter, "send", send):
                answer = ration_client.requests.Session(backoff_base_ms=1).put("https://api.example", data=body)
            self.assertEqual((answer.status_code, bodies), (200, [b"content"] * 2), type(body))

    def test_small_files_are_kept_for_a_repeat(self):
        bodies = []

        def handler(request):
            bodies.append(request.read())
            return httpx.Response(503 if len(bodies) < 2 else 200)
        client = client_of(handler, backoff_base_ms=1)
        answer = client.put("https://api.example", files={"file": ("a.txt", b"content")})
        self.assertEqual((answer.status_code, len(set(bodies)), len(bodies)), (200, 1, 2))


class Threads(unittest.TestCase):
    def test_one_client_from_many_threads(self):
        lock, in_flight, most = threading.Lock(), [0], [0]

        def handler(request):
            with lock:
                in_flight[0] += 1
                most[0] = max(most[0], in_flight[0])
            time.sleep(0.002)
            with lock:
                in_flight[0] -= 1
            return httpx.Response(200, headers={"RateLimit-Remaining": "3"})
        client, failures = client_of(handler), []

        def work():
            try:
                for _ in range(20):
                    client.get("https://api.example")
            except Exception as error:
                failures.append(error)
        client.get("https://api.example")
        workers = [threading.Thread(target=work) for _ in range(10)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(failures, [])
        self.assertLessEqual(most[0], 3)
        self.assertEqual(client._transport.stats()["gates"][0]["in_flight"], 0)


class PlainPath(unittest.TestCase):
    """Calls without hooks and optional parts, whose fields are read in bulk."""

    @classmethod
    def setUpClass(cls):
        cls.server = HostileServer()
        cls.addClassCleanup(cls.server.stop)

    def test_fields_in_any_case_and_repeated_ones(self):
        for headers in ([("X-RATELIMIT-remaining", "0"), ("x-rateLimit-RESET", "3600")],
                        [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "3600")],
                        [("RateLimit", '"a";r=5'), ("ratelimit", '"b";r=0;t=3600')]):
            client = client_of(answers(200, headers=headers))
            self.assertEqual(client.get("https://api.example/a").extensions["ration"].reason, "success")
            with self.subTest(headers), self.assertRaises(ration_client.httpx.CallRefused) as raised:
                client.get("https://api.example/a")
            self.assertEqual(raised.exception.info.reason, "gate_closed")

    def test_limits_told_to_requests(self):
        for headers, told in (({"X-RATELIMIT-remaining": "7"}, 7), ({"ratelimit": '"a";r=5'}, 5), ({"X-Ratelimit-Note": "x"}, None)):
            session = ration_client.requests.Session()
            session.trust_env = False
            target = self.server.script(reply(200, headers, "good"))
            self.assertEqual(session.get(target.url).ration.reason, "success")
            self.assertEqual(session.stats()["gates"][0]["remaining"], told, headers)
            session.close()

    def test_limits_that_close_nothing_and_odd_ones(self):
        for headers in ({"X-RateLimit-Remaining": "7", "X-RateLimit-Reset": "60"}, {"RateLimit": "garbage"}, {"X-RateLimit-Remaining": "\u0667"},
                        {"X-Ratelimit-Note": "none"}, {"Server": "ratelimit"}, {"Server": "caf\u00e9"}):
            with self.subTest(headers):
                client = client_of(lambda request, headers=headers: httpx.Response(200, headers=[
                    (name.encode(), value.encode()) for name, value in headers.items()]))
                for _ in range(3):
                    info = client.get("https://api.example/a").extensions["ration"]
                    self.assertEqual(info, (1, "success", None, None, 0.0, 200, None))
                gate, = client._transport.stats()["gates"]
                self.assertEqual((gate["in_flight"], gate["remaining"]), (0, 7 if "X-RateLimit-Reset" in headers else None))

    def test_whose_call_it_is(self):
        """Authorization counts, in any case of its name, before X-Api-Key; each credential has a gate of its own."""
        client = client_of(answers(200))
        for headers in ({"authorization": "one", "X-API-KEY": "two"}, {"AUTHORIZATION": "one"}, {"x-Api-Key": "two"}, {},
                        [("Authorization", "one"), ("Authorization", "two")]):
            client.get("https://api.example/a", headers=headers)
        keys = [key.split("\n")[1] for key in client._transport._shared.gates.gates]
        self.assertEqual(keys, ["one", "two", "", "one, two"])

    def test_a_requests_own_policy_names_its_own_key_header(self):
        seen = []

        def handler(request):
            seen.append(request.headers.get("X-Own-Key"))
            return httpx.Response(503 if len(seen) == 1 else 200)
        client = client_of(handler, backoff_base_ms=1)
        own = {"idempotency_header": "X-Own-Key", "idempotency": "auto"}
        info = client.post("https://api.example/a", extensions={"ration": own}).extensions["ration"]
        self.assertEqual((info.attempts, seen), (2, [info.idempotency_key] * 2))
        info = client.post("https://api.example/a", headers={"x-own-KEY": "mine"}, extensions={"ration": own}).extensions["ration"]
        self.assertEqual((info.idempotency_key, seen[-1]), ("mine", "mine"))

    def test_redirects_go_by_a_requests_own_policy(self):
        seen = []

        def handler(request):
            seen.append(request)
            status = 303 if request.url.path == "/see" else 307
            there = "https://elsewhere.example/b"
            return httpx.Response(status, headers={"Location": there}) if request.url.host == "api.example" else httpx.Response(200)
        transport = ration_client.httpx.Transport(httpx.MockTransport(handler), follow_redirects=True)
        client = httpx.Client(transport=transport)

        def post(path, headers=None, **own):
            seen.clear()
            return client.post(f"https://api.example{path}", headers=headers, extensions={"ration": own})
        info = post("/a", idempotency_header="X-Own-Key", idempotency="auto").extensions["ration"]
        self.assertEqual([request.headers.get("X-Own-Key") for request in seen], [info.idempotency_key, None])
        post("/a", {"X-Own-Key": "mine"}, idempotency_header="X-Own-Key")
        self.assertEqual([request.headers.get("X-Own-Key") for request in seen], ["mine", None])
        answer = post("/a", max_redirects=0)
        self.assertEqual((answer.status_code, answer.extensions["ration"].reason, len(seen)), (307, "too_many_redirects", 1))
        self.assertEqual(post("/see").status_code, 303)
        self.assertEqual((post("/see", redirect_to_get=True).status_code, seen[-1].method), (200, "GET"))

    def test_how_far_off_a_gate_may_open_is_for_each_request_to_say(self):
        world = World(NOW, lambda send: (0, core.Outcome(429, {"retry-after": "90"}.get) if not send["at"] else core.Outcome(200, {}.get)),
                      total_deadline_ms=400_000)

        def ask(**own):
            call = world.start("GET", "/a", policy=core.make_policy(own, world.shared.settings.policy))
            world.clock.run(None if own.get("max_server_wait_ms") == 90_000 else world.clock.time)
            return call.result()
        self.assertEqual((ask(), ask(max_server_wait_ms=89_999)), (429, "gate_closed"))
        self.assertEqual(ask(max_server_wait_ms=90_000), 200)
        self.assertEqual(len(world.sends), 2)

    def test_no_refusal_is_unpacked_to_much(self):
        told = b'{"error": {"type": "booking_volume_refused"}}'
        zeros = zlib.compressobj(9, zlib.DEFLATED, 31)
        bomb = b"".join(zeros.compress(bytes(1 << 20)) for _ in range(50)) + zeros.flush()
        for coding, body, error_type in (
                ("gzip", gzip.compress(told), "booking_volume_refused"), ("deflate", zlib.compress(told), "booking_volume_refused"),
                ("GZIP", gzip.compress(told), "booking_volume_refused"), ("unheard-of", told, "booking_volume_refused"),
                ("gzip, gzip", gzip.compress(gzip.compress(told)), None), ("gzip", told, None), ("gzip", bomb[:60_000], None),
                ("gzip, gzip", gzip.compress(bomb), None)):
            fields = {"Content-Encoding": coding, "Retry-After": "7200"}
            # Given raw: MockTransport would be read ahead, and unpacked, by httpx itself.
            client = client_of(lambda request: httpx.Response(429, headers=fields, stream=httpx.ByteStream(body)))
            tracemalloc.start()
            with client.stream("GET", "https://api.example/a") as answer:
                self.assertEqual(answer.extensions["ration"].error_type, error_type, coding)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            self.assertLess(peak, 4_000_000, coding)

    def test_without_a_place_in_the_pool_nothing_was_sent(self):
        seen = []

        def handler(request):
            seen.append(request)
            if len(seen) == 1:
                raise httpx.PoolTimeout("full")
            return httpx.Response(201)
        answer = client_of(handler, backoff_base_ms=1).post("https://api.example/a")
        self.assertEqual((answer.status_code, len(seen)), (201, 2))

    def test_what_a_transport_raises_leaves_nothing_behind(self):
        class Ended(BaseException):
            pass

        def handler(request):
            raise Ended
        client = client_of(handler)
        with self.assertRaises(Ended):
            client.get("https://api.example/a", headers={"Idempotency-Key": "k"})
        self.assertEqual(client._transport.stats()["gates"][0]["in_flight"], 0)
        self.assertEqual(list(client._transport._shared.doubts), ["https://api.example:443\nk"])


class Optional(unittest.TestCase):
    def world(self, reply, **options):
        return World(NOW, reply, random=lambda: 0.5, max_retries=0, **options)

    def run_one(self, world):
        running = world.start("GET", "/a")
        world.clock.run()
        return running.result()

    def test_breaker(self):
        up = [False]
        world = self.world(lambda send: (0, core.Outcome(status=200) if up[0] else core.Outcome(error="connection_lost")), breaker=True)
        results = [self.run_one(world) for _ in range(11)]
        self.assertEqual(results, ["connection_lost"] * 10 + ["breaker_open"])
        up[0] = True
        world.clock.run(5001)
        self.assertEqual(self.run_one(world), 200)

    def test_throttle(self):
        world = self.world(lambda send: (0, core.Outcome(status=503)), throttle={"k": 2})
        for _ in range(20):
            self.run_one(world)
        self.assertLess(len(world.sends), 5)
        world = self.world(lambda send: (0, core.Outcome(status=429)), throttle=True)
        for _ in range(20):
            self.run_one(world)
        self.assertEqual(len(world.sends), 20)

    def test_in_flight_limit(self):
        most = [0]

        def reply(send):
            most[0] = max(most[0], sum("replied_at" not in other for other in world.sends))
            return 10, core.Outcome(status=200)
        world = self.world(reply, concurrency={"initial": 2})
        calls = [world.start("GET", "/a") for _ in range(30)]
        world.clock.run()
        self.assertEqual({call.result() for call in calls}, {200})
        self.assertTrue(2 < most[0] < 10, most)

    def test_pace(self):
        world = self.world(lambda send: (0, core.Outcome(status=200)), pace={"rate_per_min": 600, "burst": 2})
        for _ in range(5):
            world.start("GET", "/a")
        world.clock.run()
        self.assertEqual([send["at"] for send in world.sends], [0, 0, 100, 200, 300])


if __name__ == "__main__":
    unittest.main()
