"""Transports for httpx. Existing code changes one line:

    client = httpx.Client(transport=Transport())
    client = httpx.AsyncClient(transport=AsyncTransport())

An answer carries `extensions["ration"]`, a CallInfo; so does the attribute `ration` of each exception.
`extensions={"ration": {"max_retries": 1}}` gives a request a policy of its own. Settings of
connections (verify, proxy, http2, limits) belong to the inner transport:

    Transport(httpx.HTTPTransport(http2=True), max_retries=3)

Redirects are httpx's business and off there unless asked for; with `follow_redirects=True` the transport
follows them by the rules of this package, and httpx sees only the last answer. Thread-safe as httpx is.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import operator
import sys
import types
from typing import Any, AsyncIterator, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import anyio
import httpcore
import httpx

from . import deadline
from .call import MESSAGES, Call, Ending
from .checks import check
from .decide import Outcome
from .drive import CancelToken, drive, drive_async
from .hints import MAX_BODY_BYTES
from .httpx_cookies import Cookies
from .httpx_errors import error_kind
from .plain import CallInfo
from .policy import SHARED_FIELDS, Policy, make_policy
from .redirect import REDIRECTS, SECRETS, decide_redirect
from .shared import RequestFacts, Send, Shared, make_settings

_ERROR_BODY_S = 5.0  # for reading why something was refused
_MOST_ERROR_BYTES = 1024 * 1024
_WRITTEN_AT_ONCE = 4096
_BROKEN = (httpx.TransportError, httpx.StreamError, OSError)
_Raw = Sequence[Tuple[bytes, bytes]]  # the fields of a message
_NAME_OF = operator.itemgetter(0)  # of a field
_BODY_FIELDS = ("content-type", "content-length", "content-encoding", "content-language", "transfer-encoding")


class CallRefused(httpx.TransportError):
    """The call ended without an answer to give back: see `info.reason`."""

    def __init__(self, info: CallInfo, request: httpx.Request) -> None:
        super().__init__(MESSAGES.get(info.reason, info.reason), request=request)
        self.info = self.ration = info


class _Wrapped(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body around another, which ends with it."""

    _stream: Any

    def close(self) -> None:
        self._stream.close()

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Joined(_Wrapped):
    """What was read of a body, then the rest of it."""

    def __init__(self, seen: List[bytes], rest: Any, stream: Any) -> None:
        self._seen, self._rest, self._stream = seen, rest, stream

    def __iter__(self) -> Iterator[bytes]:
        yield from self._seen
        yield from self._rest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._seen:
            yield chunk
        async for chunk in self._rest:
            yield chunk


class _Resumable(_Wrapped):
    """The body of a call that can be resumed: what breaks it off tells under which key."""

    def __init__(self, stream: Any, info: CallInfo) -> None:
        self._stream, self._info = stream, info

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._stream
        except Exception as error:
            error.ration = self._info  # type: ignore[attr-defined]
            raise

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                yield chunk
        except Exception as error:
            error.ration = self._info  # type: ignore[attr-defined]
            raise


