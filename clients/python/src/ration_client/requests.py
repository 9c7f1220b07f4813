"""For requests. Existing code changes one line:

    session = ration_client.requests.Session()      # instead of requests.Session()

or, where the session is somebody else's, `session.mount("https://", Adapter())`: the same but for redirects,
which a session follows by itself; only ours keeps credentials and keys at home while it does.

An answer carries the attribute `ration`, a CallInfo; so does each exception. Thread-safe as requests is.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple
from urllib.parse import urlsplit

import requests
import requests.adapters
from requests.cookies import RequestsCookieJar, extract_cookies_to_jar, get_cookie_header
from requests.structures import CaseInsensitiveDict

from . import deadline
from .call import MESSAGES, Ending
from .decide import Outcome
from .drive import CancelToken, drive
from .hints import MAX_BODY_BYTES
from .plain import CallInfo
from .redirect import REDIRECTS, SECRETS, RedirectDecision, decide_redirect, origin_of
from .requests_wire import BoundPool, BoundPoolTls, Rest, error_kind
from .shared import RequestFacts, Send, Shared, make_settings

_ERROR_BODY_S = 5.0  # for reading why something was refused
_MOST_ERROR_BYTES = 1024 * 1024
_CHUNK = 16 * 1024


class CallRefused(requests.exceptions.RequestException):
    """The call ended without an answer to give back: see `info.reason`."""

    def __init__(self, info: CallInfo, request: requests.PreparedRequest) -> None:
        super().__init__(MESSAGES.get(info.reason, info.reason), request=request)
        self.info = self.ration = info


class Adapter(requests.adapters.HTTPAdapter):
    """`pool_connections`, `pool_maxsize` and `pool_block` are HTTPAdapter's; the rest are settings of the calls."""

    def __init__(self, pool_connections: int = 10, pool_maxsize: int = 10, pool_block: bool = False,
                 **options: Any) -> None:
        self.settings = make_settings(options)
        self._shared = Shared(self.settings)
        self._closing = CancelToken()
        super().__init__(pool_connections, pool_maxsize, max_retries=0, pool_block=pool_block)

    def init_poolmanager(self, *arguments: Any, **more: Any) -> None:
        super().init_poolmanager(*arguments, **more)
        self.poolmanager.pool_classes_by_scheme = {"http": BoundPool, "https": BoundPoolTls}

    def stats(self) -> dict:
        return self._shared.stats()

    def close(self) -> None:
        """Ends what waits, then closes the connections."""
        self._closing.cancel()
        super().close()

    def send(self, request: requests.PreparedRequest, stream: bool = False, timeout: Any = None, verify: Any = True,
             cert: Any = None, proxies: Any = None) -> requests.Response:
        body = _Body(request, self.settings.buffer_body)
        fields = _fields_of(request.headers)
        how = {"stream": stream, "verify": verify, "cert": cert, "proxies": proxies}
        ending = drive(self._shared, _facts_of(request, fields), body.kind,
                       lambda call, step: self._attempt(request, fields if call else None, body, step, timeout, how),
                       self._closing, before=getattr(request, "ration_before", None))
        answer = _finish(ending, request)
        answer.ration_call = ending.call  # type: ignore[attr-defined]
        if answer.status_code in REDIRECTS:
            answer.ration_sent = body.as_read(_as_begun(request, fields))  # type: ignore[attr-defined]
            answer.ration_body = body.kind()  # type: ignore[attr-defined]
        return answer

    def _attempt(self, request: requests.PreparedRequest, fields: Optional["_Fields"], body: "_Body", step: Send,
                 timeout: Any, how: dict) -> Outcome:
        """`fields`: what the request had when its call began, for its caller may have changed them since."""
        attempt = request if fields is None else _as_begun(request, fields, step.added_headers)
        seconds, handled = step.timeout_ms / 1000, sys.exc_info()[1]
        before = deadline.begin(seconds)
        try:
            made = body.make()
            if made is not attempt.body:
                attempt = attempt.copy() if attempt is request else attempt  # the caller's own stays as it is
                attempt.body = made
            response = super().send(attempt, timeout=_cut(timeout, seconds), **how)
            response.request = request
            return self._read(response, how["stream"])
        except (requests.exceptions.RequestException, ValueError, OSError) as error:
            return Outcome(error=error_kind(error, handled), cause=error)
        finally:
            deadline.end(before)

    def _read(self, response: requests.Response, stream: bool) -> Outcome:
        content = None
        if response.status_code == 101:
            response.close()  # what follows is another protocol's (RFC 9110 7.8), and no answer will ever come
            error = requests.exceptions.ConnectionError("the server switched protocols (101)", response=response)
            return Outcome(error="protocol_error", cause=error)
        if response.status_code >= 400 and self._wants_body(response):
            content = _collect(response)
        elif response.status_code in REDIRECTS:
            _collect(response)
        elif response.status_code < 400 and not stream:
            response.content  # noqa: B018: the session reads it next; here a body that breaks off can be asked for again
        elif response.status_code < 400 and self.settings.whole_answers > 0:
            _peek(response, self.settings.whole_answers)
        # A redirect is followed by another call, which goes on with this one's time and count.
        quiet = (response.status_code < 400 and response.status_code not in REDIRECTS
                 and "ratelimit" not in " ".join(response.headers).lower())
        return Outcome(response.status_code, response.headers.get, content, response=response, quiet=quiet)

    def _wants_body(self, response: requests.Response) -> bool:
        policy = self.settings.policy
        if response.status_code in policy.retry_statuses or policy.retry_types:
            return True
        length = response.headers.get("content-length", "")
        return (length.isdigit() and int(length) <= MAX_BODY_BYTES
                and "json" in response.headers.get("content-type", "").lower())


