"""`ration call` and servers that answer it as a test says."""

import contextlib
import http.server
import json
import os
import subprocess
import threading

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
        with contextlib.suppress(BrokenPipeError):  # an interrupted call is gone
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


def shown_on(terminal):
    """All that comes of a terminal until its other end is closed; closes it."""
    shown = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(terminal, 4096):
            shown += chunk
    os.close(terminal)
    return shown
