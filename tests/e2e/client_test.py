#!/usr/bin/env python3
"""The calling side against the real gateway, with both examples: a crowd on one token, lost answers, ceilings,
a gateway that dies."""

import collections
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from harness import AXUZ, RATION, ROOT, Service, booking

DRIVER = os.environ["RATION_CLIENT_DRIVER"]
SECONDS = {"every: minute, count: attempts}\n    headers: x_ratelimit\n    store_down: "
           "{closed_if: env.RATE_LIMIT_FAIL_CLOSED}\n    refuse: token_rate_limited\n  - name: team key":
           "every: second, count: attempts}\n    headers: x_ratelimit\n    store_down: "
           "{closed_if: env.RATE_LIMIT_FAIL_CLOSED}\n    refuse: token_rate_limited\n  - name: team key"}


class Crowd:
    """The driver at work on a list of jobs."""

    def __init__(self, threads, key, jobs):
        self.child = subprocess.Popen([DRIVER, str(threads), key], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True)
        self._jobs = "".join(json.dumps(job) + "\n" for job in jobs)
        self._output = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        self._output = self.child.communicate(self._jobs)[0]

    def result(self):
        self._thread.join()
        return json.loads(self._output)


def call(service, *arguments, path="", key=None, address=None):
    """`ration call` on the gateway: (exit code, stdout, stderr)."""
    command = [RATION, "call", "--proxy", "", *arguments, f"http://127.0.0.1:{service.port}{path}"]
    if key:
        command += ["-H", f"Authorization: Bearer {key}"]
    if address:
        command += ["-H", f"X-Forwarded-For: {address}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def logged(service):
    """The gateway's access log, as it stands."""
    return [json.loads(line) for line in service.gateway.output.read_text().splitlines() if line.startswith("{")]


class ACrowdOnOneToken(unittest.TestCase):
    def test_fifty_callers_finish_with_a_probe_in_each_window(self):
        with Service(example=AXUZ, policy=SECONDS) as service:
            jobs = [{"method": "GET", "url": f"http://127.0.0.1:{service.port}/me/summary"}] * 600
            result = Crowd(50, "axp_demo_ana", jobs).result()
            self.assertEqual(result["endings"], {"200": 600})
            service.gateway.end()  # so that the log is whole
            windows = collections.defaultdict(collections.Counter)
            for line in logged(service):
                if line.get("path") == "/me/summary":
                    windows[line["time"][:19]][line["status"]] += 1  # the second of its arrival
        self.assertEqual(sum(count.total() for count in windows.values()), result["sends"])
        for window, counts in sorted(windows.items())[1:]:
            self.assertLessEqual(counts[429], 1, f"second {window}: {dict(counts)}")
        self.assertGreaterEqual(len(windows), 10, "60 a second are 10 windows at least")

    def test_what_is_used_up_holds_the_next_call_back(self):
        with Service(example=AXUZ) as service:
            answers = [call(service, "--max-wait", "0", "--bucket", "origin", path="/me/summary", key="axp_demo_ben")
                       for _ in range(6)]
            self.assertEqual([code for code, _, _ in answers], [0, 0, 0, 0, 0, 3], answers)
            self.assertIn("try again from", answers[-1][2])
            self.assertEqual(json.loads(answers[-1][1])["error"], "rate_limited")


class CuttingProxy:
    """Passes bytes to the gateway; while `cutting`, an answer that is a booking's is swallowed and the connection
    cut."""

    def __init__(self, port):
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cutting, self.cut = False, 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        gateway = socket.create_connection(("127.0.0.1", self._to))
        threading.Thread(target=self._pass_requests, args=(client, gateway), daemon=True).start()
        with client, gateway:
            while data := gateway.recv(65536):
                if self.cutting and data.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
                    self.cutting, self.cut = False, self.cut + 1
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)

    def _pass_requests(self, client, gateway):
        try:
            while data := client.recv(65536):
                gateway.sendall(data)
        except OSError:
            pass

    def close(self):
        self._listener.close()


