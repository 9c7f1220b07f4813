#!/usr/bin/env python3
"""The packed and installed clients against the running gateway.

A caller's program (scenarios.mjs, scenarios.py) says what it saw and when; what must hold is judged here.
"""

import contextlib
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

import installed  # noqa: E402
from harness import EXAMPLE, RATION, Client, Process, Service, free_port, wait_for  # noqa: E402

CALLERS = ["js", "httpx", "async", "requests"]
SECONDS = 200  # for a scenario, on a machine that does other things too
LIMIT = 60

POLICY = """
policy: windows
routes: {thing: ANY /thing}
identify:
  credentials: {secret: {bearer: sk_*}}
  accepts: {else: [secret]}
limits:
  - {name: second, per: [credential], fixed_window: {limit: credential.per_second, every: second}, headers: x_ratelimit, refuse: rate_limited}
"""


def program(caller, scenario, url):
    if caller == "js":
        shutil.copy(HERE / "scenarios.mjs", installed.js() / f"scenarios-{os.getpid()}.mjs")
        return ["node", str(installed.js() / f"scenarios-{os.getpid()}.mjs"), scenario, url]
    return [str(installed.python()), "-B", str(HERE / "scenarios.py"), caller, scenario, url]


def play(caller, scenario, url, half_way=None):
    """The scenario's result; `half_way` is called when the program says so."""
    with subprocess.Popen(program(caller, scenario, url), stdout=subprocess.PIPE, text=True) as child:
        timer = threading.Timer(SECONDS, child.kill)
        timer.start()
        lines = []
        for line in child.stdout:
            lines.append(line)
            if line.strip() == "half-way" and half_way:
                half_way()
        timer.cancel()
    if child.returncode:
        raise AssertionError(f"{caller} {scenario} ended with {child.returncode}")
    return json.loads(lines[-1])


class Upstream(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"thing")

    do_POST = do_GET

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Windows:
    """The gateway with windows of a second, and tokens of each caller's own."""

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ration-clients-"))
        self.upstream = Server(("127.0.0.1", 0), Upstream)
        self.upstream.__enter__()
        self.port, self.admin_port = free_port(), free_port()
        (self.folder / "policy.yaml").write_text(POLICY)
        numbers = {"": LIMIT, "_posts": LIMIT, "_fast": 100_000}
        keys = "\n".join(f"  sk_{caller}{kind}: {{kind: secret, per_second: {number}}}"
                         for caller in CALLERS for kind, number in numbers.items())
        (self.folder / "directory.yaml").write_text(f"credentials:\n{keys}\n")
        (self.folder / "serve.yaml").write_text(
            f"policy: policy.yaml\ndirectory: directory.yaml\nlisteners: 127.0.0.1:{self.port}\n"
            f"admin: 127.0.0.1:{self.admin_port}\nupstream: http://127.0.0.1:{self.upstream.server_address[1]}\n")
        self.start()
        self.url = f"http://127.0.0.1:{self.port}/thing"
        return self

    def start(self):
        self.gateway = Process([RATION, "serve", str(self.folder / "serve.yaml")], self.folder, "gateway")
        wait_for(self.ready, "the gateway is ready")

    def ready(self):
        if self.gateway.child.poll() is not None:
            raise AssertionError("the gateway ended: " + self.gateway.error_text())
        try:
            client = Client(self.admin_port)
            return client.ask("GET", "/readyz").status == 200
        except OSError:
            return False
        finally:
            client.close()

    def restart(self):
        self.gateway.signal(signal.SIGKILL)
        self.gateway.wait()
        self.start()

    def __exit__(self, *_):
        self.gateway.end()
        self.upstream.__exit__()
        shutil.rmtree(self.folder, ignore_errors=True)


