"""Every attempt of a call carries the fields that its request had when it began, whatever its caller does to the request
while the call is under way."""

import asyncio
import unittest
from unittest import mock

import httpx
import requests
from requests.structures import CaseInsensitiveDict

import ration_client.httpx
import ration_client.requests

URL = "https://api.example/a"
BEGUN = {"Authorization": "Bearer one", "Idempotency-Key": "one", "X-Note": "one"}
CHANGED = {"Authorization": "Bearer two", "idempotency-key": "two", "X-Note": "two", "X-More": "two"}
LAST_ONE = {"RateLimit": '"a";r=0;t=1'}


class Server:
    """Answers with each status in turn and keeps what it saw; `change` is called while the first is under way."""

    def __init__(self, *statuses, change=None, headers=None, body=b""):
        self.statuses, self.change, self.headers, self.body, self.sends = list(statuses), change, headers, body, []

    def answer(self, request):
        self.sends.append({name.lower(): value for name, value in request.headers.items()})
        if self.change:
            self.change()
        return self.statuses.pop(0), self.headers

    def over_httpx(self, request):
        status, headers = self.answer(request)
        return httpx.Response(status, headers=headers, content=self.body)

    def over_requests(self, request):
        response = requests.Response()
        response.status_code, headers = self.answer(request)
        response.headers, response.request, response.url = CaseInsensitiveDict(headers or {}), request, request.url
        response._content, response._content_consumed = self.body, True
        return response


class Httpx:
    def request(self, headers, method="POST"):
        return httpx.Request(method, URL, headers=headers, content=b"body")

    def client(self, server, **options):
        return httpx.Client(transport=ration_client.httpx.Transport(httpx.MockTransport(server.over_httpx), **options))

    def send(self, client, *prepared):
        return [client.send(request).extensions["ration"] for request in prepared]


class HttpxAsync(Httpx):
    def client(self, server, **options):
        return httpx.AsyncClient(transport=ration_client.httpx.AsyncTransport(httpx.MockTransport(server.over_httpx), **options))

    def send(self, client, *prepared):
        async def all_of_them():
            return [(await client.send(request)).extensions["ration"] for request in prepared]
        return asyncio.run(all_of_them())


class Requests:
    def request(self, headers, method="POST"):
        return requests.Request(method, URL, headers=headers, data=b"body").prepare()

    def client(self, server, **options):
        session = ration_client.requests.Session(**options)
        session.trust_env, self.server = False, server
        return session

    def send(self, client, *prepared):
        over_requests = self.server.over_requests
        with mock.patch.object(requests.adapters.HTTPAdapter, "send", lambda adapter, request, **how: over_requests(request)):
            return [client.send(request).ration for request in prepared]