class Bookings(unittest.TestCase):
    def book(self, service, number, *arguments, key="pk_demo_lisbon", address="198.51.100.77"):
        return call(service, "-d", json.dumps(booking(number)), *arguments, path="/v1/bookings", key=key,
                    address=address)

    def test_the_lost_answer_of_the_last_booking_is_recovered(self):
        # 15 a day, and 10 a minute: the test would wait, so the budgets are wider here.
        wider = {"create_booking: 10/min": "create_booking: 1000/min",
                 "create_booking: 60/min": "create_booking: 1000/min"}
        with Service(policy=wider) as service:
            proxy = CuttingProxy(service.port)
            self.addCleanup(proxy.close)
            for number in range(14):
                code, _, errors = self.book(service, number, "--idempotency-key", "auto")
                self.assertEqual(code, 0, errors)
            proxy.cutting = True
            command = [RATION, "call", "--proxy", "", "-v", "-d", json.dumps(booking(14)), "--idempotency-key",
                       "auto", "-H", "Authorization: Bearer pk_demo_lisbon", "-H", "X-Forwarded-For: 198.51.100.77",
                       f"http://127.0.0.1:{proxy.port}/v1/bookings"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            self.assertEqual((done.returncode, proxy.cut), (0, 1), done.stderr)
            self.assertIn("no answer: connection_lost", done.stderr)
            self.assertIn("idempotent-replayed: true", done.stderr)
            self.assertIn("id", json.loads(done.stdout))
            code, body, errors = self.book(service, 15, "--idempotency-key", "auto")
            self.assertEqual(code, 3)
            self.assertEqual(json.loads(body)["error"]["type"], "daily_booking_limit")
            self.assertIn("server_wait_too_long", errors)
            self.assertIn("try again from", errors)

    def test_the_account_volume_is_never_retried(self):
        with Service() as service:
            directory = service.folder / "directory.yaml"
            directory.write_text(directory.read_text().replace("booking_volume: 500}", "booking_volume: 1}"))
            service.reload()
            deadline = time.monotonic() + 60
            while True:  # until the new directory counts
                number = int(time.monotonic() * 1000) % 400
                code, body, errors = self.book(service, number, "-v", "--idempotency-key", "auto", key="sk_demo_tokyo")
                if code == 1 and "booking_volume_refused" in body:
                    break
                self.assertIn(code, (0, 1), errors)
                self.assertLess(time.monotonic(), deadline, errors)
            self.assertEqual(errors.count("  send "), 1, errors)
            self.assertIn("type_never_retry", errors)

    def test_a_post_without_a_key_is_sent_once(self):
        # Two at once, and then one every 12 s: a slow machine has time for three calls.
        with Service(policy={"create_booking: 10/min": "create_booking: 2 per 24s"}) as service:
            answers = [self.book(service, number, "-v") for number in range(3)]
            self.assertEqual([code for code, _, _ in answers], [0, 0, 3])
            refused = answers[-1][2]
            self.assertEqual(refused.count("  send "), 1, refused)
            self.assertIn("unsafe_method", refused)
            # With a key it waits for its turn.
            code, _, errors = self.book(service, 3, "-v", "--idempotency-key", "auto")
            self.assertEqual(code, 0, errors)
            self.assertIn("the server asked for it (Retry-After)", errors)

    def test_a_gateway_that_dies_loses_nothing(self):
        for kill in (False, True):
            with self.subTest(kill=kill), Service(latency_ms=20) as service:
                jobs = [{"method": "POST", "url": f"http://127.0.0.1:{service.port}/v1/bookings",
                         "body": booking(number)} for number in range(120)]
                crowd = Crowd(8, "sk_demo_lisbon", jobs)
                while len(logged(service)) < 20:
                    time.sleep(0.02)
                service.restart(kill)
                result = crowd.result()
                self.assertEqual(sum(result["endings"].values()), 120, result["endings"])
                self.assertEqual(len(result["bodies"]), 120, result["endings"])
                ids = {json.loads(body)["id"] for body in result["bodies"]}
                self.assertEqual(len(ids), 120, "each call has a booking of its own")


class TheManual(unittest.TestCase):
    def test_its_examples_run(self):
        text = (ROOT / "docs/clients/call.md").read_text()
        blocks = [block for block in re.findall(r"```sh\n(.*?)```", text, re.S) if "127.0.0.1:8080" in block]
        self.assertEqual(len(blocks), 2)
        with Service() as service, tempfile.TemporaryDirectory() as folder:
            for block in blocks:
                script = block.replace("127.0.0.1:8080", f"127.0.0.1:{service.port}")
                path = f"{os.path.dirname(RATION)}:{os.environ['PATH']}"
                done = subprocess.run(["bash", "-eu", "-c", script], cwd=folder, capture_output=True, text=True,
                                      timeout=120, env={**os.environ, "PATH": path, "no_proxy": "127.0.0.1"})
                self.assertEqual(done.returncode, 0, script + done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
