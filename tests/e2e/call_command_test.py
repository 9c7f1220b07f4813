#!/usr/bin/env python3
"""`ration call` as scripts and people use it: exit codes, what is sent, what is written where."""

import contextlib
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
from harness import RATION


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

    def test_nor_is_one_that_nobody_reads(self):
        """A closed pipe, or a file that may not grow."""
        with Server(answer(200, "x" * 300_000)) as server:
            for arguments, code in ((("-d", "x"), 5), (("-d", "x", "--idempotency-key", "auto"), 4), ((), 4),
                                    (("-d", "x", "--stream"), 5), (("--stream",), 4)):
                child = subprocess.Popen(command(*arguments, server.url()), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                child.stdout.close()
                self.assertIn(b"the answer cannot be written", child.stderr.read(), arguments)
                child.stderr.close()
                self.assertEqual(child.wait(60), code, arguments)
            limited = ["sh", "-c", 'ulimit -f 1; exec "$@" > "$0"', pathlib.Path(tempfile.mkdtemp()) / "out"]
            done = subprocess.run([*limited, *command(server.url())], stderr=subprocess.PIPE, timeout=60)
            self.assertEqual(done.returncode, 4, done.stderr)

    def test_a_key_that_was_left_behind_resumes_nothing(self):
        """Redirects to another origin go without it, so what was sent there may have been done."""
        def slow(request, body):
            time.sleep(2)
            return 201, {}, "done"
        with Server(slow) as other, open("/dev/full", "w") as full:
            with Server(answer(307, "", Location=other.url())) as server:
                lost = subprocess.run(command("-d", "x", "--idempotency-key", "auto", server.url()), stdout=full,
                                      stderr=subprocess.PIPE, timeout=60)
                self.assertEqual(lost.returncode, 5, lost.stderr)
                self.assertNotIn(b"--idempotency-key", lost.stderr)
                for arguments, stdin in (((), None), (("--each", "-"), '{"url": "/", "method": "POST", "body": "x"}\n')):
                    child = subprocess.Popen(command(*(arguments or ("-d", "x")), "--idempotency-key", "auto", server.url()),
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                    if stdin:
                        child.stdin.write(stdin)
                    child.stdin.close()
                    child.stdin = None
                    before = len(other.seen)
                    while len(other.seen) == before:
                        time.sleep(0.01)
                    child.send_signal(signal.SIGINT)
                    out, errors = child.communicate(timeout=60)
                    self.assertEqual(child.returncode, 130, errors)
                    self.assertNotIn("--idempotency-key", errors)
                    if stdin:
                        self.assertEqual(json.loads(out)["state"], "unknown")

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
            shown = shown_on(ours)
            self.assertEqual((child.communicate()[0], child.wait()), (b"ok", 0))
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


if __name__ == "__main__":
    unittest.main()