class Copies(unittest.TestCase):
    def each(self, check):
        for library in (Httpx(), HttpxAsync(), Requests()):
            with self.subTest(type(library).__name__):
                check(library)

    def check_sends(self, sends, begun, info):
        for send in sends:
            self.assertEqual({name: send[name.lower()] for name in begun}, begun)
            self.assertNotIn("x-more", send)
            self.assertEqual(send.get("idempotency-key"), info.idempotency_key)
        self.assertEqual([send.get("retry-attempt") for send in sends], [None, "2", "3"][:len(sends)])

    def test_changed_while_an_attempt_is_under_way(self):
        unkeyed = {name: value for name, value in BEGUN.items() if name != "Idempotency-Key"}
        for method, begun, options in (("POST", BEGUN, {}), ("GET", BEGUN, {}), ("PUT", unkeyed, {}), ("GET", unkeyed, {"bucket": "origin"}),
                                       ("POST", BEGUN, {"idempotency": "auto"}), ("POST", unkeyed, {"idempotency": "auto"}),
                                       ("POST", BEGUN, {"pace": {"rate_per_min": 60_000}}), ("POST", BEGUN, {"attempt_header": None}),
                                       ("POST", BEGUN, {"hooks": {"on_send": lambda event: None}})):
            def check(library):
                request = library.request(begun, method)
                server = Server(503, 503, 200, change=lambda: request.headers.update(CHANGED))
                client = library.client(server, backoff_base_ms=1, **options)
                info, = library.send(client, request)
                self.assertEqual((info.attempts, info.status, len(server.sends)), (3, 200, 3))
                if options.get("attempt_header", "") is not None:
                    self.check_sends(server.sends, begun, info)
                else:
                    self.assertEqual(server.sends, [server.sends[0]] * 3)
            with self.subTest(method=method, begun=begun, options=options):
                self.each(check)

    def test_changed_while_the_call_waits(self):
        def check(library):
            request = library.request(BEGUN)
            server = Server(429, 200)
            hooks = {"on_wait": lambda event: request.headers.update(CHANGED)}
            info, = library.send(library.client(server, backoff_base_ms=1, hooks=hooks), request)
            self.assertEqual(len(server.sends), 2)
            self.check_sends(server.sends, BEGUN, info)
        self.each(check)

    def test_changed_while_a_gate_holds_the_call(self):
        def check(library):
            first, request = library.request(BEGUN), library.request(BEGUN)
            server = Server(200, 200, headers=LAST_ONE)
            hooks = {"on_wait": lambda event: request.headers.update(CHANGED)}
            _, info = library.send(library.client(server, hooks=hooks), first, request)
            self.assertGreater(info.waited_ms, 0)
            self.check_sends(server.sends[1:], BEGUN, info)
        self.each(check)

    def test_a_caller_who_takes_fields_away(self):
        def check(library):
            request = library.request(BEGUN)
            server = Server(503, 200, change=lambda: [request.headers.pop(name, None) for name in BEGUN])
            info, = library.send(library.client(server, backoff_base_ms=1), request)
            self.check_sends(server.sends, BEGUN, info)
            self.assertNotIn("X-Note", request.headers, "the request stays the caller's")
        self.each(check)

    def test_what_a_refusal_teaches_is_of_the_first_credential(self):
        """A narrow limit closes the operation for whoever asked."""
        def check(library):
            request = library.request(BEGUN)
            server = Server(429, change=lambda: request.headers.update(CHANGED), headers={"Retry-After": "3600"},
                            body=b'{"error": {"type": "daily_booking_limit"}}')
            client = library.client(server)
            library.send(client, request)
            shared = client.adapter._shared if isinstance(library, Requests) else client._transport._shared
            self.assertEqual([key.split("\n")[1] for key in shared.narrow_gates.gates], ["Bearer one"])
        self.each(check)

    def test_changed_before_a_redirect_is_followed(self):
        class Follower(Httpx):
            def client(self, server, **options):
                return super().client(server, follow_redirects=True, **options)

        class AsyncFollower(HttpxAsync):
            def client(self, server, **options):
                return super().client(server, follow_redirects=True, **options)

        for library in (Follower(), AsyncFollower(), Requests()):
            for options in ({}, {"pace": {"rate_per_min": 60_000}}, {"idempotency": "auto"}):
                with self.subTest(type(library).__name__, options=options):
                    request = library.request(BEGUN)
                    server = Server(307, 308, 200, change=lambda: request.headers.update(CHANGED), headers={"Location": "/b"})
                    info, = library.send(library.client(server, **options), request)
                    self.assertEqual((info.status, len(server.sends)), (200, 3))
                    for send in server.sends:
                        self.assertEqual({name: send[name.lower()] for name in BEGUN}, BEGUN)
                        self.assertNotIn("x-more", send)

    def test_repeated_fields(self):
        for library in (Httpx(), HttpxAsync()):
            request = library.request([("X-Note", "a"), ("x-note", "b"), ("Idempotency-Key", "one")])
            server = Server(503, 200, change=lambda: request.headers.update(CHANGED))
            info, = library.send(library.client(server, backoff_base_ms=1), request)
            self.assertEqual([send["x-note"] for send in server.sends], ["a, b", "a, b"])
            self.assertEqual(info.idempotency_key, "one")

    def test_a_body_that_is_read_first(self):
        async def body():
            request.headers.update(CHANGED)
            yield b"body"
        library = HttpxAsync()
        for options in ({}, {"pace": {"rate_per_min": 60_000}}):
            request = httpx.Request("POST", URL, headers={**BEGUN, "Content-Length": "4"}, content=body())
            server = Server(503, 200)
            info, = library.send(library.client(server, backoff_base_ms=1, **options), request)
            self.assertEqual(info.status, 200)
            self.check_sends(server.sends, BEGUN, info)


class EmptyKeys(unittest.TestCase):
    def test_an_empty_key_is_none_and_none_is_made_in_its_place(self):
        for library in (Httpx(), HttpxAsync(), Requests()):
            for options in ({}, {"idempotency": "auto"}, {"hooks": {"on_send": lambda event: None}}):
                for key in ("", " ", "\t"):
                    with self.subTest(type(library).__name__, options=options, key=key):
                        request = library.request({})
                        request.headers["Idempotency-Key"] = key
                        server = Server(503)
                        client = library.client(server, backoff_base_ms=1, **options)
                        info, = library.send(client, request)
                        self.assertEqual((info.attempts, info.reason, info.idempotency_key), (1, "unsafe_method", None))
                        self.assertEqual(server.sends[0]["idempotency-key"], key)

    def test_a_lost_call_with_an_empty_key_leaves_no_doubt(self):
        def lost(request):
            raise httpx.ReadError("lost")
        client = httpx.Client(transport=ration_client.httpx.Transport(httpx.MockTransport(lost)))
        for key, doubts in (("", 0), (" ", 0), (" k", 1)):
            with self.assertRaises(httpx.ReadError):
                client.post(URL, headers={"Idempotency-Key": key}, extensions={"ration": {"max_retries": 0}})
            self.assertEqual(len(client._transport._shared.doubts), doubts)


if __name__ == "__main__":
    unittest.main()