class _Base:
    def __init__(self, follow_redirects: bool, options: Dict[str, Any]) -> None:
        check("follow_redirects", isinstance(follow_redirects, bool), "True or False")
        self._settings = make_settings(options)
        self._shared = Shared(self._settings)
        self._follows = follow_redirects
        self._last_fields = _Fields(httpx.Headers(), [])  # most calls of a client have the same

    def stats(self) -> Dict[str, Any]:
        return self._shared.stats()

    def _facts_of(self, request: httpx.Request, raw: _Raw) -> RequestFacts:
        fields = self._last_fields
        if fields.raw != raw:
            fields = self._last_fields = _Fields(request.headers, raw)
        url = request.url
        scheme, port = url.scheme, url.port
        origin = f"{scheme}://{url.host}:{port or (443 if scheme == 'https' else 80)}"
        return RequestFacts(request.method.upper(), url, origin, url.path, fields.read)

    def _own_policy(self, request: httpx.Request) -> Optional[Policy]:
        own = request.extensions.get("ration")
        if own is None:
            return None
        check("ration", isinstance(own, Mapping), "a mapping of settings")
        if not own:
            return None
        for name in own:
            check("ration", name not in SHARED_FIELDS, f"without {name}, which all calls share")
        return make_policy({**own, "max_retries": 0} if self._settings.nested else own, self._settings.policy)

    def _wants_body(self, call: Optional[Call], response: httpx.Response) -> bool:
        """Of a refusal, for what it says may decide."""
        policy = call.policy if call else self._settings.policy
        if response.status_code in policy.retry_statuses or policy.retry_types:
            return True
        length = response.headers.get("content-length", "")
        return (length.isdigit() and int(length) <= MAX_BODY_BYTES
                and "json" in response.headers.get("content-type", "").lower())

    def _finish(self, ending: Ending, request: httpx.Request) -> httpx.Response:
        outcome = ending.outcome
        if outcome is not None and outcome.response is not None:
            response, info = outcome.response, ending.info
            response.extensions["ration"] = info
            if info.idempotency_key is not None and not isinstance(response.stream, httpx.ByteStream):
                response.stream = _Resumable(response.stream, info)
            return response
        if outcome is None or ending.info.reason == "deadline":
            refused = CallRefused(ending.info, request)
            raise refused from (outcome.cause if outcome else None)
        outcome.cause.ration = ending.info  # type: ignore[union-attr]
        raise outcome.cause  # type: ignore[misc]

    def _next_hop(self, call: Call, hop: httpx.Request, fields: _Raw, response: httpx.Response, body: "_Body",
                  cookies: Cookies) -> Optional[httpx.Request]:
        """The request that follows the redirect, by the fields that were sent; None when it is not followed."""
        policy = call.policy
        decision = decide_redirect(policy, hop.method.upper(), response.status_code, str(hop.url),
                                   response.headers.get("location"), call.redirects)
        if decision.action == "stop" or (not decision.drop_body and body.kind() == "stream_once_consumed"):
            call.redirect_reason = decision.reason or "body_not_replayable"
            return None
        headers = httpx.Headers(fields)
        headers["Host"] = httpx.URL(decision.url).netloc.decode("ascii")
        if decision.drop_secrets:
            call.same_origin = False
            for name in (*SECRETS, policy.idempotency_header, *self._settings.secret_headers):
                headers.pop(name, None)
        if decision.drop_body:
            for name in _BODY_FIELDS:
                headers.pop(name, None)
        stream = httpx.ByteStream(b"") if decision.drop_body else hop.stream
        following = httpx.Request(decision.method, decision.url, headers=headers, stream=stream, extensions=hop.extensions)
        cookies.give(following)
        return following


class _Body:
    """Whether the request's body can be sent again."""

    def __init__(self, buffered: bool) -> None:
        self._buffered, self.sent = buffered, False

    def kind(self) -> str:
        return "buffered" if self._buffered else "stream_once_consumed" if self.sent else "stream_once"


_BUFFERED = _Body(True)  # one for all: that it was sent changes nothing


def _fits(request: httpx.Request, most: int) -> bool:
    """A body of known and small length is read ahead of the first send."""
    length = request.headers.get("content-length", "")
    return length.isdigit() and int(length) <= most


class _Fields:
    """What `headers.get` says by lower-case names, without looking through all of them each time."""

    __slots__ = ("raw", "_headers", "_values", "_read")

    def __init__(self, headers: httpx.Headers, raw: _Raw) -> None:
        self.raw, self._headers = raw, headers
        self._values = {name.lower(): value for name, value in raw}
        self._read: Dict[str, Optional[str]] = {}

    def read(self, name: str) -> Optional[str]:
        if name not in self._read:
            self._read[name] = self._value(name)
        return self._read[name]

    def _value(self, name: str) -> Optional[str]:
        if len(self._values) != len(self.raw):
            return httpx.Headers(self.raw, self._headers.encoding).get(name)  # it joins repeated fields
        value = self._values.get(name.encode())
        return None if value is None else value.decode("ascii" if value.isascii() else self._headers.encoding)


@contextlib.asynccontextmanager
async def _scope(seconds: float) -> AsyncIterator[Any]:
    with anyio.fail_after(seconds) as scope:
        yield types.SimpleNamespace(when=lambda: scope.deadline)


def _time_limit(seconds: float) -> contextlib.AbstractAsyncContextManager[Any]:
    """Raises TimeoutError when what is inside takes longer; `when` of what it gives is that moment.

    asyncio's own is the cheaper one where there is one.
    """
    if sys.version_info >= (3, 11) and asyncio._get_running_loop() is not None:
        return asyncio.timeout(seconds)
    return _scope(seconds)


def _as_begun(request: httpx.Request, fields: _Raw) -> httpx.Request:
    """The request with the fields that it had when its call began: its caller may have changed them while it waited."""
    return request if request.headers.raw == fields else _with_headers(request, httpx.Headers(fields))


