"""Cookies of redirects that the transports follow, which httpx does not see."""

from __future__ import annotations

from typing import Any, Dict, List, Set
from urllib.parse import urlsplit

import httpx

from .redirect import origin_of


def _name_of(pair: str) -> str:
    return pair.partition("=")[0].strip()


class Cookies:
    """Those that are set on the way that redirects lead. Each origin gets its own, whatever cookies say of ports, and
    httpx, which takes the last answer for the first origin's, is shown what that one set."""

    def __init__(self, first: httpx.Request) -> None:
        self._home = origin_of(urlsplit(str(first.url)))
        self._of: Dict[Any, httpx.Cookies] = {}
        self._named: Dict[Any, Set[str]] = {}  # all that were set or deleted, by their origin
        self._at_home: List[str] = []

    def learn(self, hop: httpx.Request, response: httpx.Response) -> None:
        told = response.headers.get_list("set-cookie")
        if told:
            origin = origin_of(urlsplit(str(hop.url)))
            response.request = hop
            self._of.setdefault(origin, httpx.Cookies()).extract_cookies(response)
            self._named.setdefault(origin, set()).update(map(_name_of, told))
            self._at_home += told if origin == self._home else []

    def give(self, hop: httpx.Request) -> None:
        origin = origin_of(urlsplit(str(hop.url)))
        known = self._of.get(origin)
        if known is None:
            return
        bare = httpx.Request(hop.method, hop.url)
        known.set_cookie_header(bare)
        fresh = bare.headers.get("cookie", "")
        deleted = self._named[origin] - {cookie.name for cookie in known.jar}
        replaced = deleted.union(map(_name_of, fresh.split(";")))
        given = hop.headers.pop("cookie", "").split(";")
        kept = [pair.strip() for pair in given if pair.strip() and _name_of(pair) not in replaced]
        cookie = "; ".join([*kept, *([fresh] if fresh else [])])
        if cookie:
            hop.headers["Cookie"] = cookie

    def show(self, hop: httpx.Request, response: httpx.Response) -> httpx.Response:
        """The last answer, at the end of a way."""
        others = [(name, value) for name, value in response.headers.raw if name.lower() != b"set-cookie"]
        response.headers = httpx.Headers([*others, *((b"Set-Cookie", told.encode("latin-1", "replace")) for told in self._at_home)])
        response.extensions["ration_url"] = str(hop.url)
        return response