class Session(requests.Session):
    """A session whose calls behave, and whose redirects keep credentials and keys at home."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.adapter = Adapter(**options)
        self.max_redirects = self.adapter.settings.policy.max_redirects
        for scheme in ("https://", "http://"):
            self.mount(scheme, self.adapter)

    def stats(self) -> dict:
        return self.adapter.stats()

    def send(self, request: requests.PreparedRequest, **how: Any) -> requests.Response:
        try:
            answer = super().send(request, **how)
        except requests.exceptions.TooManyRedirects as error:
            error.ration = _told(error.response, "too_many_redirects")  # type: ignore[attr-defined]
            raise
        if how.get("allow_redirects", True) and answer.status_code in REDIRECTS and hasattr(answer, "ration"):
            answer.ration = _told(answer, self._decide(answer, answer.headers.get("location")).reason)
        return answer

    def _decide(self, answer: requests.Response, location: Optional[str]) -> RedirectDecision:
        decision = decide_redirect(self.adapter.settings.policy, answer.request.method or "GET", answer.status_code,
                                   answer.request.url or "", location, 0)
        gone = getattr(answer, "ration_body", None) == "stream_once_consumed" and not decision.drop_body
        return RedirectDecision("stop", "body_not_replayable") if decision.action == "follow" and gone else decision

    def get_redirect_target(self, resp: requests.Response) -> Optional[str]:
        location = super().get_redirect_target(resp)
        return location if location is not None and self._decide(resp, location).action == "follow" else None

    def resolve_redirects(self, resp: requests.Response, req: requests.PreparedRequest, *how: Any,
                          **more: Any) -> Iterator[Any]:
        return super().resolve_redirects(resp, getattr(resp, "ration_sent", req), *how, **more)

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        settings, redirected = self.adapter.settings, response.request
        prepared_request.ration_before = getattr(response, "ration_call", None)  # type: ignore[attr-defined]
        cookies = getattr(redirected, "ration_away", None)  # set since redirects led away from the first origin
        if cookies is not None:
            extract_cookies_to_jar(cookies, redirected, response.raw)
        elif origin_of(urlsplit(prepared_request.url)) != origin_of(urlsplit(redirected.url)):  # type: ignore[arg-type]
            cookies = RequestsCookieJar()
        if cookies is not None:  # whatever requests wrote anew, and also where the next one leads back
            prepared_request.ration_away = cookies  # type: ignore[attr-defined]
            for name in (*SECRETS, settings.policy.idempotency_header, *settings.secret_headers):
                prepared_request.headers.pop(name, None)
            own = get_cookie_header(cookies, prepared_request)
            if own is not None:
                prepared_request.headers["Cookie"] = own
        super().rebuild_auth(prepared_request, response)


class _Body:
    """The same bytes on every attempt, or none after the first."""

    def __init__(self, request: requests.PreparedRequest, most: int) -> None:
        self._body: Any = request.body
        if isinstance(self._body, (bytearray, memoryview)):
            self._body = bytes(self._body)  # its caller may change it
        self._sent = False
        self._position: Any = getattr(request, "_body_position", None)
        self._kind = "none" if self._body is None else "buffered"
        if self._body is not None and not isinstance(self._body, (bytes, str)):
            self._kind = "rewindable" if isinstance(self._position, int) else "stream_once"
        if self._kind == "rewindable":
            self._body.seek(self._position)  # the request may have been sent before
        length = request.headers.get("Content-Length", "")
        if hasattr(self._body, "read") and str(length).isdigit() and int(length) <= most:
            self._body, self._kind = self._body.read(), "buffered"  # type: ignore[union-attr]

    def kind(self) -> str:
        return self._kind + ("_consumed" if self._kind == "stream_once" and self._sent else "")

    def as_read(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """With the bytes in place of what they were read of, for a redirect to be followed with."""
        if self._kind == "buffered" and request.body is not self._body:
            request = request.copy()
            request.body, request._body_position = self._body, None
        return request

    def make(self) -> Any:
        if self._kind == "rewindable" and self._sent:
            self._body.seek(self._position)
        self._sent = True
        return self._body


_Fields = Dict[str, Tuple[str, Any]]  # by their lower-case names: how each is written, and its value


def _fields_of(headers: Any) -> _Fields:
    """A copy. What requests prepared has them like this already."""
    if isinstance(headers, CaseInsensitiveDict):
        return headers._store.copy()
    return CaseInsensitiveDict(headers)._store


def _as_begun(request: requests.PreparedRequest, fields: _Fields,
              added: Sequence[Tuple[str, str]] = ()) -> requests.PreparedRequest:
    if not added and fields == _fields_of(request.headers):
        return request
    begun = request.copy()
    begun.headers = CaseInsensitiveDict(fields.values())
    begun.headers.update(added)
    return begun


def _facts_of(request: requests.PreparedRequest, fields: _Fields) -> RequestFacts:
    url = urlsplit(request.url or "")
    scheme, host, port = origin_of(url)
    return RequestFacts((request.method or "GET").upper(), request.url or "", f"{scheme}://{host}:{port}",
                        url.path or "/", _reader(fields))


def _reader(fields: _Fields) -> Any:
    def read(name: str) -> Optional[str]:
        _, value = fields.get(name, ("", None))
        return value.decode("latin-1") if isinstance(value, bytes) else value
    return read


def _cut(timeout: Any, seconds: float) -> Any:
    """The caller's timeout, no longer than the attempt has."""
    if isinstance(timeout, tuple):
        return tuple(seconds if part is None else min(part, seconds) for part in timeout)
    return min(timeout, seconds) if isinstance(timeout, (int, float)) else seconds if timeout is None else timeout