def _with_headers(request: httpx.Request, headers: httpx.Headers) -> httpx.Request:
    changed = httpx.Request.__new__(httpx.Request)  # the given one's fields without reading them anew
    changed.__dict__.update(request.__dict__)
    changed.headers = headers
    return changed


def _attempt_request(request: httpx.Request, step: Send) -> httpx.Request:
    """The caller's own request, with what this attempt adds and no timeout longer than it has."""
    seconds = step.timeout_ms / 1000
    timeouts = request.extensions.get("timeout", {})
    own = timeouts.values()
    if not step.added_headers and len(own) == 4 and None not in own and max(own) <= seconds:
        return request
    extensions = {**request.extensions, "timeout": {
        name: seconds if timeouts.get(name) is None else min(timeouts[name], seconds)
        for name in ("connect", "read", "write", "pool")}}
    headers = request.headers
    if step.added_headers:
        headers = headers.copy()
        for name, value in step.added_headers:
            headers[name] = value
    attempt = _with_headers(request, headers)
    attempt.extensions = extensions
    return attempt


def _outcome(response: httpx.Response, body: Optional[bytes] = None) -> Outcome:
    headers = response.headers
    return Outcome(status=response.status_code, header=_Fields(headers, headers.raw).read, body=body, response=response)


def _good(response: httpx.Response) -> Outcome:
    """Of an answer below 400: most tell no limits, and then there is nothing to read in them."""
    headers = response.headers
    if b"ratelimit" in b" ".join(map(_NAME_OF, headers.raw)).lower():
        return _outcome(response)
    return Outcome(response.status_code, headers.get, None, None, response, None, True)


