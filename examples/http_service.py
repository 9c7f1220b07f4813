"""The HTTP side of the examples' upstream services: connections, bodies, routes, a clean stop.

A service is an object with a name, a latency, a bound for bodies, and two methods:

    handle_call(method, headers, target, body) -> (status, JSON body or None, more headers)
    error_body(refused) -> the JSON body of a `Refused`
"""

import json
import re
import signal
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Refused(Exception):
    """An answer other than success, raised from anywhere below a call."""

    def __init__(self, status, kind, message, headers=None):
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message
        self.headers = headers or {}


class Routes:
    """Paths with {parts}, and a function for each method of them."""

    def __init__(self, table):
        self._patterns = [(re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern)), methods)
                          for pattern, methods in table]

    def find(self, method, path):
        """The handler and the path's parts; HEAD is answered as GET."""
        for pattern, methods in self._patterns:
            match = pattern.fullmatch(path)
            if match:
                handler = methods.get("GET" if method == "HEAD" else method)
                if handler is None:
                    allowed = sorted({*methods, *(["HEAD"] if "GET" in methods else [])})
                    raise Refused(405, "method_not_allowed", "This path has no such method.",
                                  {"Allow": ", ".join(allowed)})
                return handler, match.groupdict()
        raise Refused(404, "not_found", "No such path.")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one write

    def setup(self):
        super().setup()
        self.server.opened(self.connection)

    def finish(self):
        self.server.closed(self.connection)
        super().finish()

    def version_string(self):
        return self.server.name

    def log_message(self, format, *values):  # the gateway keeps the access log
        pass

    def answer(self):
        try:
            body = self._read_body()
            time.sleep(self.server.latency)
            status, answer, headers = self.server.handle_call(self.command, self.headers, self.path, body)
        except Refused as refused:
            status, headers = refused.status, refused.headers
            answer = self.server.error_body(refused)
        self._send(status, answer, headers)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

    def _send(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        data = b""
        if body is not None:
            data = json.dumps(body).encode()
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
        if self.close_connection or self.server.stopping.is_set():
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _read_body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return self._read_chunks()
        length = self.headers.get("Content-Length", "0")
        if not re.fullmatch(r"\d{1,18}", length):
            raise self._broken(400, "The Content-Length is not a number.")
        return self._read_exactly(int(length), b"")

    def _read_chunks(self):
        body = b""
        while True:
            size = self.rfile.readline(128).split(b";")[0].strip()
            if not re.fullmatch(rb"[0-9a-fA-F]{1,8}", size):
                raise self._broken(400, "A chunk's size is not a number.")
            if int(size, 16) == 0:
                break
            body = self._read_exactly(int(size, 16), body)
            if self.rfile.readline(3).strip():
                raise self._broken(400, "A chunk is longer than it says.")
        while self.rfile.readline(8192).strip():
            pass  # trailers
        return body

    def _read_exactly(self, length, before):
        if len(before) + length > self.server.max_body_bytes:
            raise self._broken(413, f"The body may have {self.server.max_body_bytes} bytes.")
        data = self.rfile.read(length)
        if len(data) < length:
            raise self._broken(400, "The body ended early.")
        return before + data

    def _broken(self, status, message):
        """The rest of the connection can't be trusted: answer, then close."""
        self.close_connection = True
        return Refused(status, "too_large" if status == 413 else "invalid_request", message)


class Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 256

    def __init__(self, port, service):
        self.name, self.latency = service.name, service.latency
        self.handle_call, self.error_body = service.handle_call, service.error_body
        self.max_body_bytes = service.max_body_bytes
        self.stopping = threading.Event()
        self._open, self._open_lock = set(), threading.Lock()
        super().__init__(("127.0.0.1", port), Handler)

    def opened(self, connection):
        with self._open_lock:
            self._open.add(connection)

    def closed(self, connection):
        with self._open_lock:
            self._open.discard(connection)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def stop(self):
        """Accepts no more; what runs is answered, idle connections end."""
        self.stopping.set()
        self.shutdown()
        with self._open_lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RD)
                except OSError:
                    pass  # the client was faster


def run(port, service):
    """Serves until SIGTERM or SIGINT; says the port first."""
    try:
        server = Server(port, service)
    except OSError as error:
        sys.exit(f"{service.name}: cannot listen on 127.0.0.1:{port}: {error.strerror}")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=server.stop).start())
    print(f"{service.name}: listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever(poll_interval=0.05)
    server.server_close()