def _collect(response: requests.Response) -> Optional[bytes]:
    """What comes of a refusal's or redirect's body in a short time becomes its content. Gives it when that is all and
    small: one that is endless, slow or cut is judged by its head."""
    seen, size, complete = [], 0, False
    with contextlib.suppress(requests.exceptions.RequestException, OSError), deadline.deadline(deadline.left(_ERROR_BODY_S) or 0):
        for chunk in response.iter_content(_CHUNK):
            seen.append(chunk)
            size += len(chunk)
            if size > _MOST_ERROR_BYTES or deadline.over():
                break
        else:
            complete = True
    if not complete:
        response.raw.close()
    response._content, response._content_consumed = b"".join(seen)[:_MOST_ERROR_BYTES], True
    return response._content if complete and size <= MAX_BODY_BYTES else None


def _peek(response: requests.Response, most: int) -> None:
    """Reads so much of a body, or all; the response still has it before it. Raises what breaks it off."""
    seen, size = [], 0
    chunks = response.iter_content(_CHUNK)
    for chunk in chunks:
        seen.append(chunk)
        size += len(chunk)
        if size > most:
            response.raw = Rest(seen, chunks, response.raw)
            response._content_consumed = False
            return
    response._content, response._content_consumed = b"".join(seen), True


def _told(answer: Any, reason: Optional[str]) -> Optional[CallInfo]:
    info = getattr(answer, "ration", None)
    return info._replace(reason=reason) if info and reason else info


def _finish(ending: Ending, request: requests.PreparedRequest) -> requests.Response:
    outcome = ending.outcome
    if outcome is None or ending.info.reason == "deadline" and outcome.response is None:
        raise CallRefused(ending.info, request) from (outcome.cause if outcome else None)
    if outcome.response is None:
        outcome.cause.ration = ending.info  # type: ignore[union-attr]
        raise outcome.cause  # type: ignore[misc]
    outcome.response.ration = ending.info
    return outcome.response