class _Pieces(httpx.SyncByteStream):
    """So small that no decoder makes much of one."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def __iter__(self) -> Iterator[bytes]:
        for at in range(0, len(self._raw), 8):
            yield self._raw[at:at + 8]


def _decoded(response: httpx.Response, raw: bytes) -> Optional[bytes]:
    """None for what cannot be unpacked, is packed more than once, or is large."""
    coding = response.headers.get("content-encoding")
    if coding is None:
        return raw
    if "," in coding:
        return None
    unpacked = bytearray()
    try:
        for chunk in httpx.Response(200, headers={"content-encoding": coding}, stream=_Pieces(raw)).iter_bytes():
            unpacked += chunk
            if len(unpacked) > MAX_BODY_BYTES:
                return None
    except httpx.DecodingError:
        return None
    return bytes(unpacked)


def _refused(response: httpx.Response, raw: bytes, complete: bool) -> Outcome:
    """A refusal whose body is endless, slow or cut is judged by its head; the caller gets what came of the body."""
    if not complete and "content-encoding" in response.headers:
        raw = b""  # half of it cannot be read
    given = _with_stream(response, httpx.ByteStream(raw))
    return _outcome(given, _decoded(given, raw) if complete and len(raw) <= MAX_BODY_BYTES else None)


def _failed(error: BaseException, call: Optional[Call], handled: Optional[BaseException]) -> Outcome:
    kind = error_kind(error, handled)
    if call and call.redirects and kind in call.policy.nothing_sent_kinds:
        kind = "connection_lost"  # whoever answered with a redirect was asked, wherever it led
    return Outcome(error=kind, cause=error)


class Transport(_Base, httpx.BaseTransport):
    def __init__(self, inner: Optional[httpx.BaseTransport] = None, *, follow_redirects: bool = False,
                 **options: Any) -> None:
        super().__init__(follow_redirects, options)
        self._inner = inner if inner is not None else httpx.HTTPTransport()
        _bound_reads(self._inner)
        self._closing = CancelToken()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        fields, body = request.headers.raw, _BUFFERED
        if not isinstance(request.stream, httpx.ByteStream):
            if _fits(request, self._settings.buffer_body):
                request.read()
            body = _Body(isinstance(request.stream, httpx.ByteStream))
        ending = drive(self._shared, self._facts_of(request, fields), body.kind,
                       lambda call, step: self._send(call, request, fields, body, step), self._closing,
                       not self._follows, self._own_policy(request))
        return self._finish(ending, request)

    def close(self) -> None:
        """Ends what waits, then closes the inner transport."""
        self._closing.cancel()
        self._inner.close()

    def _send(self, call: Optional[Call], request: httpx.Request, fields: _Raw, body: _Body, step: Send) -> Outcome:
        before, handled = deadline.begin(step.timeout_ms / 1000), sys.exc_info()[1]
        try:
            at_once = call is None and body is _BUFFERED  # nothing was waited for
            attempt = _attempt_request(request if at_once else _as_begun(request, fields), step)
            body.sent = True
            response = self._follow(call, attempt, body) if call and self._follows else self._inner.handle_request(attempt)
            if response.status_code >= 400:
                return self._read_refusal(call, response)
            whole = self._settings.whole_answers
            return _good(self._peek(response, whole) if whole > 0 else response)
        except (httpx.TransportError, httpx.InvalidURL, httpx.StreamError, ValueError, OSError) as error:
            return Outcome(error="attempt_timeout", cause=error) if isinstance(error, httpx.ReadTimeout) else _failed(error, call, handled)
        finally:
            deadline.end(before)

    def _follow(self, call: Call, hop: httpx.Request, body: _Body) -> httpx.Response:
        call.redirects, call.same_origin = 0, True
        cookies = Cookies(hop)
        while True:
            fields, response = hop.headers.raw, self._inner.handle_request(hop)
            cookies.learn(hop, response)
            redirected = response.status_code in REDIRECTS
            following = self._next_hop(call, hop, fields, response, body, cookies) if redirected else None
            if following is None:
                return cookies.show(hop, response) if call.redirects else response
            self._collect(response, MAX_BODY_BYTES)
            hop = following
            call.redirects += 1

    def _read_refusal(self, call: Optional[Call], response: httpx.Response) -> Outcome:
        if self._wants_body(call, response):
            return _refused(response, *self._collect(response, _MOST_ERROR_BYTES))
        return _outcome(response)

    @staticmethod
    def _collect(response: httpx.Response, most: int) -> Tuple[bytes, bool]:
        """What comes of a body in a short time, and whether that was all of it; closes the response."""
        seen, size = [], 0
        with contextlib.suppress(*_BROKEN), deadline.deadline(deadline.left(_ERROR_BODY_S) or 0), contextlib.closing(response):
            for chunk in response.stream:  # type: ignore[union-attr]
                seen.append(chunk)
                size += len(chunk)
                if size > most or deadline.over():
                    return b"".join(seen)[:most], False
            return b"".join(seen), True
        return b"".join(seen), False

    @staticmethod
    def _peek(response: httpx.Response, most: int) -> httpx.Response:
        """The response when so much of its body, or all, has come; what was read is still before it."""
        seen: List[bytes] = []
        size, rest = 0, iter(response.stream)  # type: ignore[arg-type]
        while size <= most:
            if deadline.over():
                raise httpx.ReadTimeout("the body takes too long")
            chunk = next(rest, None)
            if chunk is None:
                response.close()
                return _with_stream(response, httpx.ByteStream(b"".join(seen)))
            seen.append(chunk)
            size += len(chunk)
        return _with_stream(response, _Joined(seen, rest, response.stream))


class AsyncTransport(_Base, httpx.AsyncBaseTransport):
    def __init__(self, inner: Optional[httpx.AsyncBaseTransport] = None, *, follow_redirects: bool = False,
                 **options: Any) -> None:
        super().__init__(follow_redirects, options)
        self._inner = inner if inner is not None else httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        fields, body = request.headers.raw, _BUFFERED
        if not isinstance(request.stream, httpx.ByteStream):
            if _fits(request, self._settings.buffer_body):
                await request.aread()
            body = _Body(isinstance(request.stream, httpx.ByteStream))
        ending = await drive_async(self._shared, self._facts_of(request, fields), body.kind,
                                   lambda call, step: self._send(call, request, fields, body, step), not self._follows,
                                   self._own_policy(request))
        return self._finish(ending, request)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _send(self, call: Optional[Call], request: httpx.Request, fields: _Raw, body: _Body, step: Send) -> Outcome:
        handled = sys.exc_info()[1]
        try:
            async with _time_limit(step.timeout_ms / 1000) as limit:
                at_once = call is None and body is _BUFFERED  # nothing was waited for
                attempt = _attempt_request(request if at_once else _as_begun(request, fields), step)
                body.sent = True
                response = await (self._follow(call, attempt, body) if call and self._follows
                                  else self._inner.handle_async_request(attempt))
                if response.status_code < 400:
                    whole = self._settings.whole_answers
                    return _good(await self._peek(response, whole) if whole > 0 else response)
                if not self._wants_body(call, response):
                    return _outcome(response)
            # Its head is there: that the attempt's time ends now does not make it a lost one.
            return _refused(response, *await self._collect(response, _MOST_ERROR_BYTES, limit.when()))
        except TimeoutError:
            return Outcome(error="attempt_timeout", cause=httpx.ReadTimeout("the attempt took too long", request=request))
        except (httpx.TransportError, httpx.InvalidURL, httpx.StreamError, ValueError, OSError) as error:
            return _failed(error, call, handled)

    async def _follow(self, call: Call, hop: httpx.Request, body: _Body) -> httpx.Response:
        call.redirects, call.same_origin = 0, True
        cookies = Cookies(hop)
        while True:
            fields, response = hop.headers.raw, await self._inner.handle_async_request(hop)
            cookies.learn(hop, response)
            redirected = response.status_code in REDIRECTS
            following = self._next_hop(call, hop, fields, response, body, cookies) if redirected else None
            if following is None:
                return cookies.show(hop, response) if call.redirects else response
            await self._collect(response, MAX_BODY_BYTES)
            hop = following
            call.redirects += 1

    @staticmethod
    async def _collect(response: httpx.Response, most: int, until: float = math.inf) -> Tuple[bytes, bool]:
        seen, size, complete = [], 0, False
        with contextlib.suppress(*_BROKEN):
            with anyio.CancelScope(deadline=min(until, anyio.current_time() + _ERROR_BODY_S)):
                async for chunk in response.stream:  # type: ignore[union-attr]
                    seen.append(chunk)
                    size += len(chunk)
                    if size > most:
                        break
                else:
                    complete = True
            await response.aclose()
        return b"".join(seen)[:most], complete

    @staticmethod
    async def _peek(response: httpx.Response, most: int) -> httpx.Response:
        seen: List[bytes] = []
        size, rest = 0, response.stream.__aiter__()  # type: ignore[union-attr]
        while size <= most:
            try:
                chunk = await rest.__anext__()
            except StopAsyncIteration:
                await response.aclose()
                return _with_stream(response, httpx.ByteStream(b"".join(seen)))
            seen.append(chunk)
            size += len(chunk)
        return _with_stream(response, _Joined(seen, rest, response.stream))


def _with_stream(response: httpx.Response, stream: Any) -> httpx.Response:
    return httpx.Response(response.status_code, headers=response.headers, stream=stream, extensions=response.extensions)


def _bound_reads(inner: httpx.BaseTransport) -> None:
    """Lets the inner transport's sockets keep the thread's deadline; another kind of transport is left alone."""
    pool: Any = getattr(inner, "_pool", None)
    backend = getattr(pool, "_network_backend", None)
    if backend is not None and not isinstance(backend, _BoundBackend):
        pool._network_backend = _BoundBackend(backend)


class _BoundBackend:
    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def connect_tcp(self, host: str, port: int, timeout: Optional[float] = None, **more: Any) -> "_BoundStream":
        return _BoundStream(self._backend.connect_tcp(host, port, timeout=deadline.left(timeout), **more))

    def connect_unix_socket(self, path: str, timeout: Optional[float] = None, **more: Any) -> "_BoundStream":
        return _BoundStream(self._backend.connect_unix_socket(path, timeout=deadline.left(timeout), **more))

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)


class _BoundStream:
    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.close, self.get_extra_info = stream.close, stream.get_extra_info

    def read(self, max_bytes: int, timeout: Optional[float] = None) -> bytes:
        left = deadline.left(timeout)
        if left is not None and left <= deadline.MINIMUM_S and deadline.over():  # also when there is always something to read
            raise httpcore.ReadTimeout("timed out")
        return self._stream.read(max_bytes, left)

    def write(self, buffer: bytes, timeout: Optional[float] = None) -> None:
        if len(buffer) <= _WRITTEN_AT_ONCE:
            self._stream.write(buffer, deadline.left(timeout))
            return
        # In parts, for the stream beneath waits for room as often as it needs to.
        for at in range(0, len(buffer), _WRITTEN_AT_ONCE):
            if at and deadline.over():
                raise httpcore.WriteTimeout("timed out")
            self._stream.write(buffer[at:at + _WRITTEN_AT_ONCE], deadline.left(timeout))

    def start_tls(self, ssl_context: Any, server_hostname: Optional[str] = None,
                  timeout: Optional[float] = None) -> "_BoundStream":
        return _BoundStream(self._stream.start_tls(ssl_context, server_hostname, deadline.left(timeout)))
