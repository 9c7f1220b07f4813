#!/usr/bin/env python3
"""`ration call` as scripts and people use it: exit codes, what is written where, lists of jobs."""

import collections
import contextlib
import fcntl
import http.server
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

from harness import RATION


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        status, fields, text = self.server.script(self, body)
        if status is None:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST = do_PUT = do_DELETE = _answer

    def log_message(self, *_):
        pass


class Server:
    """Answers with what `script(request, body)` gives: (status, fields, text); status None hangs up."""

    def __init__(self, script):
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.script = self._noted(script)
        self.seen, self._lock = [], threading.Lock()
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _noted(self, script):
        def run(request, body):
            with self._lock:
                self.seen.append((request.command, request.path, dict(request.headers), body))
            return script(request, body)
        return run

    def url(self, path="/"):
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    @property
    def port(self):
        return self._server.server_port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def command(*arguments):
    return [RATION, "call", "--proxy", "", *arguments]


def call(*arguments, stdin=None):
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=300, input=stdin or "")
    return done.returncode, done.stdout, done.stderr


def answer(status, text="", **fields):
    return lambda request, body: (status, {name.replace("_", "-"): value for name, value in fields.items()}, text)


def error_body(kind):
    return json.dumps({"error": {"type": kind}})


class ExitCodes(unittest.TestCase):
    def test_answers(self):
        cases = [(answer(200, "yes"), 0, ""), (answer(304), 0, ""), (answer(404, "no"), 1, "404"),
                 (answer(500), 1, "500"), (answer(402, error_body("plan_quota")), 1, "402 plan_quota"),
                 (answer(429, error_body("booking_volume_refused")), 1, "type_never_retry"),
                 (answer(429, error_body("rate_limited"), Retry_After="3600"), 3, "try again from"),
                 (answer(503), 3, "503 (attempts_exhausted)")]
        for script, code, said in cases:
            with self.subTest(said=said), Server(script) as server:
                got, body, errors = call("--retries", "0", server.url())
                self.assertEqual(got, code, errors)
                self.assertIn(said, errors)
                self.assertEqual(errors == "", code == 0, "nothing is said of what went well")
                self.assertEqual(body, script(None, None)[2])

    def test_redirects_that_are_not_followed(self):
        """The answer is given, and the code says that waiting does not change it; other 3xx answers are good."""
        def script(request, _):
            status, place = request.path.split("/")[1:3]
            fields = {} if place == "none" else {"Location": request.path if place == "loop" else "/200/none"}
            return int(status), fields, "" if status == "304" else "x"
        get, post = (), ("-d", "a")
        cases = [(get, "303/on", 0, ""), (post, "303/on", 1, "303 (redirect_would_change_method)"),
                 (post, "301/on", 1, "redirect_would_change_method"), (post, "302/on", 1, "redirect_would_change_method"),
                 (("-X", "PUT", "-d", "a"), "303/on", 1, "redirect_would_change_method"),
                 (("-X", "PUT", "-d", "a"), "302/on", 0, ""), (post, "307/on", 0, ""), (post, "308/on", 0, ""),
                 ((*post, "--follow-to-get"), "303/on", 0, ""),
                 *((get, f"{status}/loop", 1, f"{status} (too_many_redirects)") for status in (301, 302, 303, 307, 308)),
                 *((get, f"{status}/none", 1, f"{status} (bad_location)") for status in (301, 302, 303, 307, 308)),
                 (get, "300/none", 0, ""), (get, "300/on", 0, ""), (get, "304/none", 0, "")]
        with Server(script) as server:
            for options, path, code, said in cases:
                with self.subTest(options=options, path=path):
                    before = len(server.seen)
                    got, body, errors = call(*options, server.url(f"/{path}"))
                    self.assertEqual(got, code, errors)
                    self.assertIn(said, errors)
                    self.assertEqual(body, "" if path.startswith("304") else "x")
                    self.assertEqual(len(server.seen) - before, 6 if path.endswith("loop") else
                                     2 if code == 0 and path.startswith("30") and path.endswith("on") and
                                     not path.startswith("300") else 1)

    def test_no_answer(self):
        def hang_up(*_):
            return None, {}, ""
        with Server(hang_up) as server:
            self.assertEqual(call("--retries", "1", server.url())[0], 4)
            code, _, errors = call("-d", "x", server.url())
            self.assertEqual(code, 5, errors)
            self.assertEqual(len(server.seen), 3)
            # A made key is told, so that the call can be resumed.
            code, _, errors = call("-d", "x", "--retries", "0", "--idempotency-key", "auto", server.url())
            self.assertEqual(code, 4)
            self.assertIn(server.seen[-1][2]["Idempotency-Key"], errors)
        self.assertEqual(call("--retries", "0", server.url())[0], 4)

    def test_no_answer_that_can_be_read(self):
        """A request without a key that the server took in may have been carried out, whatever came back."""
        def not_http(request, _):
            request.wfile.write(b"SSH-2.0-server\r\n")
            return None, {}, ""

        def too_large(request, _):
            request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
            with contextlib.suppress(OSError):
                while True:
                    request.wfile.write(b"x" * 65536)
            return None, {}, ""
        for script in (not_http, too_large):
            with self.subTest(script=script.__name__), Server(script) as server:
                self.assertEqual(call("-d", "x", server.url())[0], 5)
                self.assertEqual(call("-d", "x", "--idempotency-key", "auto", server.url())[0], 4)
                self.assertEqual(call(server.url())[0], 4)

    def test_an_answer_that_cannot_be_written_is_none(self):
        with Server(answer(200, "x")) as server, open("/dev/full", "w") as full:
            def code(*arguments):
                return subprocess.run(command(*arguments, server.url()), stdout=full, stderr=subprocess.PIPE, timeout=60)
            self.assertEqual(code("-d", "x").returncode, 5)
            keyed = code("-d", "x", "--idempotency-key", "auto")
            self.assertEqual(keyed.returncode, 4)
            self.assertIn(b"the answer cannot be written", keyed.stderr)
            self.assertIn(b"--idempotency-key", keyed.stderr)
            self.assertEqual(code().returncode, 4)

    def test_nor_is_a_result_that_cannot_be_written(self):
        with Server(answer(201, "x")) as server, open("/dev/full", "w") as full:
            def run(*arguments):
                done = subprocess.run(command("--each", "-", *arguments, server.url()), stdout=full, stderr=subprocess.PIPE,
                                      input=b'{"method": "POST", "url": "/a", "body": {}}\n' * 3, timeout=60)
                self.assertIn(b"results cannot be written", done.stderr)
                return done.returncode
            self.assertEqual(run("--parallel", "1"), 5)
            self.assertEqual(len(server.seen), 1, "no more than one is done that nobody hears of")
            self.assertEqual(run("--parallel", "1", "--idempotency-key", "auto"), 4)

    def test_what_waiting_does_not_change_has_no_moment(self):
        for status, body in ((429, error_body("booking_volume_refused")), (404, "")):
            with Server(answer(status, body, Retry_After="1")) as server:
                code, _, errors = call("-d", "x", "--idempotency-key", "auto", server.url())
                self.assertEqual((code, len(server.seen)), (1, 1))
                self.assertNotIn("try again", errors)
                code, out, errors = call("--each", "-", server.url(), stdin="/a\n")
                self.assertEqual(code, 1, errors)
                self.assertNotIn("retry_at", out)
                self.assertNotIn("try again", errors)

    def test_wrong_use(self):
        for arguments in ([], ["nonsense"], ["ftp://127.0.0.1/"], ["http://u:p@127.0.0.1/"],
                          ["--max-wait", "soon", "http://127.0.0.1:1/"], ["-H", "no colon", "http://127.0.0.1:1/"],
                          ["-H", "Bad Name: x", "http://127.0.0.1:1/"], ["-d", "@/no/such", "http://127.0.0.1:1/"],
                          ["--rate", "60", "http://127.0.0.1:1/"], ["--rate", "0/min", "http://127.0.0.1:1/"],
                          ["--parallel", "0", "http://127.0.0.1:1/"], ["--parallel", "257", "http://127.0.0.1:1/"],
                          ["--retries", "010", "http://127.0.0.1:1/"], ["--retries", "0x10", "http://127.0.0.1:1/"],
                          ["--retries", "1e1", "http://127.0.0.1:1/"],
                          ["--each", "/no/such"], ["--results", "x", "http://127.0.0.1:1/"], ["--no-such-option"],
                          ["-d", "@/", "http://127.0.0.1:1/"], ["--each", "/", "http://127.0.0.1:1/"],
                          ["--deadline", "0s", "http://127.0.0.1:1/"], ["--timeout", "0s", "http://127.0.0.1:1/"],
                          ["--retry-status", "99999", "http://127.0.0.1:1/"],
                          ["--retry-status", "200", "http://127.0.0.1:1/"],
                          ["-X", "HEAD", "-d", "x", "http://127.0.0.1:1/"], ["-i", "--stream", "http://127.0.0.1:1/"],
                          ["--each", "-", "-d", "@-", "http://127.0.0.1:1/"],
                          ["--each", "-", "-o", "/dev/null", "http://127.0.0.1:1/"],
                          ["--each", "-", "-i", "http://127.0.0.1:1/"],
                          ["--each", "-", "--idempotency-key", "one", "http://127.0.0.1:1/"],
                          ["--burst", "2", "http://127.0.0.1:1/"], ["--parallel", "2", "http://127.0.0.1:1/"]):
            with self.subTest(arguments=arguments):
                code, _, errors = call(*arguments)
                self.assertEqual(code, 2, errors)
                self.assertTrue(errors)


