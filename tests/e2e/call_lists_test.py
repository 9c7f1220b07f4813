#!/usr/bin/env python3
"""Lists of jobs: `ration call --each`, its results, its pace, its resumption."""

import collections
import fcntl
import json
import os
import pathlib
import pty
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from call_world import Server, answer, call, command, error_body, shown_on


class Lists(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ration-each-"))
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", self.folder], check=True))
        self.jobs, self.results = self.folder / "jobs", self.folder / "results"

    def written(self):
        return [json.loads(line) for line in self.results.read_text().splitlines()]

    def test_a_second_interrupt_ends_it_whoever_does_not_read_on(self):
        with Server(answer(200, "x" * 20_000)) as server:
            for verbose in ((), ("-v",)):
                ours, theirs = pty.openpty()
                child = subprocess.Popen(command("--each", "-", *verbose, server.url()), stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=theirs)
                os.close(theirs)
                child.stdin.write(b"/a\n" * 200)
                child.stdin.close()
                before = -1
                while len(server.seen) != before:  # until the pipe is full
                    before = len(server.seen)
                    time.sleep(0.5)
                for _ in range(2):
                    child.send_signal(signal.SIGINT)
                    time.sleep(0.3)
                self.assertEqual(child.wait(60), 130)
                child.stdout.close()
                os.close(ours)

    def test_results_and_the_bar_on_one_terminal_are_on_lines_of_their_own(self):
        def slow(request, body):
            time.sleep(0.3)  # the bar is drawn ten times a second
            return 200, {}, "done"
        with Server(slow) as server:
            ours, theirs = pty.openpty()
            child = subprocess.Popen(command("--each", "-", "--parallel", "1", server.url()), stdin=subprocess.PIPE,
                                     stdout=theirs, stderr=theirs)
            child.stdin.write(b"/a\n/b\n/c\n")
            child.stdin.close()
            os.close(theirs)
            shown = shown_on(ours)
            self.assertEqual(child.wait(60), 0)
        lines = [line.rsplit(b"\x1b[K", 1)[-1] for line in shown.split(b"\r\n")]
        self.assertEqual([json.loads(line)["state"] for line in lines if b'"line"' in line], ["done"] * 3, shown)
        self.assertIn(b"[####", shown)

    def test_kinds_of_lines(self):
        self.jobs.write_text('\ufeff/a\n# a note\n\n{"url": "/b", "id": 7, "body": {"x": 1}, "headers": {"X-A": "2"}}\n'
                             '{"url": "/c", "method": "DELETE"}\n{"url": 1}\nnot json {\n{"other": 1}\n'
                             '["/d"]\n"/e"\n\t/f \r\n \t\nftp://x/\n')
        with Server(answer(200, "ok")) as server:
            code, body, errors = call("--each", str(self.jobs), "-H", "X-A: 1", "--parallel", "1", server.url("/base"))
        lines = [json.loads(line) for line in body.splitlines()]
        self.assertEqual([(line["line"], line["state"]) for line in lines],
                         [(1, "done"), (4, "done"), (5, "done"), (6, "failed"), (7, "failed"), (8, "failed"),
                          (9, "failed"), (10, "failed"), (11, "done"), (13, "failed")])
        self.assertEqual(lines[1]["id"], 7)
        self.assertEqual([(method, path, fields["X-A"]) for method, path, fields, _ in server.seen[:3]],
                         [("GET", "/a", "1"), ("POST", "/b", "2"), ("DELETE", "/c", "1")])
        self.assertEqual(code, 1)
        for wrong in ("6: url is no text", "7: neither a URL nor a JSON object", "9: neither", "13: no such URL"):
            self.assertIn(f"{self.jobs}:{wrong}", errors)
        self.assertIn("10 jobs: 4 done, 6 failed, 0 open; 4 sends", errors)
        code, _, errors = call("--each", str(self.jobs))
        self.assertIn(f"{self.jobs}:1: no such URL", errors)

    def test_the_lines_of_results(self):
        """The fields that the manual names, which of them are there when, and the head that only a file has."""
        always = {"line", "job", "state", "status", "reason", "attempts"}

        def script(request, _):
            if request.path == "/lost":
                return None, {}, ""
            if request.path == "/shut":
                return 429, {"Retry-After": "7200"}, error_body("rate_limited")
            return 200, {}, "x" * (65537 if request.path == "/large" else 2)
        self.jobs.write_text('/a\n{"url": "/large", "id": [1]}\n{"url": "/lost", "body": "b"}\nnot a job\n/shut\n')
        with Server(script) as server:
            arguments = ("--each", str(self.jobs), "--parallel", "1", server.url())
            _, body, _ = call(*arguments)
            call(*arguments, "--results", str(self.results))
            call(*arguments, "--results", str(self.results))
        head, *lines = self.written()
        self.assertEqual((list(head), type(head["run"])), (["run"], str))
        told = [json.loads(line) for line in body.splitlines()]
        self.assertEqual([set(line) for line in told], [set(line) for line in lines[:5]])
        self.assertEqual([set(line) - always for line in told],
                         [{"body"}, {"id"}, {"message", "body"}, {"message", "body"}, {"error_type", "retry_at", "body"}])
        self.assertEqual([(line["state"], line["status"], line["reason"], line["attempts"]) for line in told],
                         [("done", 200, "success", 1), ("done", 200, "success", 1), ("unknown", 0, "unsafe_method", 1),
                          ("failed", 0, "error_not_retryable", 0), ("open", 429, "server_wait_too_long", 1)])
        self.assertEqual([(line["line"], line["state"]) for line in lines[5:]], [(5, "open")], "once more")
        self.assertEqual((lines[5]["job"], len(lines[5]["job"])), (lines[4]["job"], 16))
        self.assertEqual(lines[1]["id"], [1])

    def test_the_pace_of_the_answers_is_kept(self):
        """A window of 20 a second, told by fields: the list is done with few refusals."""
        windows, lock = collections.Counter(), threading.Lock()

        def script(*_):
            now = int(time.time())
            with lock:
                windows[now] += 1
                used = windows[now]
            fields = {"X-RateLimit-Remaining": str(max(0, 20 - used)), "X-RateLimit-Reset": str(now + 1)}
            return (200, fields, "") if used <= 20 else (429, {**fields, "Retry-After": "1"}, "")
        self.jobs.write_text("".join(f"/job/{number}\n" for number in range(60)))
        with Server(script) as server:
            code, body, errors = call("--each", str(self.jobs), "--bucket", "origin", server.url())
        self.assertEqual(code, 0, errors)
        self.assertEqual(len(body.splitlines()), 60)
        self.assertIn("60 jobs: 60 done, 0 failed, 0 open", errors)
        refused = sum(max(0, used - 20) for used in windows.values())
        self.assertLessEqual(refused, len(windows), dict(windows))

    def test_an_interrupted_list_goes_on_where_it_was(self):
        self.jobs.write_text("".join(json.dumps({"url": "/job", "body": {"n": number}, "id": number}) + "\n"
                                     for number in range(40)))
        arguments = ("--each", str(self.jobs), "--results", str(self.results), "--idempotency-key", "auto",
                     "--rate", "50/s", "--parallel", "4")
        with Server(answer(201, "made")) as server:
            child = subprocess.Popen(command(*arguments, server.url()), stderr=subprocess.PIPE, text=True)
            while len(server.seen) < 5:
                time.sleep(0.01)
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=60)
            self.assertEqual(child.returncode, 130, errors)
            self.assertIn("to go on", errors)
            with self.results.open("a") as results:
                results.write('{"line": 39, "sta')  # as a crash leaves it
            first = len(server.seen)
            self.assertLess(first, 40)
            code, body, errors = call(*arguments, server.url())
            self.assertEqual((code, body), (0, ""), errors)
            self.assertIn("40 jobs: 40 done, 0 failed, 0 open (", errors)
            before = len(server.seen)
            code, _, errors = call(*arguments, server.url())
            self.assertEqual((code, len(server.seen)), (0, before), "nothing is left to do")
        keys = {json.loads(body)["n"]: set() for *_, body in server.seen}
        for *_, fields, body in server.seen:
            keys[json.loads(body)["n"]].add(fields["Idempotency-Key"])
        self.assertEqual(set(map(len, keys.values())), {1}, "a job has one key in all runs")
        self.assertEqual(len(keys), 40)

    def test_a_changed_job_is_another_call(self):
        arguments = ("--each", str(self.jobs), "--results", str(self.results), "--idempotency-key", "auto")
        with Server(lambda *_: (503, {}, "")) as server:
            for body in ({"n": 1}, {"n": 1}, {"n": 2}):
                self.jobs.write_text(json.dumps({"url": "/job", "body": body}) + "\n")
                self.assertEqual(call(*arguments, "--retries", "0", server.url())[0], 3)
            self.assertEqual(call(*arguments, "--retries", "0", server.url("/?other"))[0], 3)
        keys = [fields["Idempotency-Key"] for _, _, fields, _ in server.seen]
        self.assertEqual((keys[0] == keys[1], keys[1] == keys[2], keys[2] == keys[3]), (True, False, True), keys)

    def test_what_may_have_been_done_is_not_asked_again(self):
        """Without a key; a hung-up connection, and an interrupt while the answer is awaited."""
        asked = threading.Event()

        def script(request, _):
            if request.path == "/slow":
                asked.set()
                time.sleep(5)
            return (None if request.command == "POST" else 200), {}, ""
        self.jobs.write_text('/a\n{"url": "/lost", "body": {}}\n{"url": "/slow", "body": {}}\n')
        arguments = ("--each", str(self.jobs), "--results", str(self.results), "--parallel", "1")
        with Server(script) as server:
            child = subprocess.Popen(command(*arguments, server.url()), stderr=subprocess.PIPE, text=True)
            self.assertTrue(asked.wait(60))
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=60)
            self.assertEqual(child.returncode, 130, errors)
            self.assertIn("1 done, 0 failed, 0 open, 2 unknown", errors)
            seen = len(server.seen)
            code, _, errors = call(*arguments, server.url())
            self.assertEqual((code, len(server.seen)), (5, seen), errors)
            self.assertIn("2 unknown", errors)
        self.assertEqual([line.get("state") for line in self.written()], [None, "done", "unknown", "unknown"])

    def test_results_that_somebody_has_edited(self):
        self.jobs.write_text("/a\n/b\n")
        self.results.write_text('{"run": "r"}\n{"line": 1, "state": 5, "job": []}\n[1]\n{"line": "x"}\n\n')
        with Server(answer(200)) as server:
            arguments = ("--each", str(self.jobs), "--results", str(self.results), server.url())
            self.assertEqual((call(*arguments)[0], len(server.seen)), (0, 2))
            self.assertEqual((call(*arguments)[0], len(server.seen)), (0, 2))

    def test_one_run_at_a_time_has_the_results(self):
        self.jobs.write_text("/a\n")
        with Server(answer(200)) as server, self.results.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            arguments = ("--each", str(self.jobs), "--results", str(self.results), server.url())
            code, _, errors = call(*arguments)
            self.assertEqual((code, len(server.seen)), (2, 0))
            self.assertIn(f"{self.results}: another run", errors)
            fcntl.flock(held, fcntl.LOCK_UN)
            self.assertEqual((call(*arguments)[0], len(server.seen)), (0, 1))

    def test_results_go_to_no_device(self):
        self.jobs.write_text("/a\n")
        code, _, errors = call("--each", str(self.jobs), "--results", "/dev/full", "http://127.0.0.1:1/")
        self.assertEqual(code, 2)
        self.assertIn("/dev/full: is a pipe, a socket or a device", errors)

    def test_a_file_of_something_else_is_not_written_to(self):
        self.jobs.write_text("/a\n")
        self.results.write_text("precious\n")
        code, _, errors = call("--each", str(self.jobs), "--results", str(self.results), "http://127.0.0.1:1/")
        self.assertEqual(code, 2)
        self.assertIn(f"{self.results}:1: no results", errors)
        self.assertEqual(self.results.read_text(), "precious\n")

    def test_what_stays_limited_is_left_open(self):
        def script(request, _):
            if request.path == "/shut":
                return 429, {"Retry-After": "7200"}, error_body("daily_booking_limit")
            return 200, {}, ""
        self.jobs.write_text("/open\n/shut\n/open\n")
        with Server(script) as server:
            arguments = ("--each", str(self.jobs), "--results", str(self.results), "--parallel", "1", server.url())
            code, _, errors = call(*arguments)
            self.assertEqual(code, 3, errors)
            self.assertIn("3 jobs: 2 done, 0 failed, 1 open", errors)
            self.assertIn("try again from", errors)
            self.assertEqual([line.get("state") for line in self.written()], [None, "done", "open", "done"])
            server._server.script = lambda *_: (200, {}, "")
            self.assertEqual(call(*arguments)[0], 0)


if __name__ == "__main__":
    unittest.main()
