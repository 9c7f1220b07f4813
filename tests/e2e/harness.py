"""Starts the real thing, upstream and gateway, on free ports, and asks it over HTTP.

    with Service() as service:
        answer = service.ask("GET", "/v1/quote", key="pk_demo_lisbon", address="198.51.100.7")
        answer.status, answer.headers["Retry-After"], answer.json()
"""

import contextlib
import http.client
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "booking"
AXUZ = ROOT / "examples" / "axuz"
RATION = os.environ.get("RATION_BINARY", str(ROOT / "build" / "ration"))
START_SECONDS = 60  # sanitized builds on a busy machine
DATE = "2026-12-01"

_addresses = itertools.count(1)


def new_address():
    """An address that no other test uses (RFC 5737 and RFC 2544 test networks)."""
    number = next(_addresses)
    return f"198.18.{number // 250}.{number % 250 + 1}"


_claims = []


def free_port():
    """A port for a server that is still to be started, and perhaps started again: outside the range from which the
    system gives ports out, and claimed by this process, among all tests, by a socket of that name."""
    for port in random.sample(range(20_000, 32_000), 1_000):
        claim = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError), socket.socket() as probe:
            claim.bind(f"\0ration test port {port}")
            probe.bind(("127.0.0.1", port))
            _claims.append(claim)
            return port
        claim.close()
    raise AssertionError("no free port")


def wait_for(condition, what, seconds=START_SECONDS):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {seconds} s")


def accepts(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Answer:
    def __init__(self, response, body):
        self.status, self.headers, self.body = response.status, response.headers, body

    def json(self):
        return json.loads(self.body)

    def error_type(self):
        return self.json()["error"]["type"]

    def __repr__(self):
        return f"{self.status} {dict(self.headers)} {self.body[:300]!r}"


class Client:
    """One keep-alive connection; not for several threads."""

    def __init__(self, port):
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(self, method, path, key=None, address=None, headers=None, body=None):
        fields = dict(headers or {})
        if key:
            fields["Authorization"] = f"Bearer {key}"
        if address:
            fields["X-Forwarded-For"] = address
        if isinstance(body, (dict, list)):
            body, fields["Content-Type"] = json.dumps(body), "application/json"
        self._connection.request(method, path, body=body, headers=fields)
        response = self._connection.getresponse()
        return Answer(response, response.read())

    def close(self):
        self._connection.close()


class Process:
    """A child whose output goes to files; ended when the test is over, whatever happens."""

    def __init__(self, command, folder, name, environment=None):
        self.output, self.errors = folder / f"{name}.out", folder / f"{name}.err"
        with open(self.output, "ab") as out, open(self.errors, "ab") as err:
            self.child = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                                          env=os.environ | (environment or {}))

    def error_text(self):
        return self.errors.read_text(errors="replace")

    def signal(self, number):
        self.child.send_signal(number)

    def wait(self, seconds=30):
        return self.child.wait(seconds)

    def end(self):
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(30)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        return self.child.returncode


