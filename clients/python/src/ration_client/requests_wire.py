"""What lies below requests: connections that keep the thread's deadline and pass over 1xx answers, and
why a send failed, in the words of the decision core."""

from __future__ import annotations

import http.client
import io
import socket
import ssl
from typing import Any, Iterator, List, Optional, Tuple

import requests.exceptions as failed
import urllib3.exceptions
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from . import deadline
from .tls_end import is_end

_MAX_INTERIM = 100  # 1xx answers before the one that counts


class _BoundFile(io.RawIOBase):
    """A socket's file whose reads end at the thread's deadline."""

    in_head = False  # where http.client would take the connection's end for the head's

    def __init__(self, sock: Any) -> None:
        self._sock, self._file = sock, sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        before = self._sock.gettimeout()
        left = deadline.left(before)
        if left is not None and left <= deadline.MINIMUM_S and deadline.over():  # also when there is always something to read
            raise socket.timeout("timed out")
        self._sock.settimeout(left)
        try:
            got = self._file.readinto(buffer)
        finally:
            if self._sock.fileno() >= 0:
                self._sock.settimeout(before)
        if got == 0 and self.in_head:
            raise http.client.RemoteDisconnected("the connection ended before the answer's head did")
        return got

    def close(self) -> None:
        self._file.close()
        super().close()


class _Files:
    """All that a response asks of its socket."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_BoundFile(self._sock))


class _BoundResponse(http.client.HTTPResponse):
    def __init__(self, sock: Any, *arguments: Any, **more: Any) -> None:
        super().__init__(_Files(sock), *arguments, **more)  # type: ignore[arg-type]
        self._raw: Any = self.fp.raw  # type: ignore[attr-defined]

    def begin(self) -> None:
        self._raw.in_head = True
        try:
            super().begin()
        finally:
            self._raw.in_head = False

    def _read_status(self) -> Tuple[str, int, str]:
        for _ in range(_MAX_INTERIM):
            version, status, reason = super()._read_status()  # type: ignore[misc]
            if not 100 < status < 200 or status == 101:
                return version, status, reason
            http.client.parse_headers(self.fp)
        raise http.client.HTTPException("more interim answers than anybody sends")


class _BoundSends:
    """A connection's sends, each of a part of the body, end at the thread's deadline too."""

    def send(self: Any, data: Any) -> None:
        if self.sock is None and self.auto_open:
            self.connect()
        if self.sock is None or deadline.left(None) is None:
            super().send(data)  # type: ignore[misc]
            return
        if deadline.over():
            raise socket.timeout("timed out")
        before = self.sock.gettimeout()
        self.sock.settimeout(deadline.left(before))
        try:
            super().send(data)  # type: ignore[misc]
        finally:
            if self.sock is not None:
                self.sock.settimeout(before)


class _BoundConnection(_BoundSends, HTTPConnection):
    response_class = _BoundResponse


class _BoundConnectionTls(_BoundSends, HTTPSConnection):
    response_class = _BoundResponse


class BoundPool(HTTPConnectionPool):
    ConnectionCls = _BoundConnection


class BoundPoolTls(HTTPSConnectionPool):
    ConnectionCls = _BoundConnectionTls


class Rest(io.RawIOBase):
    """What was read of a body, then the rest of it, as the `raw` of a response."""

    def __init__(self, seen: List[bytes], chunks: Iterator[bytes], raw: Any) -> None:
        self._buffer, self._chunks, self._raw = b"".join(seen), chunks, raw

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._buffer) < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._buffer += chunk
        size = len(self._buffer) if size < 0 else size
        part, self._buffer = self._buffer[:size], self._buffer[size:]
        return part

    def release_conn(self) -> None:
        self._raw.close()
        self._raw.release_conn()

    def close(self) -> None:
        self._raw.close()


def error_kind(error: BaseException, handled: Optional[BaseException] = None) -> str:
    """`handled`: what the caller was handling when it sent, which is no cause of this."""
    chain = list(_causes(error, handled))
    if any(isinstance(cause, ssl.SSLError) and is_end(cause) for cause in chain):
        return "connection_lost"  # in the handshake or later: that is not told
    if any(isinstance(cause, (ssl.SSLError, urllib3.exceptions.SSLError, failed.SSLError)) for cause in chain):
        return "tls_certificate"
    if any(isinstance(cause, socket.gaierror) for cause in chain):
        return "dns_failed"
    connecting = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError, failed.ConnectTimeout)
    if any(isinstance(cause, connecting) for cause in chain):
        return "connect_failed"
    if any(isinstance(cause, (failed.Timeout, socket.timeout, urllib3.exceptions.TimeoutError)) for cause in chain):
        return "attempt_timeout"
    if isinstance(error, (failed.InvalidURL, failed.MissingSchema, failed.InvalidSchema, failed.InvalidHeader)):
        return "bad_request"
    if type(error) is OSError and error.errno is None:
        return "bad_request"  # requests' own, of a certificate's file that is not there
    broken = (http.client.BadStatusLine, http.client.LineTooLong, http.client.HTTPException)
    lost = (http.client.RemoteDisconnected, http.client.IncompleteRead, urllib3.exceptions.IncompleteRead, OSError)
    for cause in chain:
        if isinstance(cause, http.client.RemoteDisconnected):
            return "connection_lost"
        if isinstance(cause, broken) and not isinstance(cause, lost):
            return "protocol_error"
    return "connection_lost" if isinstance(error, (failed.ConnectionError, failed.ChunkedEncodingError, OSError)) else "bad_request"


def _causes(error: BaseException, handled: Optional[BaseException]) -> Iterator[BaseException]:
    """The error, what it was raised from, and what it carries, as urllib3 does in `reason` and arguments."""
    pending: List[Any] = [error]
    for _ in range(20):
        if not pending:
            return
        cause = pending.pop(0)
        if isinstance(cause, BaseException) and cause is not handled:
            yield cause
            pending += [cause.__cause__ or cause.__context__, getattr(cause, "reason", None), *cause.args]