class WhatIsSentAndWritten(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ration-call-"))
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", self.folder], check=True))

    def test_requests(self):
        (self.folder / "body.json").write_text('{"a": 1}')
        with Server(answer(200, "ok")) as server:
            call("-X", "PUT", "-d", f"@{self.folder}/body.json", "-H", "X-Note: a: b", server.url("/p?q=1"))
            call("-d", "a=b", server.url())
            call("-d", "@-", "-H", "Content-Type: text/csv", server.url(), stdin="1,2\n")
            call("-X", "DELETE", server.url())
            call("-d", "", server.url())
        (put, form, piped, delete, empty) = server.seen
        self.assertEqual((empty[0], empty[2]["Content-Length"]), ("POST", "0"))
        self.assertEqual((put[0], put[1], put[3], put[2]["Content-Type"], put[2]["X-Note"]),
                         ("PUT", "/p?q=1", '{"a": 1}', "application/json", "a: b"))
        self.assertEqual((form[0], form[2]["Content-Type"]), ("POST", "application/x-www-form-urlencoded"))
        self.assertEqual((piped[3], piped[2]["Content-Type"]), ("1,2\n", "text/csv"))
        self.assertEqual(delete[0], "DELETE")

    def test_options_that_take_lists_leave_the_url_alone(self):
        def script(request, _):
            busy.append(request.path)
            return (409, {}, error_body("still_running")) if len(busy) % 4 == 1 else \
                (502 if len(busy) % 4 in (2, 3) else 200, {}, "")
        busy = []
        with Server(script) as server:
            code, _, errors = call("--retry-status", "502,504", "--retry-type", "still_running", server.url())
            self.assertEqual((code, len(busy)), (0, 4), errors)
            code, _, errors = call("--retry-type", "a", "--retry-type", "still_running", "--retry-status", "502",
                                   server.url())
            self.assertEqual((code, len(busy)), (0, 8), errors)

    def test_a_terminal_is_shown_text_and_told_nothing(self):
        evil = "\x1b]0;owned\x07\nration call: all is well\x9b2J\u202e"
        with Server(answer(429, error_body(evil), Retry_After="3600", X_RateLimit_Remaining="\x1b[31m5")) as server:
            code, _, errors = call("-v", server.url())
        self.assertEqual(code, 3)
        self.assertIn(r"429 \x1b]0;owned\x07\x0aration call: all is well\xc2\x9b2J", errors)
        self.assertIn(r"x-ratelimit-remaining: \x1b[31m5", errors)
        self.assertEqual([c for c in errors if ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160], [])
        self.assertEqual(errors.count("\n"), 4, errors)

    def test_output(self):
        with Server(answer(200, "body", X_Note="n")) as server:
            code, body, _ = call("-o", f"{self.folder}/out", server.url())
            self.assertEqual((code, body, (self.folder / "out").read_text()), (0, "", "body"))
            _, body, _ = call("-i", server.url())
            self.assertTrue(body.startswith("HTTP 200\n") and "X-Note: n\n" in body and body.endswith("\n\nbody"))
            self.assertEqual(call("--stream", server.url())[1], "body")
            self.assertEqual(call("-o", "/no/such/folder/file", server.url())[0], 2)

    def test_a_proxy_is_asked(self):
        with Server(answer(200, "by proxy")) as proxy:
            done = subprocess.run([RATION, "call", "--proxy", f"http://127.0.0.1:{proxy.port}",
                                   "http://api.example/v1/thing"], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.stdout, proxy.seen[0][1]), ("by proxy", "http://api.example/v1/thing"))

    def refusing_once(self):
        refused = []

        def script(request, _):
            if request.path in refused:
                return 200, {}, "ok"
            refused.append(request.path)
            return 429, {"Retry-After": "1"}, error_body("rate_limited")
        return script

    def test_the_timeline_is_told_when_asked_for_and_keeps_secrets(self):
        with Server(self.refusing_once()) as server:
            code, body, errors = call("-v", "-X", "PUT", "-H", "Authorization: Bearer secret-token",
                                      "--idempotency-key", "secret-key", server.url("/a"))
            self.assertEqual((code, body), (0, "ok"))
            for said in ("send 1: PUT", "answer 429 rate_limited; retry-after: 1", "wait 1.",
                         "the server asked for it (Retry-After) after 429", "send 2: PUT", "end: 200 after 2 attempts"):
                self.assertIn(said, errors)
            self.assertNotIn("secret", errors)

    def test_no_value_of_a_query_is_shown(self):
        """In the timeline, of redirects too, and in what is said of a URL that cannot be asked."""
        def script(request, _):
            return (307, {"Location": "/next?sig=s3cret#s3cret"}, "") if request.path.startswith("/a") else (404, {}, "")
        with Server(script) as server:
            _, _, errors = call("-v", server.url("/a?access_token=s3cret&empty=&s3cret&page=s3cret=s3cret#s3cret"))
            self.assertIn(f"GET {server.url('/a?access_token=…&empty=…&…&page=…')}", errors)
            self.assertIn("sig=s3cret", server.seen[1][1])
            self.assertNotIn("s3cret", errors)
        for arguments in (["-v", "http://u:s3cret@127.0.0.1:1/"], ["ftp://u:s3cret@127.0.0.1/?k=s3cret"],
                          ["http://127.0.0.1:1/?k=s3cret", "http://127.0.0.1:2/b?k=s3cret"], ["-H", "Bearer s3cret", "http://127.0.0.1:1/"],
                          ["-v", "--retries", "0", "--proxy", "http://u:s3cret@127.0.0.1:1", "http://127.0.0.1:1/?k=s3cret"],
                          ["-v", "--retries", "0", "http://127.0.0.1:1/x%zz?k=s3cret"], ["http://127.0.0.1:99999/?k=s3cret"],
                          ["--each", "-", "http://127.0.0.1:1/"]):
            with self.subTest(arguments=arguments):
                code, _, errors = call(*arguments, stdin="ftp://127.0.0.1/?k=s3cret\nhttp://u:s3cret@127.0.0.1/?k=s3cret\n")
                self.assertNotEqual(code, 0)
                self.assertTrue(errors)
                self.assertNotIn("s3cret", errors)

    def test_a_live_line_on_a_terminal_and_none_in_a_pipe(self):
        with Server(self.refusing_once()) as server:
            self.assertEqual(call(server.url("/piped"))[2], "")
            ours, theirs = pty.openpty()
            child = subprocess.Popen(command(server.url("/shown")), stdout=subprocess.PIPE, stderr=theirs)
            os.close(theirs)
            shown = b""
            try:
                while chunk := os.read(ours, 4096):
                    shown += chunk
            except OSError:
                pass  # the terminal's other end is closed
            self.assertEqual((child.communicate()[0], child.wait()), (b"ok", 0))
            os.close(ours)
            self.assertIn(b"waiting", shown)
            self.assertIn(b"the server asked for it (Retry-After) after 429", shown)
            self.assertTrue(shown.endswith(b"\r\x1b[K"), "the line is taken away")

    def test_an_interrupt_ends_a_wait(self):
        with Server(answer(429, "", Retry_After="50")) as server:
            child = subprocess.Popen(command(server.url()), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while not server.seen:
                time.sleep(0.01)
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=40)
            self.assertEqual(child.returncode, 130, errors)

    def test_a_key_that_stayed_behind_makes_nothing_safe(self):
        with Server(lambda request, body: (None, {}, "")) as other:
            with Server(answer(307, "", Location=other.url())) as server:
                done = subprocess.run(command("-d", "x", "--idempotency-key", "k", server.url()), capture_output=True, text=True,
                                      timeout=60)
                self.assertEqual((done.returncode, len(other.seen)), (5, 1), done.stderr)

    def test_an_interrupt_while_it_is_asked_does_not_say_that_nothing_was_sent(self):
        silent = threading.Event()
        with Server(lambda request, body: (200, {}, "late") if silent.wait(60) else None) as server:
            child = subprocess.Popen(command("-d", "x", "--idempotency-key", "auto", server.url()), stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
            while not server.seen:
                time.sleep(0.01)
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=40)
            silent.set()
        self.assertEqual(child.returncode, 130, errors)
        self.assertIn("may have been carried out", errors)
        self.assertIn(f"--idempotency-key {server.seen[0][2]['Idempotency-Key']}", errors)

    def test_an_interrupt_ends_the_writing_of_an_answer(self):
        with Server(answer(200, "x" * 4_000_000)) as server:
            child = subprocess.Popen(command(server.url()), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.assertEqual(child.stdout.read(1), b"x")  # the answer is there, and fills the pipe
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(timeout=60), -signal.SIGINT)
            child.stdout.close()


class Lists(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ration-each-"))
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", self.folder], check=True))
        self.jobs, self.results = self.folder / "jobs", self.folder / "results"

    def written(self):
        return [json.loads(line) for line in self.results.read_text().splitlines()]

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