class Service:
    """The gateway of an example, before the example's own API or before `upstream_port`."""

    def __init__(self, upstream_port=None, latency_ms=0, settings=None, policy=None, example=EXAMPLE,
                 environment=None):
        self._example = example
        self._upstream_port, self._latency_ms = upstream_port, latency_ms
        self._settings, self._policy = settings or {}, policy or {}
        self._environment = environment
        self._local = threading.local()
        self._clients = []

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ration-e2e-"))
        try:
            self._start()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, *_):
        for client in self._clients:
            client.close()
        for process in (getattr(self, "gateway", None), getattr(self, "upstream", None)):
            if process:
                process.end()
                if kind and process.errors.exists():
                    print(process.error_text()[-4000:], file=sys.stderr)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self):
        self.upstream = None
        if self._upstream_port is None:
            self._upstream_port = free_port()
            self.start_upstream()
        self.port, self.admin_port = free_port(), free_port()
        for name in ("policy.yaml", "directory.yaml"):
            shutil.copy(self._example / name, self.folder / name)
        self._change("policy.yaml", self._policy)
        self.serve_file = self.folder / "serve.yaml"
        self.serve_file.write_text(self._serve_text())
        self.start_gateway()

    def start_gateway(self):
        self.gateway = Process([RATION, "serve", str(self.serve_file)], self.folder, "gateway", self._environment)
        wait_for(self._ready, "the gateway is ready")

    def restart(self, kill):
        """Another process with the same files, after the first was told to end or killed."""
        if kill:
            self.gateway.child.kill()
            self.gateway.wait()
        else:
            self.gateway.end()
        for client in self._clients:
            client.close()
        self._local = threading.local()
        self.start_gateway()

    def _change(self, name, changes):
        text = (self.folder / name).read_text()
        for old, new in changes.items():
            assert old in text, f"{name} has no {old!r}"
            text = text.replace(old, new)
        (self.folder / name).write_text(text)

    def _serve_text(self):
        """The shipped serve.yaml with this test's ports."""
        text = (self._example / "serve.yaml").read_text()
        for shipped, mine in ((8080, self.port), (8081, self.admin_port), (8090, self._upstream_port)):
            text, count = re.subn(rf"\b{shipped}\b", str(mine), text)
            assert count, f"serve.yaml names no port {shipped}"
        for old, new in self._settings.items():
            assert old in text, f"serve.yaml has no {old!r}"
            text = text.replace(old, new)
        return text

    def _ready(self):
        if self.gateway.child.poll() is not None:
            raise AssertionError("the gateway ended: " + self.gateway.error_text())
        try:
            return self.admin("/readyz").status == 200
        except OSError:
            return False

    def start_upstream(self):
        program = self._example / f"{self._example.name}_api.py"
        command = [sys.executable, str(program), "--port", str(self._upstream_port),
                   "--latency-ms", str(self._latency_ms)]
        if self._example == EXAMPLE:
            command += ["--database", str(self.folder / "bookings.sqlite")]
        self.upstream = Process(command, self.folder, "upstream")
        wait_for(lambda: accepts(self._upstream_port), "the example's API is ready")

    def admin(self, path):
        client = Client(self.admin_port)
        try:
            return client.ask("GET", path)
        finally:
            client.close()

    def client(self):
        """This thread's own connection."""
        if not hasattr(self._local, "client"):
            self._local.client = Client(self.port)
            self._clients.append(self._local.client)
        return self._local.client

    def ask(self, method, path, **what):
        return self.client().ask(method, path, **what)

    def reload(self):
        self.gateway.signal(signal.SIGHUP)


class Spending:
    """What came of asking until refusals were seen."""

    def __init__(self):
        self.admitted, self.refusals, self.seconds = 0, [], 0.0


def spend(service, requests, refusals=1, threads=1, at_most=20_000):
    """Sends the requests that `requests(n)` makes, n = 0, 1, 2..., until some are refused by 429."""
    spending, lock, numbers = Spending(), threading.Lock(), itertools.count()
    failures = []

    def work():
        while not failures:
            with lock:
                number = next(numbers)
                if len(spending.refusals) >= refusals or number >= at_most:
                    return
            try:
                method, path, what = requests(number)
                answer = service.ask(method, path, **what)
            except Exception as error:
                failures.append(error)
                return
            with lock:
                if answer.status == 429:
                    spending.refusals.append(answer)
                else:
                    spending.admitted += 1

    begun = time.monotonic()
    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    spending.seconds = time.monotonic() - begun
    if failures:
        raise failures[0]
    return spending


def assert_budget(test, spending, per_minute):
    """All of a full bucket was admitted, and no more than it and what was refilled meanwhile."""
    test.assertTrue(spending.refusals, f"nothing was refused; {spending.admitted} were admitted")
    refilled = int(spending.seconds * per_minute / 60)
    test.assertGreaterEqual(spending.admitted, per_minute)
    test.assertLessEqual(spending.admitted, per_minute + refilled)


def booking(number, address="ana"):
    hour, half = divmod(number % 16, 2)
    day = number // 16 % 28 + 1
    return {"slot": f"2027-01-{day:02}T{9 + hour:02}:{'30' if half else '00'}",
            "customer": {"name": address, "email": f"{address}@example.org"}}
