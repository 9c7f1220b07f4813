"""Starts tests/clients/hostile_server.py of this repository, and asks it through each of the adapters."""

import asyncio
import contextlib
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from typing import Any, NamedTuple, Optional

import httpx
import requests

import ration_client.httpx
import ration_client.requests

PROGRAM = os.environ.get("RATION_HOSTILE_SERVER", str(
    pathlib.Path(__file__).resolve().parents[3] / "tests" / "clients" / "hostile_server.py"))


def reply(status, headers=None, body=""):
    fields = "".join(f"{name}: {value}\n" for name, value in (headers or {}).items())
    return f"HTTP/1.1 {status} Told\n{fields}Content-Length: {len(body)}\n\n{body}"


class HostileServer:
    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="ration-hostile-")
        self.certificate = str(pathlib.Path(self._folder.name, "cert.pem"))
        key = str(pathlib.Path(self._folder.name, "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2",
                        "-out", self.certificate, "-keyout", key], check=True, stderr=subprocess.DEVNULL)
        self._child = subprocess.Popen([sys.executable, "-B", PROGRAM, "--certificate", self.certificate, "--key", key],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ports = json.loads(self._child.stdout.readline())
        self.origin, self._names = f"http://localhost:{self.ports['http']}", 0

    def stop(self):
        self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()
        self._folder.cleanup()

    def script(self, *steps, skew_s=0, listener="http"):
        self._names += 1
        name = f"s{self._names}"
        given = {"name": name, "skew_s": skew_s,
                 "steps": [{"reply": step} if isinstance(step, str) else step for step in steps]}
        request = urllib.request.Request(f"{self.origin}/script", json.dumps(given).encode(), method="POST")
        urllib.request.urlopen(request).close()
        scheme = "https" if listener == "https" else "http"
        return Script(self, name, f"{scheme}://localhost:{self.ports[listener]}/{name}")


class Script:
    def __init__(self, server, name, url):
        self._server, self._name, self.url = server, name, url

    def log(self):
        with urllib.request.urlopen(f"{self._server.origin}/log/{self._name}") as answer:
            return json.load(answer)


def field(entry, name):
    return next((value for header, value in entry["headers"] if header.lower() == name), None)


class Result(NamedTuple):
    """What came of one call, whatever the library: `status` and `text`, or `error`; and `info`."""

    status: Optional[int]
    text: Optional[str]
    info: Any
    error: Optional[Exception] = None

    @classmethod
    def of(cls, answer):
        info = answer.ration if isinstance(answer, requests.Response) else answer.extensions["ration"]
        return cls(answer.status_code, answer.text, info)

    @classmethod
    def of_error(cls, error):
        return cls(None, None, getattr(error, "ration", None), error)


class Listener:
    """Deals with each connection as `serve` says."""

    def __init__(self):
        self.connections, self._open = 0, []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with contextlib.suppress(OSError):
            self.serve(connection)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        for connection in [self._listener, *self._open]:
            connection.close()


class Handshake(Listener):
    """Takes the first message of a TLS handshake and ends the connection."""

    def __init__(self, end):
        self._end = end
        super().__init__()

    def serve(self, connection):
        connection.recv(65536)
        if self._end == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


class SlowReader(Listener):
    """Takes a hundred bytes of a body ten times a second."""

    def serve(self, connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        while connection.recv(100):
            time.sleep(0.1)


class Httpx:
    name = "httpx"
    pieces = staticmethod(iter)

    @staticmethod
    def client():
        return httpx.Client(transport=ration_client.httpx.Transport(follow_redirects=True))

    def ask(self, url, method="GET", headers=None, content=None, verify=True, **options):
        inner = httpx.HTTPTransport(verify=verify)
        transport = ration_client.httpx.Transport(inner, follow_redirects=True, **options)
        with httpx.Client(transport=transport) as client:
            try:
                return Result.of(client.request(method, url, headers=headers, content=content))
            except Exception as error:
                return Result.of_error(error)


class HttpxAsync:
    name = "httpx async"

    @staticmethod
    async def pieces(chunks):
        for chunk in chunks:
            yield chunk

    def ask(self, url, **what):
        return asyncio.run(self._ask(url, **what))

    async def _ask(self, url, method="GET", headers=None, content=None, verify=True, **options):
        inner = httpx.AsyncHTTPTransport(verify=verify)
        transport = ration_client.httpx.AsyncTransport(inner, follow_redirects=True, **options)
        if hasattr(content, "read"):
            content = self._chunks(content)
        async with httpx.AsyncClient(transport=transport) as client:
            try:
                return Result.of(await client.request(method, url, headers=headers, content=content))
            except Exception as error:
                return Result.of_error(error)

    @staticmethod
    async def _chunks(file):
        yield file.read()


class Requests:
    name = "requests"
    pieces = staticmethod(iter)

    def ask(self, url, method="GET", headers=None, content=None, verify=True, **options):
        with contextlib.closing(ration_client.requests.Session(**options)) as session:
            session.trust_env = False
            session.verify = verify
            try:
                return Result.of(session.request(method, url, headers=headers, data=content))
            except Exception as error:
                return Result.of_error(error)


ADAPTERS = [Httpx(), HttpxAsync(), Requests()]