class LosesAnswers:
    """A proxy before the gateway that loses the answer to one request: the caller's connection breaks instead."""

    def __init__(self, port, lost):
        proxy = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                with contextlib.suppress(ConnectionError):
                    while proxy.one(self):
                        pass
        self.gateway_port, self.lost, self.posts, self.seen = port, lost, 0, []
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def one(self, handler):
        head = handler.rfile.readline()
        if not head:
            return False
        method, target, _ = head.decode().split(" ")
        headers = http.client.parse_headers(handler.rfile)
        body = handler.rfile.read(int(headers.get("Content-Length", 0)))
        upstream = http.client.HTTPConnection("127.0.0.1", self.gateway_port, timeout=60)
        upstream.request(method, target, body, dict(headers))
        answer = upstream.getresponse()
        content = answer.read()
        upstream.close()
        self.posts += 1
        self.seen.append((headers.get("Idempotency-Key"), answer.status))
        if self.posts == self.lost:
            return False
        fields = "".join(f"{name}: {value}\r\n" for name, value in answer.getheaders()
                         if name.lower() not in ("connection", "transfer-encoding", "content-length"))
        handler.wfile.write(f"HTTP/1.1 {answer.status} x\r\n{fields}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        return True

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class EachCaller(unittest.TestCase):
    """All callers at once: they wait more than they work, and each has a token of its own."""

    @classmethod
    def setUpClass(cls):
        installed.js()
        installed.python()

    def each(self, check):
        with ThreadPoolExecutor(len(CALLERS)) as pool:
            futures = {caller: pool.submit(check, caller) for caller in CALLERS}
            for caller, future in futures.items():
                with self.subTest(caller):
                    future.result()


class Crowds(EachCaller):
    def setUp(self):
        self.windows = self.enterContext(Windows())

    def test_fifty_callers_finish_six_hundred_calls(self):
        def check(caller):
            result = play(caller, "crowd", self.windows.url)
            self.assertEqual([call for call in result["results"] if call["status"] != 200], [])
            self.assertEqual(len(result["results"]), 600)
            Judge(self, result["events"]).all()
        self.each(check)

    def test_posts_without_a_key_are_sent_once(self):
        def check(caller):
            result = play(caller, "posts", self.windows.url)
            statuses = [call["status"] for call in result["results"]]
            self.assertEqual(set(call.get("attempts", 1) for call in result["results"]) - {0, 1}, set())
            self.assertEqual(len(statuses), 70)
            self.assertGreaterEqual(statuses.count(200), LIMIT)
        self.each(check)

    def test_a_restart_loses_nothing(self):
        once = threading.Barrier(len(CALLERS), self.windows.restart)

        def check(caller):
            waiting = []

            def half_way():
                waiting.append(threading.Thread(target=once.wait))
                waiting[0].start()
            result = play(caller, "restart", self.windows.url, half_way)
            self.assertEqual([call for call in result["results"] if call["status"] != 200], [])
            self.assertEqual(len(result["results"]), 2000)
            waiting[0].join()
        self.each(check)


class Judge:
    """Holds what one caller's program saw against the promises."""

    def __init__(self, test, events):
        self.test, self.events = test, sorted(events, key=lambda event: event["now_ms"])
        self.in_flight, self.remaining, self.window, self.not_before = 0, None, 0, 0.0
        self.refused = {}

    def all(self):
        for event in self.events:
            if event["kind"] == "send":
                self.sent(event)
            else:
                self.answered(event)
        first = min((event["at_ms"] // 1000 for event in self.events))
        later = {window: count for window, count in self.refused.items() if window > first}
        self.test.assertLessEqual(max(later.values(), default=0), 1, self.refused)

    def sent(self, event):
        self.in_flight += 1
        self.test.assertGreaterEqual(event["at_ms"], self.not_before, "sent before the told moment")
        if self.remaining is not None:
            self.test.assertLessEqual(self.in_flight, max(1, self.remaining), "more in flight than remain")

    def answered(self, event):
        self.in_flight -= 1
        self.test.assertIsNone(event["error"])
        remaining, reset = int(event["headers"]["x-ratelimit-remaining"]), int(event["headers"]["x-ratelimit-reset"])
        if reset >= self.window:  # an answer of a window before says nothing any more
            self.remaining, self.window = remaining, reset
        if event["status"] == 429:
            self.refused[reset - 1] = self.refused.get(reset - 1, 0) + 1
            self.not_before = max(self.not_before, event["at_ms"] + 1000 * int(event["headers"]["retry-after"]) - 5)
        elif remaining == 0:
            self.not_before = max(self.not_before, 1000 * reset)


class Bookings(EachCaller):
    """The booking example; only the short-term budgets are wider, so that fifteen bookings take no half minute."""

    def service(self, **settings):
        return Wide(settings)

    def test_the_lost_answer_of_the_fifteenth_booking(self):
        def check(caller):
            with self.service() as service:
                proxy = LosesAnswers(service.port, lost=15)
                try:
                    results = play(caller, "day", proxy.url)["results"]
                finally:
                    proxy.close()
                self.assertEqual([call["status"] for call in results[:15]], [201] * 15, results)
                self.assertEqual([call["attempts"] for call in results[:15]], [1] * 14 + [2])
                self.assertEqual(len({json.loads(call["text"])["id"] for call in results[:15]}), 15)
                self.assertEqual(proxy.seen[14][0], proxy.seen[15][0], "the same key")
                self.assert_stopped_by_the_day(results[15:], proxy)
                usage = service.ask("GET", "/v1/account/usage", key="ak_demo_one").json()
                self.assertEqual(usage["bookings"], 15)
        self.each(check)

    def assert_stopped_by_the_day(self, results, proxy):
        """The sixteenth is refused once; the seventeenth is not even sent."""
        sixteenth, seventeenth = results
        self.assertEqual((sixteenth["status"], sixteenth["attempts"]), (429, 1))
        self.assertEqual(json.loads(sixteenth["text"])["error"]["type"], "daily_booking_limit")
        self.assertEqual(sixteenth["reason"], "server_wait_too_long")
        self.assertEqual((seventeenth["status"], seventeenth["reason"], seventeenth["attempts"]), (None, "gate_closed", 0))
        self.assertEqual(proxy.posts, 17)

    def test_booking_volume_refused_is_never_retried(self):
        def check(caller):
            with self.service(booking_volume=3) as service:
                result = play(caller, "volume", f"http://127.0.0.1:{service.port}")
                self.assertEqual([call["status"] for call in result["results"]], [201] * 3 + [429] * 2)
                for call in result["results"][3:]:
                    self.assertEqual((call["attempts"], call["reason"]), (1, "type_never_retry"))
                    self.assertEqual(json.loads(call["text"])["error"]["type"], "booking_volume_refused")
        self.each(check)


class Tokens(EachCaller):
    """The Axuz example: a token has a window per minute, and its numbers are on every answer."""

    def test_a_used_up_minute_is_not_asked_again(self):
        def check(caller):
            with Service(example=EXAMPLE.parent / "axuz") as service:
                result = play(caller, "minute", f"http://127.0.0.1:{service.port}/me/summary")
            answered = [call for call in result["results"] if call["status"] is not None]
            held = [call for call in result["results"] if call["status"] is None]
            self.assertEqual({call["status"] for call in answered}, {200})
            self.assertGreaterEqual(len(answered), 5)
            self.assertEqual(result["stats"]["sends"], len(answered), "what is held is not sent")
            for call in held:  # none where the minute turned over in between
                self.assertEqual((call["reason"], call["attempts"]), ("deadline", 0))
                retry_at = call.get("retry_at", call.get("retryAt"))
                self.assertLessEqual(retry_at % 60_000, 2_000, "the minute's turn, its guard and what Date rounds off")
        self.each(check)

    def test_an_office_finishes_within_its_minute(self):
        def check(caller):
            with Service(example=EXAMPLE.parent / "axuz") as service:
                result = play(caller, "office", f"http://127.0.0.1:{service.port}/me/summary")
            self.assertEqual([call for call in result["results"] if call["status"] != 200], [])
            self.assertEqual(len(result["results"]), 600)
            Judge(self, result["events"]).all()
        self.each(check)


class Wide(Service):
    def __init__(self, settings):
        super().__init__()
        self._volume = settings.get("booking_volume")

    def _serve_text(self):
        policy = self.folder / "policy.yaml"
        text, count = re.subn(r"create_booking: \d+/min", "create_booking: 6000/min", policy.read_text())
        assert count == 2, "the shipped policy has two budgets for bookings"
        policy.write_text(text)
        if self._volume is not None:
            directory = self.folder / "directory.yaml"
            text, count = re.subn(r"booking_volume: \d+", f"booking_volume: {self._volume}", directory.read_text())
            assert count, "the shipped directory has booking volumes"
            directory.write_text(text)
        return super()._serve_text()


if __name__ == "__main__":
    unittest.main()
