#!/usr/bin/env python3
"""The gateway is killed under load, over and over, and what it promised is checked afterwards.

32 connections create bookings with keys, through the real gateway, at the real booking API. It is
killed by SIGKILL at random instants and at each of six points:

    before the reservation is durable, after it, after the request was sent, between the upstream's
    commit and its reply, before the outcome is durable, after it and before the answer

and started again on the same ledger. In the end: one booking for each key; each 201 that a client
saw is replayed as it was; each ceiling counts what was written and what is in doubt, nothing else;
nothing runs.

RATION_KILLS says how often (200), RATION_CRASH_SEED from which seed (the time, printed).
"""

import collections
import contextlib
import datetime
import json
import os
import pathlib
import random
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from harness import EXAMPLE, ROOT, Process, accepts, free_port, wait_for

KILLS = int(os.environ.get("RATION_KILLS", "200"))
SEED = int(os.environ.get("RATION_CRASH_SEED", str(time.time_ns() % 10**9)))
RATION = os.environ.get("RATION_CRASHING_BINARY", str(ROOT / "build" / "tests" / "e2e" / "ration_killed_at_points"))
CONNECTIONS = 32
PER_DAY = 15
POINTS = ["ledger.before_reserve_commit", "ledger.after_reserve_commit", "gateway.after_send", "upstream",
          "ledger.before_settle_commit", "ledger.after_settle_commit"]
WORKSPACES = {"pk_crash_1": "ws_lisbon", "pk_crash_2": "ws_tokyo"}


class Try:
    """One booking that a client wants, with its key; what is known of it."""

    def __init__(self, number, address, key):
        self.number, self.address, self.key = number, address, key
        day, slot = divmod(number, 16)
        hour, half = divmod(slot, 2)
        date = datetime.date(2027, 1, 1) + datetime.timedelta(day)
        self.name = f"crash-{number:012}"
        self.body = json.dumps({"slot": f"{date}T{9 + hour:02}:{'30' if half else '00'}",
                                "customer": {"name": "ana", "email": "ana@example.org"}}).encode()
        self.answer = None  # body of a 201 that a client saw
        self.refused = False  # by the day's ceiling: nothing was written


