"""Why a send of httpx failed, in the words of the decision core."""

from __future__ import annotations

import socket
import ssl
from typing import Iterator, Optional

import httpx


def causes(error: Optional[BaseException]) -> Iterator[BaseException]:
    """The error and what it was raised from, at most ten deep."""
    for _ in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def error_kind(error: BaseException) -> str:
    chain = list(causes(error))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in chain):
        return "tls_certificate"
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
        if any(isinstance(cause, ssl.SSLError) for cause in chain):
            return "tls_certificate"
        return "dns_failed" if any(isinstance(cause, socket.gaierror) for cause in chain) else "connect_failed"
    if isinstance(error, httpx.TimeoutException):
        return "attempt_timeout"
    if isinstance(error, httpx.NetworkError):
        return "connection_lost"
    if isinstance(error, httpx.RemoteProtocolError):
        # An answer that breaks off, before its head or inside its body; anything else is not HTTP.
        broke_off = ("disconnected" in str(error) or "peer closed connection" in str(error)
                     or "ConnectionTerminated" in str(error))
        return "connection_lost" if broke_off else "protocol_error"
    if isinstance(error, (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL, ValueError)):
        return "bad_request"
    return "connection_lost" if isinstance(error, OSError) else "protocol_error"
