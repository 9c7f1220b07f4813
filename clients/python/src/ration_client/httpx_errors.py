"""Why a send of httpx failed, in the words of the decision core."""

from __future__ import annotations

import socket
import ssl
from typing import Iterator, Optional

import httpx

from .tls_end import is_end

# From the third on of HTTP/2; the last is an answer that came after the server had said that it goes away.
_BROKE_OFF = ("disconnected", "peer closed connection", "ConnectionTerminated", "StreamReset", "ConnectionState.CLOSED")


def causes(error: Optional[BaseException], handled: Optional[BaseException]) -> Iterator[BaseException]:
    """The error and what it was raised from, at most ten deep."""
    for _ in range(10):
        if error is None or error is handled:
            return
        yield error
        error = error.__cause__ or error.__context__


def error_kind(error: BaseException, handled: Optional[BaseException] = None) -> str:
    """`handled`: what the caller was handling when it sent, which is no cause of this."""
    chain = list(causes(error, handled))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in chain):
        return "tls_certificate"
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
        if any(isinstance(cause, ssl.SSLError) and not is_end(cause) for cause in chain):
            return "tls_certificate"
        return "dns_failed" if any(isinstance(cause, socket.gaierror) for cause in chain) else "connect_failed"
    if isinstance(error, httpx.PoolTimeout):
        return "connect_failed"  # it had no connection yet
    if isinstance(error, httpx.TimeoutException):
        return "attempt_timeout"
    if isinstance(error, httpx.NetworkError):
        return "connection_lost"
    if isinstance(error, httpx.ProtocolError) and any(words in str(error) for words in _BROKE_OFF):
        return "connection_lost"  # before the answer's head or inside its body
    if isinstance(error, httpx.RemoteProtocolError):
        return "protocol_error"  # it is not HTTP
    if isinstance(error, (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL, ValueError)):
        return "bad_request"
    return "connection_lost" if isinstance(error, OSError) else "protocol_error"
