"""Over HTTP/2: a server that goes away or resets a stream loses no safe call, and gets no unsafe one twice.

The server speaks just enough of RFC 9113 for that, without TLS (the client knows that it speaks HTTP/2).
"""

import asyncio
import socket
import struct
import threading
import unittest

import httpx

import ration_client.httpx

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, ACK, END_HEADERS = 1, 1, 4
OK, UNAVAILABLE = b"\x88", b"\x08\x03503"  # HPACK: ":status: 200" of the static table; the other spelled out
REFUSED_STREAM = 7


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


class Server:
    """`serve(peer, number)` is what becomes of connection `number`; requests are counted."""

    def __init__(self, serve):
        self._serve, self._listener = serve, socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        self.connections = self.requests = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._run, args=(connection, self.connections), daemon=True).start()

    def _run(self, connection, number):
        with connection:
            try:
                self._serve(Peer(self, connection), number)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()


class Peer:
    def __init__(self, server, connection):
        self._server, self._connection = server, connection
        self._read(24)  # the preface
        self._send(frame(SETTINGS, 0, 0))

    def _send(self, data):
        self._connection.sendall(data)

    def _read(self, size):
        data = b""
        while len(data) < size:
            block = self._connection.recv(size - len(data))
            if not block:
                raise ConnectionResetError
            data += block
        return data

    def next_request(self):
        """The stream of the next whole request."""
        while True:
            head = self._read(9)
            kind, flags, payload = head[3], head[4], self._read(int.from_bytes(head[:3], "big"))
            if kind in (SETTINGS, PING) and not flags & ACK:
                self._send(frame(kind, ACK, 0, payload if kind == PING else b""))
            elif kind in (HEADERS, DATA) and flags & END_STREAM:
                self._server.requests += 1
                return int.from_bytes(head[5:], "big")

    def answer(self, stream, status=OK):
        self._send(frame(HEADERS, END_STREAM | END_HEADERS, stream, status))

    def go_away(self, last_stream):
        self._send(frame(GOAWAY, 0, 0, struct.pack(">II", last_stream, 0)))

    def answer_and_go_away(self, stream):
        goodbye = frame(GOAWAY, 0, 0, struct.pack(">II", stream, 0))
        self._send(frame(HEADERS, END_STREAM | END_HEADERS, stream, OK))
        self._send(goodbye)

    def reset(self, stream, code):
        self._send(frame(RESET, 0, stream, struct.pack(">I", code)))

    def wait_for_end(self):
        while self._connection.recv(65536):
            pass


def ask_blocking(url, method, headers, times):
    transport = ration_client.httpx.Transport(httpx.HTTPTransport(http1=False, http2=True), backoff_base_ms=1)
    with httpx.Client(transport=transport) as client:
        return [told(lambda: client.request(method, url, headers=headers)) for _ in range(times)]


def told(ask):
    try:
        answer = ask()
        return answer.status_code, answer.extensions["ration"]
    except httpx.HTTPError as error:
        return None, error.ration


def ask_async(url, method, headers, times):
    async def run():
        transport = ration_client.httpx.AsyncTransport(httpx.AsyncHTTPTransport(http1=False, http2=True), backoff_base_ms=1)
        async with httpx.AsyncClient(transport=transport) as client:
            results = []
            for _ in range(times):
                try:
                    answer = await client.request(method, url, headers=headers)
                    results.append((answer.status_code, answer.extensions["ration"]))
                except httpx.HTTPError as error:
                    results.append((None, error.ration))
            return results
    return asyncio.run(run())


def then_serves(first):
    """`first` for the first connection; the others answer."""
    def serve(peer, number):
        while True:
            stream = peer.next_request()
            if number == 1:
                first(peer, stream)
                return peer.wait_for_end()
            peer.answer(stream)
    return serve


LOSSES = {
    "it takes nothing more": lambda peer, stream: peer.go_away(0),
    "it goes away in the middle": lambda peer, stream: peer.go_away(stream),
    "it refuses the stream": lambda peer, stream: peer.reset(stream, REFUSED_STREAM),
    "it resets the stream": lambda peer, stream: peer.reset(stream, 2),
}


class Http2(unittest.TestCase):
    def each(self, first, check):
        for ask in (ask_blocking, ask_async):
            with self.subTest(ask.__name__), Server(then_serves(first)) as server:
                check(server, lambda method="GET", headers=None, times=1: ask(server.url, method, headers, times))

    def test_safe_and_keyed_calls_are_sent_again(self):
        def check(server, ask):
            for method, headers in (("GET", {}), ("POST", {"Idempotency-Key": "k"})):
                server.connections = server.requests = 0
                [(status, info)] = ask(method, headers)
                self.assertEqual((status, info.attempts, server.requests), (200, 2, 2), (method, info))
        for name, loss in LOSSES.items():
            with self.subTest(name):
                if "stream" in name:  # the connection itself goes on
                    def check_stream(server, ask):
                        [(status, info)] = ask()
                        self.assertEqual((status, info.attempts), (200, 2), info)
                    self.each(lambda peer, stream, loss=loss: (loss(peer, stream), peer.answer(peer.next_request())), check_stream)
                else:
                    self.each(loss, check)

    def test_an_unsafe_call_is_sent_once(self):
        def check(server, ask):
            [(status, info)] = ask("POST")
            self.assertEqual((status, info.reason, info.attempts, server.requests), (None, "unsafe_method", 1, 1))
        for name, loss in LOSSES.items():
            with self.subTest(name):
                self.each(loss, check)

    def test_an_answer_before_going_away_is_an_answer(self):
        def check(server, ask):
            results = ask(times=3)
            self.assertEqual([(status, info.attempts) for status, info in results], [(200, 1)] * 3)
            self.assertEqual((server.requests, server.connections), (3, 2))
        self.each(lambda peer, stream: peer.answer_and_go_away(stream), check)

    def test_an_answer_after_going_away_is_asked_for_again_where_it_is_lost(self):
        def check(server, ask):  # httpx may give up on the connection before it reads the answer
            self.assertEqual([status for status, _ in ask(times=3)], [200] * 3)
        self.each(lambda peer, stream: (peer.go_away(stream), peer.answer(stream)), check)

    def test_refusals_are_read_as_over_http_1(self):
        def check(server, ask):
            [(status, info)] = ask()
            self.assertEqual((status, info.attempts, server.connections), (200, 2, 1))
        self.each(lambda peer, stream: (peer.answer(stream, UNAVAILABLE), peer.answer(peer.next_request())), check)


if __name__ == "__main__":
    unittest.main()