class Connection:
    def __init__(self, port):
        self._port, self._socket, self._rest = port, None, b""

    def post(self, attempt):
        """(status, head, body); OSError when there is no answer."""
        if self._socket is None:
            self._socket, self._rest = socket.create_connection(("127.0.0.1", self._port), 10), b""
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            return self._exchange(attempt)
        except OSError:
            self.close()
            raise

    def _exchange(self, attempt):
        head = (f"POST /v1/bookings HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {attempt.key}\r\n"
                f"X-Forwarded-For: {attempt.address}\r\nIdempotency-Key: {attempt.name}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(attempt.body)}\r\n\r\n")
        self._socket.sendall(head.encode() + attempt.body)
        data = self._rest
        while b"\r\n\r\n" not in data:
            data = self._more(data)
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(re.search(rb"(?i)content-length: (\d+)", head).group(1))
        while len(body) < length:
            body = self._more(body)
        self._rest = body[length:]
        if re.search(rb"(?i)\r\nconnection: close", head):
            self.close()
        return int(head[9:12]), head, body[:length]

    def _more(self, data):
        got = self._socket.recv(65536)
        if not got:
            raise ConnectionResetError
        return data + got

    def close(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Load:
    """32 clients that create, and ask again for what they do not know."""

    def __init__(self, port, seed):
        self.port, self.seed = port, seed
        self.lock, self.tries, self.wrong = threading.Lock(), [], []
        self.up, self.over = threading.Event(), threading.Event()
        self.answers = collections.Counter()
        self._threads = [threading.Thread(target=self._client, args=(index,)) for index in range(CONNECTIONS)]

    def start(self):
        for thread in self._threads:
            thread.start()

    def stop(self):
        self.over.set()
        self.up.set()
        for thread in self._threads:
            thread.join()

    def _new(self, index, chance, own):
        address = f"198.{18 + index % 2}.{index}.{len(own) // 20}"
        with self.lock:
            attempt = Try(len(self.tries), address, list(WORKSPACES)[index % 2])
            self.tries.append(attempt)
        own.append(attempt)
        return attempt

    def _client(self, index):
        chance, own, unknown = random.Random(self.seed * 100 + index), [], []
        connection = Connection(self.port)
        while not self.over.is_set():
            self.up.wait()
            again = unknown and chance.random() < 0.6
            attempt = unknown.pop(chance.randrange(len(unknown))) if again else self._new(index, chance, own)
            if own and chance.random() < 0.1:
                attempt = chance.choice(own)  # a repeat of whatever it was
            try:
                self.judge(attempt, *connection.post(attempt))
            except OSError:
                self.answers["none"] += 1
                time.sleep(0.01)
            if attempt.answer is None and not attempt.refused and chance.random() < 0.9:
                unknown.append(attempt)  # some are never asked for again
        connection.close()

    def judge(self, attempt, status, head, body):
        self.answers[status] += 1
        replayed = b"idempotent-replayed: true" in head.lower()
        if status == 201:
            if attempt.answer is None:
                attempt.answer = body
            elif attempt.answer != body or not replayed:
                self.wrong.append(f"{attempt.name}: 201 {body} (replay: {replayed}) after {attempt.answer}")
        elif attempt.answer is not None:
            self.wrong.append(f"{attempt.name}: {status} {body} after {attempt.answer}")
        elif status == 429:
            attempt.refused = True
        elif status not in (409, 502, 503, 504):
            self.wrong.append(f"{attempt.name}: {status} {body}")


class Crashes(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ration-crash-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.port, self.admin, self.upstream_port = free_port(), free_port(), free_port()
        self.victim = self.folder / "victim"
        self.write_files()
        upstream = Process([sys.executable, "-B", str(pathlib.Path(__file__).parent / "crash_upstream.py"),
                            str(self.victim), "--port", str(self.upstream_port), "--database",
                            str(self.folder / "bookings.sqlite")], self.folder, "upstream")
        self.addCleanup(upstream.end)
        wait_for(lambda: accepts(self.upstream_port), "the booking API is ready")
        self.gateway = None
        self.addCleanup(lambda: self.gateway and self.gateway.end())

    def write_files(self):
        policy = (EXAMPLE / "policy.yaml").read_text()
        # Ceilings and keys are what this is about: no budget is in their way.
        policy = re.sub(r"\d+/min", "1000000/min", policy)
        (self.folder / "policy.yaml").write_text(policy)
        # It is about noon where these workspaces are, so no midnight falls into the test.
        offset = 12 - datetime.datetime.now(datetime.timezone.utc).hour
        zone = f"Etc/GMT{-offset:+}" if offset else "Etc/GMT"
        (self.folder / "directory.yaml").write_text(
            "entities:\n  plan: {p: {calendars: 9, workspaces: 9}}\n  account:\n"
            "    acc_one: {plan: p, billing_anchor: '2020-01-01T00:00:00Z', booking_volume: 1000000}\n  workspace:\n"
            + "".join(f"    {workspace}: {{account: acc_one, timezone: {zone}}}\n" for workspace in WORKSPACES.values())
            + "credentials:\n"
            + "".join(f"  {key}: {{kind: publishable, workspace: {workspace}}}\n"
                      for key, workspace in WORKSPACES.items()))
        (self.folder / "serve.yaml").write_text(
            f"policy: policy.yaml\ndirectory: directory.yaml\nlisteners: 127.0.0.1:{self.port}\n"
            f"admin: 127.0.0.1:{self.admin}\nupstream: http://127.0.0.1:{self.upstream_port}\nledger: ledger.db\n")

    def start(self, point=None, nth=1):
        command = [RATION, "serve", str(self.folder / "serve.yaml")]
        if point:
            command = ["env", f"RATION_SYNC_POINT={point}:{nth}", *command]
        self.gateway = Process(command, self.folder, "gateway")
        wait_for(lambda: accepts(self.port) or self.gateway.child.poll() is not None, "the gateway listens")
        if self.gateway.child.poll() is not None:
            self.fail("the gateway ended: " + self.gateway.error_text()[-2000:])

    def kill_once(self, load, chance, kill):
        point = POINTS[kill // 2 % len(POINTS)] if kill % 2 else None
        in_process = point not in (None, "upstream")
        nth = chance.randint(1, 60)
        self.start(point if in_process else None, nth)
        if point == "upstream":
            self.victim.write_text(f"{self.gateway.child.pid} {nth}")
        load.up.set()
        if point is None:
            time.sleep(chance.uniform(0.01, 0.5))
            self.gateway.child.kill()
        try:
            ended = self.gateway.wait(60)
        except subprocess.TimeoutExpired:
            self.fail(f"{point} was not met {nth} times")
        load.up.clear()
        self.assertEqual(ended, -9, self.gateway.error_text()[-2000:])
        self.assertEqual(load.wrong, [])

    def test_nothing_is_lost_and_nothing_is_done_twice(self):
        print(f"{KILLS} kills, RATION_CRASH_SEED={SEED}", flush=True)
        chance = random.Random(SEED)
        load = Load(self.port, SEED)
        load.start()
        self.addCleanup(load.stop)
        for kill in range(KILLS):
            self.kill_once(load, chance, kill)
        load.stop()
        self.start()
        self.replays(load)
        self.gateway.end()
        print(f"{len(load.tries)} keys, {dict(load.answers)}", flush=True)
        self.assertEqual(load.wrong, [])
        self.tables(load.tries)
        self.assertGreater(sum(attempt.answer is not None for attempt in load.tries), KILLS)
        self.assertGreater(load.answers["none"], KILLS)

    def replays(self, load):
        """Each 201 that was seen is there, with its mark."""
        connection = Connection(self.port)
        for attempt in load.tries:
            if attempt.answer is not None:
                load.judge(attempt, *connection.post(attempt))
        connection.close()

    def tables(self, tries):
        with contextlib.closing(sqlite3.connect(self.folder / "bookings.sqlite")) as database:
            booked = collections.Counter(
                name for (name,) in database.execute("SELECT idempotency_key FROM bookings"))
        self.assertEqual([name for name, count in booked.items() if count != 1], [])
        self.assertEqual([attempt.name for attempt in tries if attempt.answer and not booked[attempt.name]], [])
        with contextlib.closing(sqlite3.connect(self.folder / "ledger.db")) as ledger:
            self.assertEqual(ledger.execute("PRAGMA integrity_check").fetchone()[0], "ok")
            self.counts(ledger, tries, booked)

    def counts(self, ledger, tries, booked):
        by_name = {attempt.name: attempt for attempt in tries}
        self.assertEqual(ledger.execute("SELECT count(*) FROM attempts WHERE state=1").fetchone()[0], 0)
        doubts = [re.search(rb"crash-\d{12}", identity).group().decode() for (identity,) in
                  ledger.execute("SELECT identity FROM attempts WHERE state=2")]
        expected = collections.Counter()  # by address: what was done, and what may have been
        for name in booked.keys() | set(doubts):
            expected[socket.inet_aton(by_name[name].address)] += 1
        counted = collections.Counter()
        for key, count in ledger.execute("SELECT CAST(key AS BLOB), count(*) FROM writes GROUP BY key"):
            counted[key[-4:]] += count
        for name in doubts:
            counted[socket.inet_aton(by_name[name].address)] += 1
        self.assertEqual(counted, expected)
        self.assertLessEqual(max(counted.values()), PER_DAY)
        volume = ledger.execute("SELECT sum(written) FROM periods").fetchone()[0]
        self.assertEqual(volume + len(doubts), sum(expected.values()))


if __name__ == "__main__":
    unittest.main()
