"""What the end of a connection looks like to TLS."""

from __future__ import annotations

import ssl


_ENDS = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def is_end(error: ssl.SSLError) -> bool:
    """The connection ended within TLS, or while more was wanted: that says nothing of certificates."""
    return isinstance(error, _ENDS) or "EOF occurred" in str(error)
