"""Cookies of redirects that the transports follow, which httpx does not see."""

from __future__ import annotations

from typing import Any, Dict, List
from urllib.parse import urlsplit

import httpx

from .redirect import origin_of


class Cookies:
    """Those that are set on the way that redirects lead. Each origin gets its own, whatever cookies say of ports, and
    httpx, which takes the last answer for the first origin's, is shown what that one set."""

    def __init__(self, first: httpx.Request) -> None:
        self._home = origin_of(urlsplit(str(first.url)))
        self._of: Dict[Any, httpx.Cookies] = {}
        self._at_home: List[str] = []

    def learn(self, hop: httpx.Request, response: httpx.Response) -> None:
        told = response.headers.get_list("set-cookie")
        if told:
            origin = origin_of(urlsplit(str(hop.url)))
            response.request = hop
            self._of.setdefault(origin, httpx.Cookies()).extract_cookies(response)
            self._at_home += told if origin == self._home else []

    def give(self, hop: httpx.Request) -> None:
        known = self._of.get(origin_of(urlsplit(str(hop.url))))
        if known is None:
            return
        bare = httpx.Request(hop.method, hop.url)
        known.set_cookie_header(bare)
        fresh = bare.headers.get("cookie", "")
        names = {pair.partition("=")[0].strip() for pair in fresh.split(";")}
        kept = [pair.strip() for pair in hop.headers.get("cookie", "").split(";")
                if pair.strip() and pair.partition("=")[0].strip() not in names]
        cookie = "; ".join([*kept, *([fresh] if fresh else [])])
        if cookie:
            hop.headers["Cookie"] = cookie

    def show(self, hop: httpx.Request, response: httpx.Response) -> httpx.Response:
        """The last answer, at the end of a way."""
        others = [(name, value) for name, value in response.headers.raw if name.lower() != b"set-cookie"]
        response.headers = httpx.Headers([*others, *((b"Set-Cookie", told.encode("latin-1", "replace")) for told in self._at_home)])
        response.extensions["ration_url"] = str(hop.url)
        return response
