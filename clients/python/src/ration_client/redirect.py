"""What to do with one redirect (RFC 9110, section 15.4). Pure."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple
from urllib.parse import SplitResult, urljoin, urlsplit

from .policy import Policy

REDIRECTS = (301, 302, 303, 307, 308)
_PORTS = {"http": 80, "https": 443}
SECRETS = ("authorization", "cookie", "proxy-authorization")  # and the key


class RedirectDecision(NamedTuple):
    action: str  # follow or stop
    reason: Optional[str] = None
    url: str = ""
    method: str = ""
    drop_body: bool = False
    drop_secrets: bool = False  # another origin: credentials, cookies and the key stay behind


def decide_redirect(policy: Policy, method: str, status: int, source: str, location: Optional[str],
                    followed: int) -> RedirectDecision:
    """`followed` counts the redirects before this one."""
    if followed >= policy.max_redirects:
        return RedirectDecision("stop", "too_many_redirects")
    url = _resolved(location, source)
    if url is None:
        return RedirectDecision("stop", "bad_location")
    old = urlsplit(source)
    if old.scheme.lower() == "https" and url.scheme == "http":
        return RedirectDecision("stop", "redirect_to_insecure")
    becomes_get = method not in ("GET", "HEAD") if status == 303 else status in (301, 302) and method == "POST"
    if becomes_get and not policy.redirect_to_get:
        return RedirectDecision("stop", "redirect_would_change_method")
    return RedirectDecision("follow", None, _spelled(url), "GET" if becomes_get else method, becomes_get,
                            origin_of(url) != origin_of(old))


def origin_of(url: SplitResult) -> Tuple[str, str, Optional[int]]:
    scheme = url.scheme.lower()
    return scheme, (url.hostname or "").lower(), url.port or _PORTS.get(scheme)


def _resolved(location: Optional[str], base: str) -> Optional[SplitResult]:
    if not location:
        return None
    try:
        given = urlsplit(location)
        if not given.netloc and (given.scheme in _PORTS or location.startswith("//")):
            return None  # urljoin would take the base's host
        url = urlsplit(urljoin(base, location))
        usable = url.scheme in _PORTS and url.hostname and url.username is None and url.password is None
        return url if usable and url.port != 0 else None
    except ValueError:
        return None


def _spelled(url: SplitResult) -> str:
    """Without a default port, the host in lower case."""
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname or ""
    port = "" if url.port in (None, _PORTS[url.scheme]) else f":{url.port}"
    return url._replace(netloc=host + port, path=url.path or "/").geturl()
