#!/usr/bin/env python3
"""The durable ledger as its operator meets it: files that are refused, doubts, `ration ledger`."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import unittest

from harness import RATION, ROOT, Process, Service, accepts, free_port, new_address, wait_for
from readme_test import console_steps, pattern_of

TOKEN = "an-admin-token-of-some-length"


def ration(*arguments, **more):
    return subprocess.run([RATION, *arguments], capture_output=True, text=True, timeout=60, **more)


def booking(slot):
    return {"slot": f"2026-12-01T{slot:02}:00", "customer": {"name": "Ana", "email": "ana@example.com"}}


def crash_in_a_create(service, key, address):
    """The gateway dies while the upstream has a create: what became of it, nobody knows."""
    os.kill(service.upstream.child.pid, signal.SIGSTOP)
    try:
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
        connection.request("POST", "/v1/bookings", body=json.dumps(booking(9)),
                           headers={"Authorization": "Bearer pk_demo_lisbon", "X-Forwarded-For": address,
                                    "Content-Type": "application/json", "Idempotency-Key": key})
        wait_for(lambda: service.admin("/v1/ledger").json()["running"] == 1, "the create is under way")
        service.restart(kill=True)
        connection.close()
    finally:
        os.kill(service.upstream.child.pid, signal.SIGCONT)


class Files(unittest.TestCase):
    """What is no ledger is refused at start, with the reason, and stays as it was."""

    def refused(self, spoil):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name in ("policy.yaml", "directory.yaml"):
                shutil.copy(ROOT / "examples" / "booking" / name, folder / name)
            (folder / "serve.yaml").write_text(
                "policy: policy.yaml\ndirectory: directory.yaml\nupstream: http://127.0.0.1:1\n"
                "listeners: 127.0.0.1:0\nadmin: off\nledger: ledger.db\n")
            ledger = folder / "ledger.db"
            spoil(ledger)
            before = ledger.read_bytes()
            done = ration("serve", str(folder / "serve.yaml"))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(str(ledger), done.stderr)
            self.assertEqual(ledger.read_bytes(), before)
            return done.stderr

    def make_ledger(self, path):
        """A ledger that holds something, closed."""
        with Service() as service:
            for _ in range(3):
                service.ask("POST", "/v1/bookings", key="sk_demo_lisbon", body=booking(9))
            service.gateway.end()
            shutil.copy(service.folder / "ledger.db", path)

    def test_text(self):
        self.assertIn("not a ledger", self.refused(lambda path: path.write_text("Dear diary,\n" * 99)))

    def test_another_programs_database(self):
        def spoil(path):
            with contextlib.closing(sqlite3.connect(path)) as database:
                database.execute("CREATE TABLE notes(text)")
                database.commit()
        self.assertIn("a database of another program", self.refused(spoil))

    def test_torn(self):
        def spoil(path):
            self.make_ledger(path)
            os.truncate(path, path.stat().st_size // 2)
        self.assertIn("damaged", self.refused(spoil))

    def test_overwritten_in_the_middle(self):
        def spoil(path):
            self.make_ledger(path)
            with open(path, "r+b") as file:
                file.seek(4096)
                file.write(b"\xff" * 8192)
        self.assertIn("damaged", self.refused(spoil))

    def test_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            done = ration("ledger", "check", folder)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(folder, done.stderr)

    def test_of_a_newer_version(self):
        def spoil(path):
            self.make_ledger(path)
            with contextlib.closing(sqlite3.connect(path)) as database:
                database.execute("PRAGMA user_version=99")
                database.commit()
        self.assertIn("newer", self.refused(spoil))


class Check(unittest.TestCase):
    def test_a_ledger_in_use_names_its_holder(self):
        with Service() as service:
            ledger = str(service.folder / "ledger.db")
            done = ration("ledger", "check", ledger)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"in use by process {service.gateway.child.pid}", done.stderr)
            service.gateway.end()
            done = ration("ledger", "check", ledger)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "good\n", ""))
            done = ration("ledger", "check", "--json", ledger)
            self.assertEqual(json.loads(done.stdout), {"file": ledger, "good": True, "findings": []})
            with contextlib.closing(sqlite3.connect(ledger)) as database:
                database.execute("INSERT INTO periods VALUES('k', 10, 5, 1)")
                database.commit()
            done = ration("ledger", "check", ledger)
            self.assertEqual(done.returncode, 1)
            self.assertIn("1 billing periods out of range", done.stderr)
            done = ration("ledger", "check", "--json", ledger)
            self.assertEqual(done.returncode, 1)
            self.assertFalse(json.loads(done.stdout)["good"])

    def test_what_is_not_there(self):
        done = ration("ledger", "check", "/nowhere/ledger.db")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nowhere/ledger.db: unable to open database file", done.stderr)
        self.assertEqual(ration("ledger").returncode, 2)
        self.assertEqual(ration("ledger", "check").returncode, 2)


class Doubts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = cls.enterClassContext(Service())
        cls.address = new_address()
        crash_in_a_create(cls.service, "order-17", cls.address)

    def test_1_the_manual(self):
        """docs/operating.md's commands, and what it shows of their answers."""
        text = (ROOT / "docs" / "operating.md").read_text()
        text = text[text.index("\n## The ledger\n"):]
        steps = console_steps(text[:text.index("\n## ", 1)])
        self.assertGreaterEqual(len(steps), 6)
        environment = dict(os.environ, PATH=f"{pathlib.Path(RATION).parent}:{os.environ['PATH']}")
        for command, expected in steps:
            command = re.sub(r"\b8081\b", str(self.service.admin_port), command)
            if command.startswith("ration ledger") and "check" not in command:
                command += f" --admin http://127.0.0.1:{self.service.admin_port}"
            done = subprocess.run(["bash", "-c", command], cwd=self.service.folder, text=True,
                                  capture_output=True, timeout=60, env=environment)
            printed = done.stdout + done.stderr
            self.assertRegex(printed, f"^{pattern_of(expected)}$", command)

    def test_2_by_command(self):
        crash_in_a_create(self.service, "order-18", self.address)
        admin = ("--admin", f"http://127.0.0.1:{self.service.admin_port}")
        listed = json.loads(ration("ledger", "doubts", "--json", *admin).stdout)["doubts"]
        self.assertEqual([doubt["key"]["key"] for doubt in listed], ["order-18"])
        attempt = str(listed[0]["attempt"])
        shown = ration("ledger", "doubts", *admin).stdout
        self.assertIn(f"{attempt}  started ", shown)
        self.assertIn("key order-18 (publishable, workspace=ws_lisbon)", shown)
        self.assertIn(f"daily bookings (workspace=ws_lisbon, address={self.address})", shown)
        stats = ration("ledger", "stats", *admin)
        self.assertEqual(stats.returncode, 0)
        self.assertIn("in_doubt 1\n", stats.stdout)
        self.assertEqual(ration("ledger", "settle", attempt, *admin).returncode, 2)
        settled = ration("ledger", "settle", attempt, "--not-written", *admin)
        self.assertEqual((settled.returncode, settled.stdout),
                         (0, f"attempt {attempt} is settled as not written\n"))
        again = ration("ledger", "settle", attempt, "--not-written", *admin)
        self.assertEqual(again.stdout, f"attempt {attempt} is settled as not written, as it was before\n")
        other = ration("ledger", "settle", attempt, "--written", *admin)
        self.assertEqual((other.returncode, other.stdout), (1, ""))
        self.assertIn("is settled as not written", other.stderr)
        unknown = ration("ledger", "settle", "999999999", "--written", *admin)
        self.assertEqual(unknown.returncode, 1)

    def test_3_quotas_by_command(self):
        admin = ("--admin", f"http://127.0.0.1:{self.service.admin_port}")
        stated = ration("ledger", "quota", "workspaces", "account=acc_one", "--objects", "-", *admin,
                        input="ws_lisbon\nws_newyork\n")
        self.assertEqual((stated.returncode, stated.stdout),
                         (0, "workspaces (account=acc_one): 2 of 5\nws_lisbon\nws_newyork\n"))
        shown = ration("ledger", "quota", "workspaces", "account=acc_one", *admin)
        self.assertEqual(shown.stdout, stated.stdout)
        self.assertEqual(ration("ledger", "quota", "workspaces", "account=acc_9", *admin).returncode, 1)
        self.assertEqual(ration("ledger", "quota", "workspaces", "acc_one", *admin).returncode, 2)

    def test_4_nobody_there(self):
        done = ration("ledger", "stats", "--admin", "http://127.0.0.1:1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("127.0.0.1:1", done.stderr)


class FullDisk(unittest.TestCase):
    """A limit on the size of the process's files stands for a disk that is full."""

    def limit_files(self, service, size):
        resource.prlimit(service.gateway.child.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def create(self, service, key, slot):
        return service.ask("POST", "/v1/bookings", key="sk_demo_lisbon", body=booking(slot),
                           headers={"Idempotency-Key": key})

    def test_creates_are_refused_until_there_is_room_and_the_rest_goes_on(self):
        with Service(settings={"access_log: stdout": "access_log: off"}) as service:
            self.assertEqual(self.create(service, "before", 9).status, 201)
            self.limit_files(service, (service.folder / "ledger.db-wal").stat().st_size)
            refused = self.create(service, "during", 10)
            self.assertEqual((refused.status, refused.error_type()), (503, "ledger_unavailable"))
            self.assertEqual(refused.headers["Retry-After"], "1")
            quote = service.ask("GET", "/v1/quote", key="sk_demo_lisbon")
            self.assertEqual(quote.status, 200)
            ready = service.admin("/readyz")
            self.assertEqual((ready.status, ready.json()["ledger"]), (200, "gives no answer"))
            wait_for(lambda: "the ledger cannot be written" in service.gateway.error_text(), "a line in the log")
            self.limit_files(service, resource.RLIM_INFINITY)
            wait_for(lambda: "the ledger is written again" in service.gateway.error_text(), "recovery by itself")
            self.assertEqual(service.admin("/readyz").json()["ledger"], "answers")
            self.assertEqual(self.create(service, "during", 10).status, 201)
            replay = self.create(service, "before", 9)
            self.assertEqual((replay.status, replay.headers["Idempotent-Replayed"]), (201, "true"))
            self.assertEqual(service.gateway.error_text().count("the ledger cannot be written"), 1)

    def test_a_create_under_way_gets_its_answer_and_is_in_doubt(self):
        with Service(settings={"access_log: stdout": "access_log: access.jsonl"}) as service:
            os.kill(service.upstream.child.pid, signal.SIGSTOP)
            answers = []
            caller = threading.Thread(target=lambda: answers.append(self.create(service, "k", 9)))
            caller.start()
            wait_for(lambda: service.admin("/v1/ledger").json()["running"] == 1, "the create is under way")
            self.limit_files(service, (service.folder / "ledger.db-wal").stat().st_size)
            os.kill(service.upstream.child.pid, signal.SIGCONT)
            caller.join()
            self.assertEqual(answers[0].status, 201)
            self.assertIsNone(answers[0].headers["Idempotent-Replayed"])
            self.limit_files(service, resource.RLIM_INFINITY)
            wait_for(lambda: "the ledger is written again; 1 attempts are in doubt"
                     in service.gateway.error_text(), "recovery by itself")
            wait_for(lambda: "the outcome could not be written down"
                     in (service.folder / "access.jsonl").read_text(), "the access log says so")
            # The retry is forwarded with its key, and the booking API knows the key.
            again = self.create(service, "k", 9)
            self.assertEqual((again.status, again.json()["id"]), (201, answers[0].json()["id"]))
            self.assertEqual(self.create(service, "k", 9).headers["Idempotent-Replayed"], "true")


class Tokens(unittest.TestCase):
    def test_the_token_comes_from_a_file_or_the_environment(self):
        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            for name in ("policy.yaml", "directory.yaml"):
                shutil.copy(ROOT / "examples" / "booking" / name, folder / name)
            port, file = free_port(), folder / "token"
            file.write_text(TOKEN + "\n")
            (folder / "serve.yaml").write_text(
                "policy: policy.yaml\ndirectory: directory.yaml\nupstream: http://127.0.0.1:1\n"
                "listeners: 127.0.0.1:0\nledger: ledger.db\n"
                f"admin: {{listen: '127.0.0.1:{port}', token_file: token}}\n")
            server = Process([RATION, "serve", str(folder / "serve.yaml")], folder, "gateway")
            stack.callback(server.end)
            wait_for(lambda: accepts(port), "the admin listener")
            admin = ("--admin", f"http://127.0.0.1:{port}")
            refused = ration("ledger", "stats", *admin)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("token", refused.stderr)
            self.assertEqual(ration("ledger", "stats", *admin, "--token-file", str(file)).returncode, 0)
            environment = dict(os.environ, MINE=TOKEN)
            named = ration("ledger", "stats", *admin, "--token-env", "MINE", env=environment)
            self.assertEqual(named.returncode, 0, named.stderr)
            self.assertEqual(ration("ledger", "stats", *admin, "--token-env", "NOBODYS").returncode, 2)


if __name__ == "__main__":
    unittest.main()
